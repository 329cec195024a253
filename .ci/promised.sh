#!/usr/bin/env bash
# What README promises of time and disk, held: promised.sh minutes TARGET [SECONDS] | disk FOLDER...
# Without SECONDS: prints the minutes that `make TARGET` may take. Exit status 1: more than was promised, or nothing was.
set -euo pipefail
readme="$(dirname "${BASH_SOURCE[0]}")/../README.md"

# The number behind "at most" in the line that begins so.
number() {
	sed -nE "s/^$1.*at most ([0-9]+) $2.*/\1/p" "$readme" | grep . || {
		echo "README promises no $2 of $1" >&2
		exit 1
	}
}

case "$1" in
minutes)
	most=$(number "make $2 " minutes)
	[ -n "${3-}" ] || { echo "$most" && exit; }
	took=$((($3 + 59) / 60))
	echo "make $2: $took of at most $most minutes"
	;;
disk)
	most=$(number ".*" "GB of disk")
	took=$((($(du -smc "${@:2}" | tail -n 1 | cut -f 1) + 999) / 1000))
	echo "disk: $took of at most $most GB"
	;;
esac
[ "$took" -le "$most" ]
