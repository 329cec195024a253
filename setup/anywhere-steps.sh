#!/usr/bin/env bash
# anywhere-steps.sh CASE: what anywhere.sh does in a bare root. First as root: makes the machine what CASE says; then as the user.
set -euo pipefail
case=$1 who=${2:-}
home=/home/u place=/home/u/work
[ "$case" != root ] || home=/root place=/root/work
[ "$case" != read-only-home ] || place=/var/tmp/work

if [ -z "$who" ]; then
	rm -rf /home/u /var/tmp/work /root/work /root/.cache
	mkdir -p /home/u "$place"
	chown u:u /home/u
	[ "$case" = root ] || chown u:u "$place"
	refuse=()
	case $case in
	read-only-home) mount --bind /home/u /home/u && mount -o remount,bind,ro /home/u ;;
	no-user-namespaces) refuse=(unshare clone-user clone3) ;;
	no-personality) refuse=(personality) ;;
	no-ptrace) refuse=(ptrace) ;;
	esac
	become=(setpriv --reuid u --regid u --init-groups)
	[ "$case" != root ] || become=()
	cd /
	exec "${become[@]}" env -i HOME="$home" PATH=/usr/local/bin:/usr/bin:/bin LANG=C.UTF-8 PYTHONDONTWRITEBYTECODE= \
		python3 /handed/refuse.py "${refuse[@]}" -- bash /handed/anywhere-steps.sh "$case" user
fi

cd "$place"
# Of all so far; CPU is that of the two cores together, and does not ask what else the machine does.
since_start() {
	times >times.txt
	awk -v wall=$SECONDS 'NR == 2 { for (i = 1; i <= 2; i++) { split($i, t, /[ms]/); cpu += t[1] * 60 + t[2] }
		printf "%d s (CPU %.0f s)\n", wall, cpu }' times.txt
}
netwarp=env/bin/netwarp
SECONDS=0
python3 -m venv env
env/bin/pip install --quiet --no-index --find-links /handed/wheels netwarp
since_start >installed.txt
$netwarp doctor || true
# With a report; of the experiment a part, where the machine lacks something, and where only one reference was handed in (anywhere.sh --part)
part=(--where outage='10 s' --where reading=rtt)
references=(/handed/references/*)
if [ "$case" = user ] && [ ${#references[@]} -gt 1 ]; then part=(); fi
run() { $netwarp run choi2009 --only outages "${part[@]}" --out "$@"; }
if [ "$case" = no-shm ]; then
	! run refused 2>said
	cat said
	grep -q 'mount a tmpfs on /dev/shm' said
	echo "ROW $(cat installed.txt) | none | says that worker processes need /dev/shm"
	exit
fi
if [ "$case" = no-ptrace ]; then
	status=0
	run refused 2>said || status=$?
	cat said
	[ $status = 77 ]
	grep -q 'netwarp-kernel-7.3' said
	env/bin/pip install --quiet --no-index --find-links /handed/wheels netwarp-kernel-7.3
	export NETWARP_KERNEL=7.3
fi
run first
since_start >first.txt
[ -s first/report/index.html ]
if [ "$case" = no-ptrace ]; then
	# 7.3 is another kernel than the references': its captures are those that it gives where it may trace
	env/bin/python /handed/summary.py first /var/tmp/of-7.3 >summary.md || true
	cat summary.md
	said=$(sed -n 's/^| captures | of \([0-9]*\) cells \1 equal .*/6.12 says so and names 7.3; \1 cells equal to 7.3 with ptrace/p' summary.md)
else
	cp /handed/references/choi2009.tar.xz .
	env/bin/python /handed/summary.py first choi2009.tar.xz >summary.md || true # a claim of the paper may not hold
	cat summary.md
	said=$(sed -n 's/^| captures | of \([0-9]*\) cells \1 equal .*/\1 cells equal/p' summary.md)
fi
[ -n "$said" ]
if [ "$case" = user ]; then
	equal=0
	for reference in "${references[@]}"; do
		cp "$reference" .
		$netwarp archive verify "${reference##*/}" --shard 1/10 | tee verified
		equal=$((equal + $(awk '/ equal byte for byte, 0 not/ { print $1 }' verified)))
	done
	said="$said; of the references $equal, a tenth, equal"
	if compgen -G '/handed/wheels/netwarp_kernel_7_3-*' >/dev/null; then
		env/bin/pip install --quiet --no-index --find-links /handed/wheels netwarp-kernel-7.3
		rm -rf /var/tmp/of-7.3
		part=(--where outage='10 s' --where reading=rtt)
		NETWARP_KERNEL=7.3 NETWARP_SECCOMP=off run /var/tmp/of-7.3 --no-report
	fi
fi
echo "ROW $(cat installed.txt) | $(cat first.txt) | $said"
