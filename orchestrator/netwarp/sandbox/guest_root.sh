#!/bin/sh
# The first program of a guest that needs a whole userland: the host's files (hostfs, read-only) below unpacked packages, below a memory of its
# own, at /run/root. The guest's directory on the host, /run/own, holds guest.env (PACKAGES, and what `rest` reads) and the program `rest`,
# which goes on from there, in /run/root.
set -eu
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export PATH
# An ordinary user's guest sees the files of the host's root as nobody's, and a program that runs as its owner (mount) would run as nobody: here
# the bit is passed over, below it is removed.
loader=/lib64/ld-linux-x86-64.so.2
"$loader" "$(command -v mount)" -t proc proc /proc
"$loader" "$(command -v mount)" -o remount,bind,ro,nosuid /
mount -t tmpfs -o mode=0755 tmpfs /run
mkdir /run/own /run/packages /run/memory /run/root
# hostfs resolves the path in the kernel's own process, whose working directory this is
mount -t hostfs -o /proc/self/cwd none /run/own
. /run/own/guest.env
# a mount of its own: overlayfs wants no layer within another
mount -t hostfs -o "$PACKAGES" none /run/packages
mkdir /run/memory/upper /run/memory/work
mount -t overlay -o lowerdir=/run/packages:/,upperdir=/run/memory/upper,workdir=/run/memory/work overlay /run/root
cd /run/root
for place in proc sys dev run tmp root; do
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
# /root of the host may not be ours to read
mount -t tmpfs -o mode=0700 tmpfs root
# a copy: /run/own can be taken away while it runs
cp /run/own/rest /run/memory/rest
exec /run/memory/rest
