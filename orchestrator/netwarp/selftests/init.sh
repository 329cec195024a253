#!/bin/bash
# The first program of a guest that runs one of the kernel's own tests: the host's files (hostfs, read-only) below unpacked packages,
# below a memory of its own, and the tests likewise. test.env in the guest's directory says which test; output.txt and status.txt
# are what it leaves there.
set -u
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export PATH
mount -t proc proc /proc
mount -t tmpfs -o mode=0755 tmpfs /run
mkdir /run/own /run/packages /run/tests /run/memory /run/root
# hostfs resolves the path in the kernel's own process, whose working directory this is
mount -t hostfs -o /proc/self/cwd none /run/own
. /run/own/test.env
# mounts of their own: overlayfs wants no layer within another
mount -t hostfs -o "$PACKAGES" none /run/packages
mount -t hostfs -o "$TESTS" none /run/tests
mkdir /run/memory/upper /run/memory/work /run/memory/upper-tests /run/memory/work-tests
mount -t overlay -o lowerdir=/run/packages:/,upperdir=/run/memory/upper,workdir=/run/memory/work overlay /run/root
cd /run/root
for place in proc sys dev run tmp root selftests; do
	[ -d "$place" ] || mkdir -p "$place"
done
mount -t proc proc proc
mount -t sysfs sysfs sys
mount -t devtmpfs devtmpfs dev
mkdir -p dev/pts dev/shm
mount -t devpts devpts dev/pts
mount -t tmpfs -o mode=1777 tmpfs dev/shm
mount -t tmpfs -o mode=0755 tmpfs run
mount -t tmpfs -o mode=1777 tmpfs tmp
mount -t tmpfs -o mode=0700 tmpfs root
mount -t tracefs tracefs sys/kernel/tracing 2>/dev/null
mount -t bpf bpf sys/fs/bpf 2>/dev/null
mount -t overlay -o lowerdir=/run/tests,upperdir=/run/memory/upper-tests,workdir=/run/memory/work-tests overlay selftests
mkdir run/own run/netns
mount --move /run/own run/own
# files of the tests that are replaced or lengthened, in memory alone
for change in run/own/overrides/*; do
	[ -f "$change" ] || continue
	name=${change##*/}
	cat "$change" >>"selftests/${name//@//}"
done
# everything is built in: there is nothing to load, and what is missing shows where it is used
printf '#!/bin/sh\nexit 0\n' >/run/memory/modprobe
chmod 755 /run/memory/modprobe
cp /run/memory/modprobe usr/sbin/modprobe
printf '127.0.0.1 localhost\n' >etc/hosts
ip link set dev lo up
read -r began _ <proc/uptime
HOME=/root HOSTNAME=guest TERM=dumb LC_ALL=C chroot . /bin/bash -c \
	"cd /selftests/$COLLECTION && exec timeout --kill-after=10 $LIMIT_S setsid --wait $TEST" >run/own/output.txt 2>&1 </dev/null
status=$?
read -r ended _ <proc/uptime
echo "$status $began $ended" >run/own/status.txt
# reboot(2), to power off: halt and poweroff belong to an init system
exec perl -e 'syscall(169, 0xfee1dead, 0x28121969, 0x4321fedc, 0)'
