"""The live page in a cell of a notebook, or in a browser."""

from __future__ import annotations

import html
import os
import subprocess
import sys
import tempfile
import weakref
from pathlib import Path

from overspin._overspin import Scenario
from overspin.errors import Error

#: The command of this package, wherever its script was installed.
COMMAND = (sys.executable, "-c", "from overspin._command import main; main()")
#: Seconds that the server has to end before it is killed.
PATIENCE = 10.0


class LivePage:
    """A live page that is being served: a cell shows it, and `address` opens it in a browser of this machine.

    It ends with `close`, with a `with` block, or with the interpreter.
    """

    def __init__(
        self,
        scenarios: tuple[Scenario | str | os.PathLike[str], ...],
        out: str | os.PathLike[str] | None,
        max_wall: float,
        height: int,
    ) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="overspin-")
        files = [self._file(number, scenario) for number, scenario in enumerate(scenarios, 1)]
        arguments = ["serve", *files, "--quiet", "--max-wall", f"{max_wall:g}s"]
        if out is not None:
            arguments += ["--out", os.fspath(out)]
        self._server = subprocess.Popen(
            [*COMMAND, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self._end = weakref.finalize(self, _end, self._server, self._folder)
        self.height = height
        assert self._server.stdout is not None and self._server.stderr is not None
        #: The address of the page. Anyone who has it can run the simulator, and nothing else.
        self.address = self._server.stdout.readline().strip()
        if not self.address:
            cause, _, remedy = self._server.stderr.read().strip().partition("\n help: ")
            self.close()
            raise Error(cause.removeprefix("error: "), remedy)

    def _file(self, number: int, scenario: Scenario | str | os.PathLike[str]) -> str:
        """The file of a scenario: one that is in memory is written for the page."""
        if not isinstance(scenario, Scenario):
            return os.fspath(scenario)
        file = Path(self._folder.name) / f"{number}.toml"
        file.write_text(scenario.to_toml(), encoding="utf-8")
        return str(file)

    def close(self) -> None:
        """Ends the page. Ending it again does nothing."""
        self._end()

    def __enter__(self) -> LivePage:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _repr_html_(self) -> str:
        address = html.escape(self.address)
        style = f"width: 100%; height: {self.height}px; border: 0"
        return f'<iframe src="{address}" title="overspin" allow="clipboard-write" style="{style}"></iframe>'

    def __repr__(self) -> str:
        return f"<overspin.LivePage: {self.address if self._end.alive else 'closed'}>"


def _end(server: subprocess.Popen[str], folder: tempfile.TemporaryDirectory[str]) -> None:
    server.terminate()
    try:
        server.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        server.kill()
        server.communicate()
    folder.cleanup()


def live(
    *scenarios: Scenario | str | os.PathLike[str],
    out: str | os.PathLike[str] | None = None,
    max_wall: float = 10.0,
    height: int = 900,
) -> LivePage:
    """The live page of `overspin serve`: controls for locks, schedulers and sizes, and the results that follow them.

    As the last value of a notebook's cell it is shown there, if the browser runs on the same machine as Python.

    Args:
        scenarios: what the page offers besides examples and experiments: scenarios, or paths of their files.
        out: the folder of the results that the reader keeps.
        max_wall: seconds of real time after which a run is stopped.
        height: pixels of the cell.

    Raises:
        Error: if the page cannot be served.
    """
    return LivePage(scenarios, out, max_wall, height)
