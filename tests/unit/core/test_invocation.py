"""Commands to type next: quoted, with the program as it was started."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from netwarp.core import invocation
from support.checkout import ROOT

SAYS = "import sys; from netwarp.core.invocation import more; print(more(sys.argv[1:], '--resume'))"
WORDS = ["run", "my spec.toml", "--where", "outage=10 s"]


def test_options_are_added_where_they_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(invocation, "program", lambda: ["net warp"])
    assert invocation.more(WORDS, "--out", Path("a b"), "--resume") == (
        "'net warp' run 'my spec.toml' --where 'outage=10 s' --out 'a b' --resume"
    )
    assert invocation.more(["run", "--", "-x"], "--resume") == "'net warp' run --resume -- -x"


@pytest.mark.parametrize("form", ["script", "path"])
def test_the_script_is_named_as_it_was_started(form: str, tmp_path: Path) -> None:
    """By its path, however the shell found it."""
    script = tmp_path / "bin dir" / "netwarp"
    script.parent.mkdir()
    script.write_text(f"#!{sys.executable}\nimport sys\nsys.path.insert(0, {str(ROOT)!r})\n{SAYS}\n")
    script.chmod(0o755)
    program, found = ("bin dir/netwarp",) * 2 if form == "script" else ("netwarp", str(script))
    line = shlex.join([program, *WORDS])
    path = {"PATH": f"{script.parent}:/usr/bin:/bin"}
    done = subprocess.run(["sh", "-c", line], cwd=tmp_path, env=path, capture_output=True, text=True, check=True)
    assert shlex.split(done.stdout) == [found, *WORDS, "--resume"]


def test_a_module_is_named_with_its_python() -> None:
    module = [sys.executable, "-m", "netwarp"]
    done = subprocess.run([*module, "run"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert f"`{shlex.join([*module, 'run', 'choi2009'])}`" in done.stderr
