#!/bin/sh
# A machine of the laboratory, in a guest whose root guest_root.sh has put together, as root: accounts, keys, a repository of packages; then sshd.
# Its directory on the host holds guest.env, authorized_keys and its host key.
set -eu
. /run/own/guest.env
mkdir -p home etc/ssh
mount -t tmpfs -o mode=0755 tmpfs home

echo "$NAME" >etc/hostname
printf '127.0.0.1 localhost %s\n' "$NAME" >etc/hosts
{
	echo 'root:x:0:0:root:/root:/bin/sh'
	echo 'nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin'
	echo 'sshd:x:100:65534::/run/sshd:/usr/sbin/nologin'
	echo 'lab:x:1000:1000::/home/lab:/bin/sh'
} >etc/passwd
printf 'root:x:0:\nnogroup:x:65534:\nlab:x:1000:\n' >etc/group
# the host's own may not be ours to read, so that it cannot be written to
rm -f etc/shadow
# no password, and no expiry either
printf 'root:*:19000:0:99999:7:::\nlab:*:19000:0:99999:7:::\n' >etc/shadow
chmod 0640 etc/shadow
rm -f etc/sudoers etc/nsswitch.conf
printf 'Defaults env_reset\nroot ALL=(ALL) ALL\nlab ALL=(ALL) NOPASSWD: ALL\n' >etc/sudoers
printf 'passwd: files\ngroup: files\nshadow: files\nhosts: files\n' >etc/nsswitch.conf
chmod 0440 etc/sudoers
rm -rf etc/sudoers.d
chown 0:0 usr/bin/mount usr/bin/umount usr/bin/su
# unpacked by an ordinary user, they are that user's
chown 0:0 usr/bin/sudo usr/libexec/sudo usr/libexec/sudo/* usr/lib/sudo usr/lib/sudo/* 2>/dev/null || true
chmod 4755 usr/bin/sudo
mkdir -p home/lab/.ssh run/sshd
cp /run/own/authorized_keys home/lab/.ssh/
cp /run/own/ssh_host_key etc/ssh/lab_host_key
chown -R 1000:1000 home/lab
chmod -R go= home/lab etc/ssh/lab_host_key
cat >etc/ssh/sshd_config <<-CONFIG
	HostKey /etc/ssh/lab_host_key
	PasswordAuthentication no
	UsePAM no
	UseDNS no
	PrintMotd no
	MaxSessions 100
	Subsystem sftp internal-sftp
CONFIG
# apt's own directories of the host may not be ours to read or write, nor its locks
rm -rf etc/apt/sources.list.d
rm -f var/lib/dpkg/lock var/lib/dpkg/lock-frontend var/lib/dpkg/statoverride
mkdir -p etc/apt var/lib/apt var/cache/apt
for place in var/lib/apt var/cache/apt var/log; do
	mount -t tmpfs -o mode=0755 tmpfs $place
done
echo "deb [trusted=yes] file:$REPOSITORY ./" >etc/apt/sources.list
hostname "$NAME"
ip link set dev lo up
ip address add "$ADDRESS/24" dev vec0
ip link set dev vec0 up
umount /run/own
# as switch_root does
mount --move . /
exec chroot . /usr/sbin/sshd -D -e
