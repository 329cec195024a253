"""The list of built programs is what the Makefile builds."""

import re

from netwarp.core.built_programs import BUILT_FILES
from netwarp.core.checkout import CHECKOUT


def test_the_list_is_what_the_makefile_builds() -> None:
    built = set()
    for module in (CHECKOUT / "apps").glob("*/module.mk"):
        for variable, names in re.findall(r"^(PROGRAMS|LIBRARIES) \+= (.*)$", module.read_text(), re.MULTILINE):
            built |= {f"{'bin' if variable == 'PROGRAMS' else 'lib'}/{name}" for name in names.split()}
    assert built == {file.path for file in BUILT_FILES}
