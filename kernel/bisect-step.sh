#!/bin/sh
# bisect-step.sh EXPERIMENT GOOD_RUN [options of netwarp run]: a step of `git bisect run`, started in a Linux tree that git bisect checks out.
# Builds the commit's kernel (ccache has what was compiled before), runs the experiment on it, and compares with a run of a good kernel.
# Exit status: 0 no number differs, 1 one does, 125 this commit does not build (git bisect skips it), 255 nothing can be said (it stops).
# NETWARP names another netwarp than this checkout's.
set -u
[ $# -ge 2 ] || { echo "usage: bisect-step.sh EXPERIMENT GOOD_RUN [options of netwarp run]" >&2; exit 255; }
experiment=$1 good=$2
shift 2
netwarp=${NETWARP:-$(dirname "$0")/../.venv/bin/netwarp}
record=$("$netwarp" kernel build --source "$PWD@HEAD" --json)
case $? in
0) ;;
3) exit 125 ;; # the source's fault; anything else is the machine's (disk, memory, tools) or Ctrl-C, and would be so at every commit
*) exit 255 ;;
esac
key=$(printf '%s\n' "$record" | sed -n 's/.*"key": "\([0-9a-f]*\)".*/\1/p')
[ -n "$key" ] || exit 255
out=$(mktemp -d) || exit 255
trap 'rm -rf "$out"' EXIT
"$netwarp" run "$experiment" --set kernel="$key" --out "$out/run" --no-report "$@" >&2
# 0 and 1: there is a run, and how its cells ended is compared too
[ $? -le 1 ] || exit 255
"$netwarp" compare --exit-code "$good" "$out/run"
case $? in
0) exit 0 ;;
1) exit 1 ;;
*) exit 255 ;;
esac
