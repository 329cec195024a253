#!/usr/bin/env bash
# anywhere.sh [--part] [SUITE...]: installs the wheels of dist/ on bare systems (bookworm trixie sid) without a network, a compiler or a checkout, and
# runs them: as a user, as root, and where a machine refuses something. Writes build/anywhere/table.md: seconds of the installation, seconds to
# the first report, and whether captures are those of results/reference. --part: a user alone, and a tenth of one reference (.ci/run).
# CASES: some of them. Needs root, debootstrap, `make wheels` and .venv. NETWARP_ANYWHERE: the place of the roots, which are used again (build/anywhere).
set -euo pipefail
checkout=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
place=${NETWARP_ANYWHERE:-$checkout/build/anywhere}
PATH=$PATH:/usr/sbin:/sbin
read -ra cases <<<"${CASES:-user root read-only-home 2-GB small-shm no-shm no-user-namespaces no-personality no-ptrace}"
part=
[ "${1:-}" != --part ] || { part=1 cases=(user) && shift; }
suites=("$@")
[ ${#suites[@]} -gt 0 ] || suites=(bookworm trixie sid)

cannot() {
	printf 'anywhere.sh: %s\n' "$@" >&2
	exit 1
}

make_root() { # SUITE ROOT
	local uri
	uri=$(apt-get indextargets --format '$(REPO_URI) $(RELEASE)' 'Created-By: Packages' | awk '$2 !~ /-/ { print $1; exit }')
	rm -rf --one-file-system "$2" "$2.new"
	debootstrap --variant=minbase --include=python3-venv "$1" "$2.new" "$uri" >"$place/$1.log" 2>&1 ||
		cannot "debootstrap failed; the end of $place/$1.log:" "$(tail -n 5 "$place/$1.log")"
	chroot "$2.new" useradd -m -s /bin/bash u
	mv "$2.new" "$2"
}

hand_in() { # SUITE ROOT: the wheels, those that they need, and the references
	local version platforms=() minor
	version=$(chroot "$2" python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')
	for minor in {17..28}; do platforms+=(--platform "manylinux_2_${minor}_x86_64"); done
	"$checkout/.venv/bin/pip" download --quiet --only-binary=:all: --require-hashes -r "$checkout/requirements.lock" --python-version "$version" \
		"${platforms[@]}" --dest "$place/wheels-$version"
	rm -rf "$2/handed"
	mkdir -p "$2/handed/wheels" "$2/handed/references"
	cp "$checkout"/dist/*.whl "$place/wheels-$version"/*.whl "$2/handed/wheels"
	for bundle in "$checkout"/results/reference/*/run.tar.xz; do
		cp "$bundle" "$2/handed/references/$(basename "$(dirname "$bundle")").tar.xz"
	done
	[ -z "$part" ] || find "$2/handed/references" -type f ! -name 'choi2009*' -delete
	cp "$checkout/setup/anywhere-steps.sh" "$checkout"/{setup/refuse.py,.ci/summary.py} "$2/handed"
}

# The root is entered by pivot_root, not by chroot: who is in a chroot may make no user namespaces. No network is there.
inside=
trap '[ -z "$inside" ] || kill -KILL "$inside"' EXIT
trap 'exit 143' HUP INT TERM
enter() { # ROOT CASE
	local status=0
	unshare --mount --net --propagation private --pid --fork --kill-child bash -c '
		set -e
		if [ "$2" = 2-GB ]; then
			group=/sys/fs/cgroup/memory/netwarp-anywhere limit=memory.limit_in_bytes
			[ -d /sys/fs/cgroup/memory ] || group=/sys/fs/cgroup/netwarp-anywhere limit=memory.max
			mkdir -p "$group"
			echo 2147483648 >"$group/$limit"
			echo 0 >"$group/cgroup.procs"
		fi
		mount --bind "$1" "$1"
		cd "$1"
		mount -t proc proc proc
		mount --rbind /sys sys
		mount -t tmpfs dev dev
		for device in null zero full random urandom tty; do
			: >"dev/$device"
			mount --bind "/dev/$device" "dev/$device"
		done
		size=50%
		[ "$2" != small-shm ] || size=1m
		[ "$2" = no-shm ] || { mkdir dev/shm && mount -t tmpfs -o size=$size shm dev/shm; }
		mkdir -p .old
		pivot_root . .old
		umount -l /.old
		bash /handed/anywhere-steps.sh "$2" || exit $?
		exit 0' bare "$1" "$2" </dev/null &
	inside=$!
	wait $inside || status=$?
	inside=
	return $status
}

[ "$(id -u)" = 0 ] || cannot "bare roots need root (they are mounted): sudo make anywhere"
command -v debootstrap >/dev/null || cannot "there is no debootstrap on this machine: setup/packages.sh bare"
compgen -G "$checkout/dist/netwarp-*.whl" >/dev/null || cannot "there are no wheels in dist/: make wheels"
mkdir -p "$place"
table=$place/table.md failed=0
printf '| system | as | installation | to the first report | captures |\n| --- | --- | --- | --- | --- |\n' >"$table"
for suite in "${suites[@]}"; do
	root=$place/$suite
	[ -d "$root" ] || make_root "$suite" "$root"
	hand_in "$suite" "$root"
	name=$(. "$root/etc/os-release" && echo "$PRETTY_NAME")
	for case in "${cases[@]}"; do
		status=0
		enter "$root" "$case" >"$place/$suite.$case.log" 2>&1 || status=$?
		if [ $status = 0 ]; then
			echo "| $name | $case | $(sed -n 's/^ROW //p' "$place/$suite.$case.log") |" | tee -a "$table"
		else
			failed=1
			echo "| $name | $case | failed: $(basename "$place")/$suite.$case.log | | |" | tee -a "$table"
			tail -n 20 "$place/$suite.$case.log" >&2
		fi
	done
done
exit $failed
