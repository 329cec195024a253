#!/usr/bin/env bash
# wheels.sh [--default]: makes dist/: the wheels of netwarp (programs of apps/, experiments, profiles) and of its guest kernels, and dist/source/, the
# complete source of what is in them; --default: without the second kernel. What is committed is built, in a root of Debian 11, the oldest there is,
# so that it runs with every later C library. Needs root, debootstrap and apt's archives. NETWARP_WHEELS: the place of the root and of the work
# (build/wheels). Everything is built below /mnt in a namespace of mounts, so that no path of this machine is in a file.
set -euo pipefail
checkout=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
place=${NETWARP_WHEELS:-$checkout/build/wheels}
root=$place/root work=$place/work sources=$place/sources dist=$checkout/dist
suite=bullseye
packages=ca-certificates,gcc,make,libc6-dev,flex,bison,bc,xz-utils,patch,python3,libzstd-dev,zlib1g-dev,liblzma-dev,libbz2-dev,liblz4-dev
# Whose libraries are linked statically into the programs and the analyser
linked=(libc6-dev libgcc-10-dev libsctp-dev libzstd-dev zlib1g-dev liblzma-dev libbz2-dev liblz4-dev)
python=${PYTHON:-/usr/bin/python3}
PATH=$PATH:/usr/sbin:/sbin

cannot() {
	printf 'wheels.sh: %s\n' "$@" >&2
	exit 1
}

archive() { # main or security: the URI of this machine's apt configuration
	apt-get indextargets --format '$(REPO_URI) $(RELEASE)' 'Created-By: Packages' |
		awk -v wanted="$1" '($2 ~ /-security$/) == (wanted == "security") { sub("/$", "", $1); print $1; exit }'
}

make_root() {
	echo "A root of Debian's $suite in $root"
	rm -rf --one-file-system "$root" "$root.new"
	debootstrap --variant=minbase --include=$packages $suite "$root.new" "$(archive main)" >"$place/debootstrap.log" 2>&1 ||
		cannot "debootstrap failed; the end of $place/debootstrap.log:" "$(tail -n 5 "$place/debootstrap.log")"
	mv "$root.new" "$root"
}

licences() { # of a kernel's source: GPL-2.0, and what COPYING says of it
	local tarball=${1##*/}
	tarball=${tarball%%_*}
	[ ! -f "$place/licences/$tarball/COPYING" ] || return 0
	mkdir -p "$place/licences/$tarball"
	dpkg-deb --fsys-tarfile "$1" | tar -x -O "./usr/src/$tarball.tar.xz" |
		tar -x -J --strip-components=1 -C "$place/licences/$tarball" \
			"$tarball/COPYING" "$tarball/LICENSES/preferred/GPL-2.0" "$tarball/LICENSES/exceptions/Linux-syscall-note"
}

fetch() { # the files of setup/wheels.txt
	local kind where path sum file found=0
	mkdir -p "$sources"
	while read -r kind where path sum; do
		[ "$kind" != kernel ] || [ $((found += 1)) -le "$KERNELS" ] || continue
		file=$sources/${path##*/}
		[ -f "$file" ] || {
			"$python" -c 'import shutil, sys, urllib.request as u; shutil.copyfileobj(u.urlopen(sys.argv[1]), sys.stdout.buffer)' \
				"$(archive "$where")/$path" >"$file.part" || cannot "${path##*/} could not be downloaded; if it has left the archive, put it into $sources"
			mv "$file.part" "$file"
		}
		sha256sum --quiet -c - <<<"$sum  $file" || cannot "$file is another file than setup/wheels.txt names"
		[ "$kind" != kernel ] || licences "$file"
		[[ $kind$file != linked*.deb ]] || dpkg-deb -x "$file" "$root/linked"
	done < <(grep -v '^#' "$checkout/setup/wheels.txt")
}

# Programs that must be the root's when netwarp calls them: each enters it in the same directory.
make_tools() {
	local name
	mkdir -p "$work/tools"
	cat >"$work/tools/in-root" <<-END
		#!/bin/sh
		exec chroot '$root' /usr/bin/env -C "\$PWD" PATH=/usr/sbin:/usr/bin:/sbin:/bin "\${0##*/}" "\$@"
	END
	chmod 755 "$work/tools/in-root"
	for name in make gcc ld strip flex bison bc patch getconf python3; do ln -sf in-root "$work/tools/$name"; done
}

build() { # in the namespace: the kernels, the programs, the wheels
	local key headers static dynamic libraries make of_12 package licence
	mount --bind "$work" /mnt
	mount --bind "$work" "$root/mnt"
	mount -t proc proc "$root/proc"
	export PATH=/mnt/tools:$PATH NETWARP_CACHE=/mnt/cache PYTHONPATH=/mnt/source/orchestrator LC_ALL=C
	cd /mnt/source
	while read -r _ _ path _; do
		"$python" -B -m netwarp.cli.kernel build --source "$sources/${path##*/}"
	done < <(grep '^kernel ' setup/wheels.txt | head -n "$KERNELS")
	key=$("$python" -B -m netwarp.cli.kernel list --json | "$python" -c 'import json, sys; print(next(b["key"] for b in json.load(sys.stdin) if b["default"]))')
	headers=/mnt/cache/kernels/$key/include
	mkdir -p /mnt/bzip2
	tar -x -z --strip-components=1 -C /mnt/bzip2 -f "$sources"/bzip2_*.orig.tar.gz
	make --silent -C /mnt/bzip2 libbz2.a CFLAGS='-O2 -fPIC' >/dev/null
	mapfile -t static < <(sed -n 's/_LDFLAGS := -static$//p' apps/*/module.mk)
	mapfile -t dynamic < <(sed -n 's/^PROGRAMS += //p' apps/*/module.mk | tr ' ' '\n' | grep -vxF "$(printf '%s\n' "${static[@]}")")
	mapfile -t libraries < <(sed -n 's/^LIBRARIES += //p' apps/*/module.mk)
	make=(make --silent -C apps CFLAGS=-O2 KERNEL_HEADERS="$headers")
	"${make[@]}" "${dynamic[@]/#/../build/bin/}" "${libraries[@]/#/../build/lib/}" \
		ANALYZER_LIBS='-L/mnt/bzip2 -Wl,-Bstatic -lzstd -lz -llzma -lbz2 -llz4 -Wl,-Bdynamic -Wl,--exclude-libs,ALL'
	# Debian 12's C library, that of the references: its malloc draws from the kernel's generator, Debian 11's does not.
	of_12=/linked/usr/lib/x86_64-linux-gnu
	"${make[@]}" BUILD=../build/static CC="gcc --sysroot=/linked -B$of_12 -L$of_12" "${static[@]/#/../build/static/bin/}"
	cp build/static/bin/* build/bin
	strip build/bin/* build/lib/*.so
	for package in "${linked[@]}"; do
		licence=usr/share/doc/$package/copyright
		[ ! -f "$root/linked/$licence" ] || licence=linked/$licence
		install -D -m 644 "$root/$licence" "/mnt/linked/$package"
	done
	cp -r "$place/licences" /mnt/linked
	printf '%s\n' "$COMMIT" >commit.json
	"$python" -B setup/pack_wheels.py lay /mnt/laid
	python3 -B setup/pack_wheels.py pack /mnt/laid /mnt/dist
}
if [ "${1:-}" = inside ]; then
	build
	exit
fi

[ "$(id -u)" = 0 ] || cannot "a root of another Debian needs root (it mounts): sudo make wheels"
command -v debootstrap >/dev/null || cannot "there is no debootstrap on this machine: setup/packages.sh bare"
command -v apt-get >/dev/null || cannot "the root comes from this machine's apt configuration, and there is no apt here"
export KERNELS=9
[ "${1:-}" != --default ] || KERNELS=1
mkdir -p "$place"
[ -d "$root" ] || make_root
fetch
rm -rf "$work"/{source,laid,linked,dist}
mkdir -p "$work/source"
git -C "$checkout" archive HEAD | tar -x -C "$work/source"
COMMIT=$(git -C "$checkout" log -1 --format='{"commit": "%H"}') && export COMMIT
make_tools
unshare --mount --propagation private "$checkout/setup/wheels.sh" inside
rm -rf "$dist"
cp -r "$work/dist" "$dist"
mkdir -p "$dist/source"
git -C "$checkout" archive --format=tar.gz --prefix=netwarp/ -o "$dist/source/netwarp.tar.gz" HEAD
cp "$sources"/* "$dist/source"
(cd "$dist" && sha256sum ./*.whl source/* >SHA256SUMS && cat SHA256SUMS)
