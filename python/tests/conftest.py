"""What the tests share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import overspin

ROOT = Path(__file__).resolve().parents[2]

#: Two vCPUs take turns at a lock; a run takes a millisecond.
SMALL = """
name = "small"
limit = "5ms"
[host]
cores = 1
[[domain]]
name = "guest"
vcpus = 2
lock = "ticket"
workload = { kind = "lock-loop" }
"""

#: A run of hours, for tests that interrupt it.
LONG = SMALL.replace('"5ms"', '"20h"').replace('"small"', '"long"')


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Prints each skipped test in a line that `.ci/run` finds."""
    for report in terminalreporter.getreports("skipped"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        reason = reason.removeprefix("Skipped: ").removeprefix("skipped: ")
        terminalreporter.write_line(f"skipped: {report.nodeid}: {reason}")


@pytest.fixture
def small() -> overspin.Scenario:
    """A scenario of milliseconds."""
    return overspin.Scenario.from_toml(SMALL)


@pytest.fixture
def long() -> overspin.Scenario:
    """A scenario of hours."""
    return overspin.Scenario.from_toml(LONG)


@pytest.fixture(scope="session")
def overcommitted() -> overspin.Result:
    """A run of an example with long waits."""
    return overspin.run(overspin.Scenario.example("ticket-overcommit"), seed=1)


@pytest.fixture(scope="session")
def binary() -> Path:
    """The command, as cargo builds it."""
    path = Path(os.environ.get("OVERSPIN_BINARY", ROOT / "target/debug/overspin"))
    if not path.is_file():
        pytest.skip(f"skipped: no command {path} to compare with")
    return path
