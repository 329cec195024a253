#!/bin/bash
# One of the kernel's own tests, in a guest whose root guest_root.sh has put together: the tests likewise below a memory of their own.
# guest.env says which test; output.txt and status.txt are what it leaves in the guest's directory.
set -u
. /run/own/guest.env
PATH=$PATH:/run/own/bin
# warnings of the kernel, which make the test fail, onto the console with their times (`quiet` leaves errors only)
echo 5 >proc/sys/kernel/printk
echo 1 >sys/module/printk/parameters/time
mkdir -p selftests /run/tests /run/memory/upper-tests /run/memory/work-tests run/own run/netns
mount -t hostfs -o "$TESTS" none /run/tests
mount -t tracefs tracefs sys/kernel/tracing 2>/dev/null
mount -t bpf bpf sys/fs/bpf 2>/dev/null
mount -t overlay -o lowerdir=/run/tests,upperdir=/run/memory/upper-tests,workdir=/run/memory/work-tests overlay selftests
mount --move /run/own run/own
# files of the tests that get something more at their end, or below their first line, in memory alone
for change in run/own/overrides/*; do
	[ -f "$change" ] || continue
	name=${change##*/}
	file=selftests/${name//@//}
	case $name in
	*.first) sed -i "1r $change" "${file%.first}" ;;
	*) cat "$change" >>"$file" ;;
	esac
done
# everything is built in: there is nothing to load, and what is missing shows where it is used
printf '#!/bin/sh\nexit 0\n' >/run/memory/modprobe
chmod 755 /run/memory/modprobe
cp /run/memory/modprobe usr/sbin/modprobe
printf '127.0.0.1 localhost\n' >etc/hosts
# bash's `< <(command)` opens /dev/fd, which devtmpfs lacks: a comparison that reads nothing finds no difference
ln -s /proc/self/fd dev/fd
ln -s /proc/self/fd/0 dev/stdin
ip link set dev lo up
read -r began _ <proc/uptime
HOME=/root HOSTNAME=guest TERM=dumb LC_ALL=C chroot . /bin/bash -c \
	"cd /selftests/$COLLECTION && exec timeout --kill-after=10 $LIMIT_S setsid --wait $TEST" >run/own/output.txt 2>&1 </dev/null
status=$?
read -r ended _ <proc/uptime
echo "$status $began $ended" >run/own/status.txt
mount -t debugfs debugfs sys/kernel/debug 2>/dev/null
# of a kernel that counts its lines (docs/explore.md): as cell-init keeps them; a file there says that it is empty
if [ -e sys/kernel/debug/gcov ]; then
	(cd sys/kernel/debug/gcov && find . -name '*.gcda' | sort | while read -r name; do
		cat "$name" >/run/memory/counted
		echo "${name#.} $(stat -c %s /run/memory/counted)"
		cat /run/memory/counted
	done) >run/own/counters.bin
fi
# kmemleak, where the kernel has it: what is younger than 5 s is not reported, and one scan is not enough. This process waits by itself: of a
# child that has just ended RCU still has to free some objects, which are in no list that kmemleak sees (its own are between them).
# Then reboot(2), to power off: halt and poweroff belong to an init system.
exec perl -e '
	my $leaks = "sys/kernel/debug/kmemleak";
	if (-e $leaks) {
		select undef, undef, undef, 6;
		for (1, 2) { open my $scan, ">", $leaks or last; print $scan "scan"; close $scan }
		open my $found, "<", $leaks; open my $console, ">", "/dev/console";
		print $console $_ while <$found>;
		close $console;
	}
	syscall(169, 0xfee1dead, 0x28121969, 0x4321fedc, 0)'
