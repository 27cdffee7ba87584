"""The live page: that it is served, shown, and ended. `crates/serve` and a browser test the page."""

from __future__ import annotations

import urllib.error
import urllib.request
from pathlib import Path

import pytest

import overspin


def get(address: str) -> tuple[str, str]:
    """The body of a reply, and its policy."""
    # A proxy of the environment would not reach this machine's own address.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(address, timeout=60) as reply:
        return reply.read().decode(), reply.headers["Content-Security-Policy"]


def test_a_cell_shows_the_page_of_a_scenario(small: overspin.Scenario, tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text(small.to_toml())
    with overspin.live(small, tmp_path / "own.toml", out=tmp_path / "kept", height=700) as page:
        cell = page._repr_html_()
        assert f'src="{page.address}"' in cell and "height: 700px" in cell
        assert page.address in repr(page)
        body, policy = get(page.address)
        assert "small" in body and str(tmp_path / "own.toml") in body
        # A notebook of this machine may frame it, and nobody else.
        assert "frame-ancestors http://127.0.0.1:* http://localhost:*" in policy
        answer, _ = get(page.address + "run")
        assert "The ticket lock of" in answer
    with pytest.raises(urllib.error.URLError):
        get(page.address)
    assert repr(page) == "<overspin.LivePage: closed>"
    page.close()
    assert (tmp_path / "kept").is_dir()


def test_what_cannot_be_served_is_said(tmp_path: Path) -> None:
    with pytest.raises(overspin.Error, match=r"missing\.toml"):
        overspin.live(tmp_path / "missing.toml")
