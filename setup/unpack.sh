#!/usr/bin/env bash
# unpack.sh: downloads the packages of kind `unpacked` (packages.txt), and what they depend on that is not installed, and unpacks them into
# build/packages. Nothing is installed, so that no daemon ever starts on this machine; needs no root. Says nothing when all is there.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

root=build/packages
mapfile -t wanted < <(awk '!/^#/ && $1 == "unpacked" { print $2 }' setup/packages.txt)
[ "$(cat "$root/.unpacked" 2>/dev/null)" != "${wanted[*]}" ] || exit 0
if ! command -v apt-get >/dev/null; then
	echo "This is no Debian: servers cannot be unpacked; cells that need ${wanted[*]} are UNSUPPORTED" >&2
	exit 1
fi

# What no suite of this system has is left out (ngtcp2 is not in every one).
find_known() {
	mapfile -t known < <(for name in "${wanted[@]}"; do if apt-cache show "$name" >/dev/null 2>&1; then echo "$name"; fi; done)
}
find_known
if [ "${#known[@]}" -lt "${#wanted[@]}" ] && [ "$(id -u)" = 0 ]; then
	apt-get -q update
	find_known
fi
[ "${#known[@]}" -gt 0 ] || { echo "apt knows no such packages: ${wanted[*]}; as root: apt-get update" >&2; exit 1; }
# A simulated installation names what is missing; it needs no root.
missing() {
	LC_ALL=C apt-get -s -q install --no-install-recommends "${known[@]}" | awk '$1 == "Inst" { print $2 }'
}
names=$(missing)
for name in "${wanted[@]}"; do
	case " ${known[*]} " in *" $name "*) ;; *) echo "apt knows no package $name: cells that need it are UNSUPPORTED" >&2 ;; esac
done
mapfile -t names < <(printf '%s\n' "${known[@]}" $names | sort -u)

echo "Unpacking packages into $root: ${names[*]}"
# what was unpacked before stays until the new one is whole
new=$root.new
rm -rf "$new"
mkdir -p "$new/.downloads"
download() { (cd "$new/.downloads" && apt-get -qq -o Acquire::Retries=3 -o APT::Sandbox::User=root download "${names[@]}"); }
# a list that is too old names versions that are gone
if ! download; then
	[ "$(id -u)" = 0 ] || { echo "apt cannot download them: no network, or lists that are too old (as root: apt-get update)" >&2; exit 1; }
	apt-get -q update
	download
fi
for package in "$new"/.downloads/*.deb; do
	dpkg-deb -x "$package" "$new"
done
# programs and libraries alone: links to what is not unpacked would lead nowhere
rm -rf "$new"/{.downloads,etc,var,usr/share}
find "$new" -type l -lname '/etc/*' -delete
# whoever runs the cells has to be able to read them
chmod -R a+rX "$new"
printf %s "${wanted[*]}" >"$new/.unpacked"
rm -rf "$root"
mv "$new" "$root"
