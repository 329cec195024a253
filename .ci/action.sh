#!/usr/bin/env bash
# action.sh: the steps of action.yml, for any CI system. Takes from the environment: SPEC; WHERE (factor=level, one a line); KERNEL (a release
# such as 7.3, or a binary; empty: the default); REFERENCE (a run or a bundle); ALLOW_PROGRAMS (true: also one with programs of its own);
# WHEELS (a directory with the wheels; empty: the index that pip asks);
# OUT (netwarp-run). Writes OUT/ (the report is in it), OUT.junit.xml and OUT.md. Exit status 1 if a cell did not complete, a claim does not hold, or
# a capture differs from the reference's. Uploads nothing.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
out=${OUT:-netwarp-run}
wheels=(netwarp)
options=()
[ -z "${WHEELS:-}" ] || options=(--find-links "$WHEELS")
if [[ "${KERNEL:-}" =~ ^[0-9]+\.[0-9]+$ ]]; then
	[ "$KERNEL" = 6.12 ] || wheels+=("netwarp-kernel-$KERNEL")
fi
environment=$(mktemp -d)
token=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
trap 'rm -rf "$environment"; [ -z "${GITHUB_ACTIONS:-}" ] || printf "\n::%s::\n" "$token"' EXIT
# what programs print is no command of the job; both streams in one, so that none of it comes behind the end
[ -z "${GITHUB_ACTIONS:-}" ] || { exec 2>&1; echo "::stop-commands::$token"; }
python3 -m venv "$environment"
"$environment/bin/pip" install --quiet "${options[@]}" "${wheels[@]}"
where=()
while read -r level; do [ -z "$level" ] || where+=(--where "$level"); done <<<"${WHERE:-}"
reference=()
[ -z "${REFERENCE:-}" ] || reference=("$REFERENCE")
[ "${ALLOW_PROGRAMS:-false}" != true ] || [ -z "${REFERENCE:-}" ] || reference+=(--allow-programs)
status=0
NETWARP_KERNEL=${KERNEL:-} "$environment/bin/netwarp" run "${where[@]}" --out "$out" --junit "$out.junit.xml" -- "$SPEC" || status=$?
[ -f "$out/tables/cells.csv" ] || exit $status
NETWARP_KERNEL=${KERNEL:-} "$environment/bin/python" "$here/summary.py" "$out" "${reference[@]}" >"$out.md" || status=1
cat "$out.md"
[ -z "${GITHUB_STEP_SUMMARY:-}" ] || cat "$out.md" >>"$GITHUB_STEP_SUMMARY"
exit $status
