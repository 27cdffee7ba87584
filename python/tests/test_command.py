"""The command that comes with the package."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from conftest import LONG, SMALL

import overspin

COMMAND = Path(sys.executable).with_name("overspin")


@pytest.fixture(autouse=True)
def installed() -> None:
    """Skips the tests where the package was installed without its scripts."""
    if not COMMAND.is_file():
        pytest.skip(f"skipped: no {COMMAND}")


def command(*arguments: object, **more: Any) -> subprocess.CompletedProcess[str]:
    """Runs the command."""
    return subprocess.run([COMMAND, *map(str, arguments)], capture_output=True, text=True, **more)


def test_it_is_the_command() -> None:
    done = command("--version")
    assert done.returncode == 0 and done.stdout.startswith(f"overspin {overspin.__version__} ("), done.stdout


def test_exit_codes_and_messages(tmp_path: Path) -> None:
    wrong = command("bogus")
    assert wrong.returncode == 2 and "unrecognized subcommand 'bogus'" in wrong.stderr
    (tmp_path / "wrong.toml").write_text(SMALL.replace("ticket", "tiket"))
    located = command("run", tmp_path / "wrong.toml")
    assert located.returncode == 2 and "wrong.toml:9:8" in located.stderr and "\x1b" not in located.stderr


def test_records_name_the_command_as_it_was_given(tmp_path: Path) -> None:
    (tmp_path / "small.toml").write_text(SMALL)
    done = command("run", "small.toml", "--seeds", 3, "--json", "r.json", "--quiet", cwd=tmp_path)
    assert done.returncode == 0 and not done.stdout
    record = json.loads((tmp_path / "r.json").read_text())
    assert record["command"] == "overspin run small.toml --seeds 3 --json r.json --quiet"
    result = overspin.Result.load(tmp_path / "r.json")
    assert result.kind == "seeds" and len(result.runs) == 3
    with pytest.raises(overspin.UnknownName, match="`busy` has 3 values"):
        result.metric("busy")


def test_the_first_ctrl_c_keeps_what_there_is(tmp_path: Path) -> None:
    (tmp_path / "long.toml").write_text(LONG)
    child = subprocess.Popen(
        [COMMAND, "run", "long.toml", "--json", "r.json"], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    time.sleep(1.0)
    child.send_signal(signal.SIGINT)
    _, messages = child.communicate(timeout=60)
    assert child.returncode == 130 and b"finished results are kept" in messages and b"Traceback" not in messages
    assert overspin.Result.load(tmp_path / "r.json").ending == "stopped"


def test_exec_finds_its_library() -> None:
    if not Path(overspin.__file__).with_name("liboverspin_preload.so").is_file():
        pytest.skip("skipped: the package was built without the preload library")
    done = command("exec", "--lock", "mcs-tp", "--stats", "--", sys.executable, "-c", "print('alive')")
    assert done.returncode == 0 and done.stdout == "alive\n", done.stderr
