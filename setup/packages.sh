#!/usr/bin/env bash
# packages.sh run|test|android|packaged-kernel: makes sure the packages of that kind (packages.txt) are installed, with root or `sudo -n`.
# Where neither is there it prints the one line to type and exits 1. Says nothing when all are installed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

mapfile -t wanted < <(awk -v kind="$1" '$1 == kind { print $2 }' packages.txt)
if ! command -v dpkg-query >/dev/null; then
	echo "This is no Debian: make sure that what these packages hold is installed: ${wanted[*]}" >&2
	exit 0
fi
installed=$(dpkg-query -W -f '${Package} ${db:Status-Status}\n' "${wanted[@]}" 2>/dev/null | awk '$2 == "installed" { print $1 }') || true
missing=()
for package in "${wanted[@]}"; do
	grep -qxF "$package" <<<"$installed" || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0

install=(apt-get install -y --no-install-recommends "${missing[@]}")
if [ "$(id -u)" = 0 ]; then
	become=()
elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
	become=(sudo -n)
else
	echo "Packages are missing, and installing them needs root. Type this, then start again:" >&2
	echo "  sudo apt-get update && sudo ${install[*]}" >&2
	exit 1
fi
echo "Installing packages: ${missing[*]}"
apt=("${become[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3)
"${apt[@]}" update
"${apt[@]}" "${install[@]:1}"
