"""The Python in README and documentation: all blocks of a page in order, in one folder and one namespace."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT

PAGES = [
    "python/README.md", "docs/python.md", "docs/python-own-parts.md", "docs/python-sweeps.md",
]


def blocks(page: str) -> list[tuple[str, str, int]]:
    """Language, text and line of each fenced block."""
    text = (ROOT / page).read_text(encoding="utf-8")
    found = re.finditer(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [(match[1], match[2], text[: match.start()].count("\n") + 2) for match in found]


@pytest.mark.parametrize("page", PAGES)
def test_every_block_runs(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    if page == "docs/python-sweeps.md":
        for package in ("distributed", "matplotlib"):
            pytest.importorskip(package, reason=f"skipped: no package {package}")
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, Any] = {"__name__": "__main__"}
    ran, printed = 0, ""
    for language, text, line in blocks(page):
        if language == "python":
            # So that a traceback names the line of the page.
            exec(compile("\n" * (line - 1) + text, page, "exec"), namespace)
            printed = capsys.readouterr().out
            ran += 1
        elif language == "text" and ran and page == "docs/python.md":
            for shown in text.splitlines():
                assert shown.strip() in printed, f"{page}:{line}: the output lacks {shown!r}:\n{printed}"
    assert ran > 0, f"{page} has no Python"
