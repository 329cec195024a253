"""A source tree that a real `make` builds in a moment: it has the targets of Linux' Makefile, and none of its code."""

import os
from pathlib import Path

KCONFIG = """\
config GENERIC_CALIBRATE_DELAY
	bool
	default y

config HZ
	int
	default 100

config NR_CPUS
	int
	range 1 1
	default 1
"""

MAKEFILE = """\
VERSION = 6
PATCHLEVEL = 12
RUSTC = rustc
allnoconfig:
	cp $(KCONFIG_ALLCONFIG) .config
	echo CONFIG_RUSTC_VERSION=`$(RUSTC) --version || echo 0` >> .config
olddefconfig:
	@echo olddefconfig
linux: main.c
	@echo "  CC      main.o"
	@echo one >> {builds}
	@{during}
	gcc -o linux main.c
	mkdir -p include/config
	echo 6.12.999 > include/config/kernel.release
headers:
	mkdir -p usr/include/linux
	echo '#define SCTP_TEST 1' > usr/include/linux/sctp.h
mrproper:
	rm -f stale.o .config
"""

RELEASE = "6.12.999"
MAIN = '#include <stdio.h>\nint main(void) { puts("6.12.999"); return 0; }\n'
PATCH = """\
From: somebody
Subject: [PATCH] another status

--- a/main.c
+++ b/main.c
@@ -1,2 +1,2 @@
 #include <stdio.h>
-int main(void) { puts("6.12.999"); return 0; }
+int main(void) { puts("6.12.999"); return 1; }
"""


def make_tree(root: Path, during: str = "true", *, drops: str = "", release: str = RELEASE) -> Path:
    """A tree below `root`. during: a shell command run in the middle of `make linux`; a line is added to
    root/builds each time that is reached. drops: an option that olddefconfig silently takes away."""
    tree = root / "source" if release == RELEASE else root / f"source-{release}"
    (tree / "arch/um").mkdir(parents=True)
    (tree / "arch/um/Kconfig").write_text(KCONFIG)
    makefile = MAKEFILE.replace("{builds}", str(root / "builds")).replace("{during}", during)
    if drops:
        makefile = makefile.replace("@echo olddefconfig", f"sed -i /CONFIG_{drops}=/d .config")
    makefile = makefile.replace("PATCHLEVEL = 12", f"PATCHLEVEL = {release.split('.')[1]}")
    (tree / "Makefile").write_text(makefile.replace(RELEASE, release))
    (tree / "main.c").write_text(MAIN.replace(RELEASE, release))
    return tree


def contents(tree: Path) -> dict[str, bytes | str]:
    """Every file of a tree and what is in it."""
    return {
        os.path.relpath(path, tree): os.readlink(path) if path.is_symlink() else path.read_bytes()
        for path in tree.rglob("*")
        if path.is_symlink() or path.is_file()
    }


def builds(root: Path) -> int:
    """How often `make linux` was reached."""
    path = root / "builds"
    return len(path.read_text().splitlines()) if path.exists() else 0
