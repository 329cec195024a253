#!/usr/bin/env bash
# bare.sh TARGET...: makes a bare root of this machine's distribution, an ordinary user with sudo in it and a clone of this checkout (what is
# committed), and runs `make TARGET` there for each, as that user. Prints how long each took and its last lines; exits 1 if one failed.
# A target may have arguments: bare.sh lint "test ARGS='-k setup'". Needs root and debootstrap. Guest kernels that are built are handed in.
# NETWARP_BARE: where the root is made (build/bare). KEEP=1: uses the root of the last time, and what is built in its clone.
set -euo pipefail
checkout=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
place=${NETWARP_BARE:-$checkout/build/bare}
root=$place/root home=$place/root/home/u
# Under sudo: the kernels of who typed it
own=${SUDO_USER:+$(getent passwd "$SUDO_USER" | cut -d: -f6)}
cache=${NETWARP_CACHE:-${own:-$HOME}/.cache/netwarp}
# sbin is not in the PATH of everybody who becomes root
PATH=$PATH:/usr/sbin:/sbin

cannot() {
	printf 'bare.sh: %s\n' "$@" >&2
	exit 1
}

[ $# -gt 0 ] || cannot "name at least one target of the Makefile, e.g. lint"
[ "$(id -u)" = 0 ] || cannot "a bare root needs root (it mounts and changes users): sudo make bare"
command -v debootstrap >/dev/null || cannot "there is no debootstrap on this machine: setup/packages.sh bare"
command -v apt-get >/dev/null || cannot "the packages come from this machine's apt configuration, and there is no apt here"
unshare --mount --pid --fork true || cannot "this machine allows no namespaces of mounts and processes (in a container: run it with --privileged)"

# The distribution's archives that this machine uses, as `URI release component`.
archives() {
	apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' |
		awk -v code="$1" '($2 == code || index($2, code "-") == 1) && ($3 == "main" || $3 == "universe") && !seen[$0]++'
}

make_root() {
	local code uri
	code=$(. /etc/os-release && echo "$VERSION_CODENAME")
	uri=$(archives "$code" | awk -v code="$code" '$2 == code { print $1; exit }')
	[ -n "$uri" ] || cannot "this machine's apt configuration has no archive of $code"
	echo "A bare root: $code in $root"
	# Nothing is mounted below it: the mounts are in a namespace that ends with its processes.
	rm -rf --one-file-system "$root"
	mkdir -p "$root"
	debootstrap --variant=minbase --include=ca-certificates,git,make,sudo "$code" "$root" "$uri" >"$place/debootstrap.log" 2>&1 ||
		cannot "debootstrap failed; the end of $place/debootstrap.log:" "$(tail -n 5 "$place/debootstrap.log")"
	archives "$code" | sed 's/^/deb /' >"$root/etc/apt/sources.list"
	# How this machine reaches archives and PyPI
	cp -r /etc/apt/apt.conf.d/. "$root/etc/apt/apt.conf.d/"
	for file in /etc/resolv.conf /etc/hosts /etc/pip.conf /etc/ssl/certs/ca-certificates.crt; do
		[ ! -f $file ] || cp -L $file "$root$file"
	done
	chroot "$root" useradd -m -s /bin/bash u
	echo 'u ALL=(ALL) NOPASSWD: ALL' >"$root/etc/sudoers.d/u"
	env -0 | while IFS='=' read -r -d '' name value; do
		[[ ! $name =~ ^(PIP_.*|SSL_CERT_.*|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE|GIT_SSL_CAINFO|(http|https|no)_proxy)$ ]] || printf 'export %s=%q\n' "$name" "$value"
	done >"$home/.netwarp-env"
	if [ -d "$cache/kernels" ]; then
		mkdir -p "$home/.cache"
		cp -a "$cache" "$home/.cache/netwarp"
	else
		echo "No guest kernel is built here ($cache/kernels): the first target builds one"
	fi
	# Python's packages that this machine downloaded; their hashes are checked anyway
	if [ -d "${own:-$HOME}/.cache/pip" ]; then
		mkdir -p "$home/.cache"
		cp -a "${own:-$HOME}/.cache/pip" "$home/.cache/pip"
	fi
	git clone -q "$checkout" "$home/netwarp"
	chroot "$root" chown -R u:u /home/u
}

# The root is entered by pivot_root, not by chroot: who is in a chroot may make no user namespaces, which an ordinary user of a real machine may.
# bash stays process 1 there and waits for orphans, as an init does; with it ends whatever was started, also when this script is killed.
inside=
trap '[ -z "$inside" ] || kill -KILL "$inside"' EXIT
trap 'exit 143' HUP INT TERM
enter() {
	local status=0
	unshare --mount --propagation private --pid --fork --kill-child bash -c '
		set -e
		mount --bind "$1" "$1"
		cd "$1"
		mount -t proc proc proc
		mount --rbind /sys sys
		mount --rbind /dev dev
		mkdir -p .old
		pivot_root . .old
		umount -l /.old
		su - u -c ". ./.netwarp-env; cd netwarp; make $2" || exit $?
		exit 0' bare "$root" "$1" &
	inside=$!
	wait $inside || status=$?
	inside=
	return $status
}

mkdir -p "$place"
if [ -z "${KEEP:-}" ] || [ ! -d "$home/netwarp" ]; then
	make_root
	echo "Made after $SECONDS s"
else
	clone=(git -c safe.directory='*' -C "$home/netwarp")
	"${clone[@]}" fetch -q "$checkout" HEAD
	# chown made every file look changed; what is not is not written anew, so nothing is built anew
	"${clone[@]}" update-index -q --refresh || true
	"${clone[@]}" reset -q --hard FETCH_HEAD
	chroot "$root" chown -R u:u /home/u/netwarp
fi
failed=0
for target in "$@"; do
	start=$SECONDS status=0
	log=$place/${target%% *}.log
	echo "As an ordinary user: make $target"
	enter "$target" >"$log" 2>&1 </dev/null || status=$?
	[ $status = 0 ] || failed=1
	echo "make $target: exit $status after $((SECONDS - start)) s; the end of $log:"
	tail -n 15 "$log" | sed 's/^/  /'
done
exit $failed
