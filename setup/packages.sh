#!/usr/bin/env bash
# packages.sh KIND...: makes sure the packages of these kinds (packages.txt) are installed, with root or `sudo -n`, all in one installation.
# Where neither is there it prints the one line to type and exits 1. Says nothing when all are installed. Waits while something else uses apt.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

# Another program's apt (unattended-upgrades, a second checkout) may take minutes.
wait_s=${NETWARP_APT_WAIT_S:-600}

kinds=" $* "
for kind in "$@"; do
	awk -v kind="$kind" '!/^#/ && $1 == kind { found = 1 } END { exit !found }' packages.txt || {
		echo "packages.sh: packages.txt has no packages of kind $kind" >&2
		exit 2
	}
done

# Where Ubuntu calls a package of Debian's otherwise, or has none ("-"): ubuntu.txt.
lists=(packages.txt)
distribution=$(. "${NETWARP_OS_RELEASE:-/etc/os-release}" && echo "${ID:-} ${ID_LIKE:-}") 2>/dev/null || distribution=
[[ " $distribution " != *" ubuntu "* ]] || lists=(ubuntu.txt packages.txt)
mapfile -t wanted < <(awk -v kinds="$kinds" '
	/^#/ { next }
	FILENAME == "ubuntu.txt" { name[$1] = $2; next }
	index(kinds, " " $1 " ") && !seen[$2]++ { own = $2 in name ? name[$2] : $2; if (own != "-") print own }
' "${lists[@]}")
if [ ${#wanted[@]} = 0 ]; then
	echo "This distribution has no package of kind $*: setup/ubuntu.txt says what it has instead" >&2
	exit 1
fi
if ! command -v dpkg-query >/dev/null; then
	echo "This is no Debian: make sure that what these packages hold is installed: ${wanted[*]}" >&2
	exit 0
fi

# Sets `missing`.
look() {
	local installed package
	installed=$(dpkg-query -W -f '${Package} ${db:Status-Status}\n' "${wanted[@]}" 2>/dev/null | awk '$2 == "installed" { print $1 }') || true
	missing=()
	for package in "${wanted[@]}"; do
		grep -qxF "$package" <<<"$installed" || missing+=("$package")
	done
}

look
[ ${#missing[@]} -gt 0 ] || exit 0

# `make -j2` may ask for two kinds at once: the second waits, then looks again.
exec 9<packages.txt
if ! flock -n 9; then
	echo "Another set-up of this checkout installs packages: waiting until it has ended"
	flock 9
	look
	[ ${#missing[@]} -gt 0 ] || exit 0
fi

install=(install -y --no-install-recommends "${missing[@]}")
if [ "$(id -u)" = 0 ]; then
	become=()
elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
	become=(sudo -n)
else
	echo "Packages are missing, and installing them needs root. Type this, then start again:" >&2
	echo "  sudo apt-get update && sudo apt-get ${install[*]}" >&2
	exit 1
fi

# One apt-get command, again and again while another program has one of apt's locks. (DPkg::Lock::Timeout covers dpkg's locks
# alone, not that of the package lists.) What apt starts does not inherit our own lock: 9<&-.
apt() {
	local end=$((SECONDS + wait_s)) waiting= said status
	while true; do
		status=0
		{ said=$("${become[@]}" env DEBIAN_FRONTEND=noninteractive LC_ALL=C apt-get -q -o Acquire::Retries=3 "$@" 2>&1 >&3 9<&-) || status=$?; } 3>&1
		if [ $status = 0 ] || [ $SECONDS -ge $end ] || [[ $said != *"E: Could not get lock"* ]]; then
			[ -z "$said" ] || echo "$said" >&2
			return $status
		fi
		[ -n "$waiting" ] || echo "Another program uses apt: waiting for it, for up to $wait_s s (${said%%$'\n'*})"
		waiting=1
		sleep 2
	done
}

echo "Installing packages: ${missing[*]}"
apt update
apt "${install[@]}"
