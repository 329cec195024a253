#!/usr/bin/env bash
# action-test.sh: the steps of action.yml (.ci/action.sh) with the wheels of dist/: a run passes, is equal to itself as the reference, and is refused
# if a capture of the reference is another one.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
place=build/action
rm -rf $place
mkdir -p $place
.venv/bin/netwarp plan --example >$place/one.toml
export WHERE=$'protocol=tcp\nrate=1 Mbit/s'
export WHEELS=dist
SPEC=$place/one.toml OUT=$place/golden .ci/action.sh
SPEC=$place/one.toml OUT=$place/again REFERENCE=$place/golden .ci/action.sh | tee $place/again.txt
grep -q 'of 1 cells 1 equal' $place/again.txt
[ -s $place/again.junit.xml ] && [ -s $place/again/report/index.html ]
status=0
cp -r $place/golden $place/spoilt
for capture in $place/spoilt/cells/*/capture/a-p1.*; do cp "${capture/a-p1/b-p1}" "$capture"; done
SPEC=$place/one.toml OUT=$place/other REFERENCE=$place/spoilt .ci/action.sh | tee $place/other.txt || status=$?
[ $status = 1 ]
grep -q 'of 1 cells 0 equal' $place/other.txt
echo "action.yml's steps: a run passes, and one whose captures differ does not"
