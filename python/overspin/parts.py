"""Where the rows of a sweep are kept as they come: in memory, or in Parquet files that a killed process leaves whole."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
from pathlib import Path
from typing import IO, Any

from overspin._overspin import MODEL_VERSION, Table, __version__, join, merge_parquet, parquet_note, read_parquet
from overspin.errors import RunError
from overspin.space import Plan

SCHEMA = "overspin-sweep/1"
MANIFEST = "manifest.json"
LOCK = ".lock"
_PART = re.compile(r"(\d{12})-(\d{12})\.parquet")


class Memory:
    """Rows in memory."""

    path: Path | None = None

    def __init__(self) -> None:
        self._tables: dict[int, Table] = {}

    def made(self) -> list[tuple[int, int]]:
        """The numbers of the runs that are there, as ranges."""
        return [(start, start + len(table)) for start, table in self._tables.items()]

    def add(self, start: int, table: Table) -> None:
        """Keeps the rows of the runs from `start` on."""
        self._tables[start] = table

    def finish(self) -> None:
        """All runs are there."""

    def close(self) -> None:
        """No more runs come."""

    def table(self) -> Table:
        """All rows, in the order of their runs."""
        return join([self._tables[start] for start in sorted(self._tables)])


class Files:
    """Rows in a directory, a file for each batch. With the name of a `.parquet` file, the directory stands beside it until
    all runs are there; then their rows move to the file.
    """

    def __init__(self, out: Path, plan: Plan) -> None:
        self.path = out
        self._one = out.suffix == ".parquet"
        self._dir = out.with_name(out.name + ".parts") if self._one else out
        self._note = _note(plan)
        self._whole = False
        #: A finished file, and the number of its runs.
        self._base: tuple[Path, int] | None = None
        self._lock: IO[str] | None = None
        if self._one and out.is_dir():
            raise RunError(f"`{out}` is a directory", "name a directory without .parquet at its end, or a file")
        if not self._one and out.exists() and not out.is_dir():
            raise RunError(f"`{out}` is a file", "give it the ending .parquet, or name a directory")
        if self._one and out.exists():
            there = _read_note(parquet_note(out), out)
            _continues(self._note, there, out)
            self._base = (out, len(plan.points) * len(there["seeds"]))
            self._whole = len(there["seeds"]) == len(plan.seeds)
        if self._whole:
            return
        self._dir.mkdir(parents=True, exist_ok=True)
        self._lock = (self._dir / LOCK).open("w")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._lock.close()
            raise RunError(f"another sweep is writing to `{self._dir}`", "wait for its end, or name another `out`") from None
        try:
            self._begin()
        except BaseException:
            self._lock.close()
            raise

    def _begin(self) -> None:
        manifest = self._dir / MANIFEST
        if manifest.exists():
            _continues(self._note, _read_note(manifest.read_text(encoding="utf-8"), self._dir), self._dir)
        else:
            others = sorted(path.name for path in self._dir.iterdir() if path.name != LOCK)
            if others:
                raise RunError(f"`{self._dir}` holds something else: {others[0]}", "name another `out`")
        for path in self._dir.glob(".*.tmp"):
            # A killed process left it; the lock says that none is at work.
            path.unlink(missing_ok=True)
        temporary = self._dir / f".{MANIFEST}.tmp"
        temporary.write_text(json.dumps(self._note) + "\n", encoding="utf-8")
        temporary.replace(manifest)

    def _parts(self) -> list[tuple[int, int, Path]]:
        found = [] if self._base is None else [(0, self._base[1], self._base[0])]
        if not self._whole:
            for path in self._dir.iterdir():
                if match := _PART.fullmatch(path.name):
                    found.append((int(match[1]), int(match[2]), path))
        return sorted(found)

    def made(self) -> list[tuple[int, int]]:
        return [(start, stop) for start, stop, _ in self._parts()]

    def add(self, start: int, table: Table) -> None:
        path = self._dir / f"{start:012}-{start + len(table):012}.parquet"
        table.to_parquet(path, note=json.dumps({"schema": SCHEMA, "digest": self._note["digest"]}))

    def finish(self) -> None:
        if self._one and not self._whole:
            merge_parquet([path for _, _, path in self._parts()], self.path, json.dumps(self._note))
            self._whole = True
            self._base = (self.path, self._note["points"] * len(self._note["seeds"]))
            shutil.rmtree(self._dir)

    def close(self) -> None:
        if self._lock is not None:
            self._lock.close()

    def table(self) -> Table:
        return join([read_parquet(path) for _, _, path in self._parts()])


Store = Memory | Files


def store(out: str | os.PathLike[str] | None, plan: Plan) -> Store:
    """Where the rows of this plan go.

    Raises:
        RunError: if something else is there.
        OSError: if it cannot be written.
    """
    return Memory() if out is None else Files(Path(out), plan)


def _note(plan: Plan) -> dict[str, Any]:
    """What a file or a directory says about the sweep that it is the result of."""
    return {
        "schema": SCHEMA,
        "overspin": __version__,
        "model": MODEL_VERSION,
        "scenario": plan.name,
        "points": len(plan.points),
        "columns": [name for name, _ in plan.columns],
        "digest": plan.digest,
        "seeds": list(plan.seeds),
    }


def _read_note(text: str | None, path: Path) -> dict[str, Any]:
    try:
        note = json.loads(text or "")
    except ValueError:
        note = None
    if not isinstance(note, dict) or note.get("schema") != SCHEMA:
        raise RunError(f"`{path}` is not the result of a sweep from Python", "name another `out`")
    return note


def _continues(here: dict[str, Any], there: dict[str, Any], path: Path) -> None:
    """Refuses the result of another sweep. More seeds continue a sweep."""
    for key in ("model", "scenario", "points", "columns"):
        if here[key] != there.get(key):
            raise _other(path, f"`{key}` is {there.get(key)} there and {here[key]} here")
    if here["digest"] != there.get("digest"):
        raise _other(path, "the scenario or the values of its points are others")
    seeds = there["seeds"]
    if here["seeds"][: len(seeds)] != seeds:
        raise _other(path, "its seeds are not the first ones of this sweep")


def _other(path: Path, difference: str) -> RunError:
    return RunError(f"`{path}` holds another result: {difference}", "name another `out`, or remove it")
