# From a bare machine to a result: `make choi2009`. Every target makes what it needs first.
# make TARGET ARGS='...' passes options on; `make help` lists the targets.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory -j2

# The system's Python: one found in PATH may live in a home that a guest's ordinary user cannot read.
PYTHON ?= /usr/bin/python3
ARGS ?=
# harm is a box to be searched, not to be run whole
EXPERIMENTS := $(filter-out harm,$(patsubst experiments/%/spec.toml,%,$(wildcard experiments/*/spec.toml)))
NETWARP := .venv/bin/netwarp
# The stamp names the checkout it was made in: a moved one gets a new environment.
READY := .venv/.ready
DEV_READY := .venv/.ready-dev
FIRST := build/first

# A target's comment begins with its group: `##tests every test`. Experiments have the titles of their specs.
help: ##start this list
	@awk -F ':.*##' -v order='start experiments tests kernels upkeep' '\
		function add(group, name, text) { lines[group] = lines[group] sprintf("  make %-18s %s\n", name, text) } \
		/^[a-z-]+:.*##[a-z]+ / { split($$2, words, " "); add(words[1], $$1, substr($$2, length(words[1]) + 2)) } \
		/^title = "/ && FILENAME ~ /spec.toml$$/ && !seen[FILENAME]++ { split(FILENAME, path, "/"); title = $$0; gsub(/^title = "|"$$/, "", title); add("experiments", path[2], title) } \
		END { n = split(order, groups, " "); for (i = 1; i <= n; i++) printf "%s%s:\n%s", (i == 1 ? "" : "\n"), groups[i], lines[groups[i]] }' \
		$(firstword $(MAKEFILE_LIST)) $(EXPERIMENTS:%=experiments/%/spec.toml)

# With the distribution's kernel the example would wait out its minute on the wall clock.
setup: $(READY) kernel apps $(if $(filter packaged,$(KERNEL)),,$(FIRST)/.shown) ##start packages, .venv, guest kernel (once, minutes), apps, a first table; again: seconds
	@$(if $(filter setup,$(MAKECMDGOALS)),echo "Set up. Next: make help lists the experiments; make choi2009 runs one",:)

# The example of `netwarp plan --example`, once: its table comes as soon as guests can run, before what takes longer.
$(FIRST)/.shown: | $(READY) kernel apps
	@rm -rf $(FIRST) && mkdir -p $(FIRST)
	@$(NETWARP) plan --example > $(FIRST)/example.toml
	@if $(NETWARP) run $(FIRST)/example.toml --out $(FIRST)/run; then touch $@; else echo "The example did not run; what this machine lacks: make doctor"; fi

# Whatever a target needs is installed at once: a target says which kinds of packages it needs besides `run`, and what it
# is made from inherits that. Whoever comes later (`make setup test`) installs the rest.
KINDS := run
packages:
	@setup/packages.sh $(KINDS)

test-packages: packages
	@setup/packages.sh test

ifneq ($(wildcard $(READY)),)
ifneq ($(file <$(READY)),$(CURDIR))
$(READY): moved
endif
endif
# EXTRAS=all: what search, --parquet, --executor dask and --backend hosts need, too (of requirements-dev.lock)
ifeq ($(EXTRAS),all)
$(READY): moved
endif
moved:

$(READY): requirements.lock pyproject.toml | packages
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "netwarp needs Python 3.11 or newer, $(PYTHON) is " + sys.version.split()[0])'
	@echo "Python packages: .venv from requirements.lock"
	@if ! .venv/bin/python -c '' 2>/dev/null || { [ -e $@ ] && [ "$$(<$@)" != "$(CURDIR)" ]; }; then $(PYTHON) -m venv --clear .venv; fi
	@.venv/bin/python -m pip install --quiet --require-hashes -r requirements.lock
	@.venv/bin/python -m pip install --quiet --no-deps --no-index --no-build-isolation --editable .
	@if [ "$(EXTRAS)" = all ]; then .venv/bin/python -m pip install --quiet --require-hashes -r requirements-dev.lock; fi
	@.venv/bin/python -m compileall -q orchestrator
	@printf %s "$(CURDIR)" > $@

$(DEV_READY) chaos check fuzz-examples fuzz-doors fuzz-studies determinism bisect-test test-ready lint format: KINDS += test
test-ready android android-apps: KINDS += android

$(DEV_READY): requirements-dev.lock $(READY) | test-packages
	@echo "Python packages for tests: .venv from requirements-dev.lock"
	@.venv/bin/python -m pip install --quiet --require-hashes -r requirements-dev.lock
	@touch $@

# KERNEL=packaged: no build (minutes), the distribution's User-Mode Linux instead: for --backend guest alone
ifeq ($(KERNEL),packaged)
kernel: packages
	@setup/packages.sh packaged-kernel
	@PYTHONPATH=orchestrator $(PYTHON) -m netwarp.cli.kernel headers --link build/kernel-headers
else
kernel: packages ##kernels the guest kernel, unless it is in the cache: a wheel's in dist/, or built (KERNEL=build|packaged: built; the distribution's)
	@PYTHONPATH=orchestrator $(PYTHON) -m netwarp.cli.kernel build --if-missing $(if $(filter build,$(KERNEL)),,--wheels dist) \
		--headers-link build/kernel-headers
endif

apps: kernel ##upkeep the C programs, into build/
	@$(MAKE) --silent -C apps all

android-packages: packages
	@setup/packages.sh android

android-apps: $(READY) android-packages kernel # sender and receiver for arm64, into build/android
	@PYTHONPATH=orchestrator $(PYTHON) -m netwarp.cli.kernel headers --arch arm64 --link build/android/kernel-headers
	@$(MAKE) --silent -C apps android

android: android-apps

$(EXPERIMENTS): setup
	@$(NETWARP) run $@ $(ARGS)

harm: setup $(DEV_READY) ##experiments where one congestion control takes most from another: a search (docs/search.md)
	@$(NETWARP) search $@ --minimise share_all_run_ratio --flow victim $(if $(findstring --points,$(ARGS)),,--points 96) $(ARGS)

# KERNEL_TREE: a tree, a tarball, or a release that is built (7.3); left out: the default kernel
referee: setup ##experiments RFCs against a kernel: recovery, rfc9438, bbr, and what differs from the kernels known here (KERNEL_TREE=~/linux)
	@if [ -e "$(KERNEL_TREE)" ]; then $(NETWARP) kernel build --source "$(realpath $(KERNEL_TREE))"; fi
	@for name in recovery rfc9438 bbr; do \
		$(NETWARP) run $$name $(if $(KERNEL_TREE),--set kernel=$(or $(realpath $(KERNEL_TREE)),$(KERNEL_TREE))) $(ARGS) && \
		.venv/bin/python experiments/golden.py compare results/$$name/latest || exit 1; done

programs: packages apps ##experiments web servers and signalling daemons for the guests, into build/packages (downloaded and unpacked, not installed)
	@setup/unpack.sh && $(MAKE) --silent -C apps packaged

web-agreement daemons usrsctp quic: programs

papers: setup ##experiments a page over the papers' conclusions: results/papers.html
	@.venv/bin/python experiments/papers.py && echo results/papers.html

doctor: ##start what this machine can run and what it lacks; needs nothing but Python
	@if [ -x $(NETWARP) ] && [ -e $(READY) ]; then $(NETWARP) doctor $(ARGS); \
	elif command -v $(PYTHON) >/dev/null; then PYTHONPATH=orchestrator $(PYTHON) -B -m netwarp doctor $(ARGS); \
	else setup/packages.sh run; exit 1; fi

test-ready: setup $(DEV_READY) android-packages
	@if command -v aarch64-linux-gnu-gcc >/dev/null; then $(MAKE) --silent android-apps; fi
	@{ setup/unpack.sh && $(MAKE) --silent -C apps packaged; } || echo "Tests that need packaged servers and daemons are skipped"
	@$(MAKE) --silent -C apps san

# Guests come first and take most: who has run all of its tests takes the rest of another's.
test: test-ready ##tests every test (ARGS='-k NAME' chooses)
	@.venv/bin/python -m pytest -n auto --dist worksteal $(ARGS)

# The way of a number: what is written, planned, played, captured, measured and judged. Tests marked slow (over five seconds of CPU) are not among them.
CHECKED := $(addprefix tests/unit/,core experiment plan testbed store captures measure results) \
	tests/guest/cell_init/test_steps.py tests/guest/measure/test_cell.py
check: setup $(DEV_READY) ##tests the quick tests, two minutes: the rooms that a number comes through, and some guests
	@$(MAKE) --silent -C apps san
	@.venv/bin/python -m pytest -n auto --dist worksteal -m 'not slow' $(CHECKED) $(ARGS)

chaos: setup $(DEV_READY) ##tests kill -9 of everything at random moments, 100 times (ARGS='--kills N --seed N --backends virtual,guest,netns,dask')
	@PYTHONPATH=tests .venv/bin/python -m support.chaos $(ARGS)

fuzz-studies: setup $(DEV_READY) ##tests drawn experiments, each number held against an oracle (ARGS='--studies N --seed N --shrink')
	@PYTHONPATH=tests .venv/bin/python -m studies $(ARGS)

determinism: setup $(DEV_READY) ##tests equal cells in unlike directories, under load, stopped: the first packet that differs (ARGS='--cells N --seed N')
	@PYTHONPATH=tests .venv/bin/python -m support.determinism $(ARGS)

bisect-test: setup $(DEV_READY) ##kernels git bisect and kernel watch --over find a regression planted in a history of Linux (docs/bisect.md); minutes
	@PYTHONPATH=tests .venv/bin/python -m support.bisect_history $(ARGS)

calibrate: setup ##experiments measured against configured: every profile, option and fault, with bounds
	@$(NETWARP) calibrate $(ARGS)

bench: setup ##experiments what a cell costs on this machine
	@.venv/bin/python benchmarks/cells.py $(ARGS)

bench-analysis: setup ##experiments how fast the analyser is, beside tshark and tcptrace (makes its captures in a guest)
	@OPENBLAS_NUM_THREADS=1 .venv/bin/python benchmarks/analysis.py $(ARGS)

FUZZ_PARTS := examples studies doors
fuzz: ##tests inputs drawn anew in each run, which `make test` draws once for all; a part: make fuzz-examples, fuzz-studies, fuzz-doors
	@for part in $(FUZZ_PARTS); do $(MAKE) fuzz-$$part ARGS= || exit 1; done

# examples of hypothesis; a failure prints what draws it again
fuzz-examples: setup $(DEV_READY)
	@.venv/bin/python -m pytest -n auto --dist worksteal --hypothesis-profile=fuzz -m hypothesis tests/unit $(ARGS)

# what a stranger may hand in: bundles, plans, run directories, packs, captures, inventories, side files; CI gives it two minutes
fuzz-doors: setup $(DEV_READY)
	@.venv/bin/python tests/fuzz/doors.py $(or $(ARGS),--seconds 3600 --seed $$(date +%s))

lab: setup ##tests a laboratory: three machines (guests on the wall clock) with sshd, cabled in a namespace; build/lab/inventory.yml
	@.venv/bin/python ansible/lab/lab.py up

lab-test: setup $(DEV_READY) ##tests playbooks and cells in a new laboratory, every machine afterwards as before; then ends it
	@.venv/bin/python ansible/lab/lab.py down
	@.venv/bin/python ansible/lab/lab.py up
	@status=0; NETWARP_LAB_TEST=1 .venv/bin/python -m pytest tests/hosts $(ARGS) || status=$$?; .venv/bin/python ansible/lab/lab.py down; exit $$status

lab-down: ##tests end the laboratory
	@.venv/bin/python ansible/lab/lab.py down

wheels: ##upkeep dist/: netwarp and its guest kernels as wheels, with their sources (root, debootstrap; docs/wheels.md)
	@setup/wheels.sh

anywhere: ##tests the wheels on bare systems: times, and captures against results/reference (root, debootstrap; ARGS='bookworm sid')
	@setup/anywhere.sh $(ARGS)

bare: ##tests the same as an ordinary user on a bare system: choi2009, test, lint (root, debootstrap; ARGS='lint doctor' chooses)
	@setup/bare.sh $(or $(ARGS),choi2009 test lint)

lint: setup $(DEV_READY) ##tests layout, types, imports between rooms, plans of all experiments; changes nothing
	@.venv/bin/ruff check .
	@.venv/bin/ruff format --check .
	@.venv/bin/mypy
	@.venv/bin/lint-imports
	@# 77: programs of some cells are not there (make programs), which is no fault of the plan
	@for name in $(EXPERIMENTS); do .venv/bin/netwarp plan $$name > /dev/null || [ $$? = 77 ] || exit 1; done
	@git ls-files -z -- '*.c' '*.h' | xargs -0 -r clang-format --dry-run -Werror
	@cd ansible && ../.venv/bin/yamllint --strict . && PATH="$(CURDIR)/.venv/bin:$$PATH" ../.venv/bin/ansible-lint --offline --nocolor -q

format: $(DEV_READY) ##upkeep lay out Python and C as lint wants them
	@.venv/bin/ruff check --fix-only --quiet .
	@.venv/bin/ruff format .
	@git ls-files -z -- '*.c' '*.h' | xargs -0 -r clang-format -i

lock: ##upkeep make requirements*.lock again from pyproject.toml
	@$(PYTHON) -m venv build/uv && build/uv/bin/pip install --quiet uv
	@$(LOCK) pyproject.toml --group build -o requirements.lock
	@$(LOCK) --group dev -c requirements.lock -o requirements-dev.lock
LOCK := build/uv/bin/uv pip compile --quiet --universal --fork-strategy fewest --python-version 3.11 --generate-hashes \
	--no-annotate --no-header

clean: ##upkeep remove what was built in the checkout (not results, not the cached kernel)
	rm -rf build .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

.PHONY: fuzz-studies harm referee wheels anywhere papers programs help setup packages test-packages android-packages android-apps moved kernel apps doctor chaos determinism calibrate bench bench-analysis test check test-ready fuzz fuzz-examples fuzz-doors lab lab-test lab-down bare lint format lock clean $(EXPERIMENTS)
