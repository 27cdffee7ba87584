"""What a sweep runs: its points, their values, its seeds."""

from __future__ import annotations

import itertools
import operator
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, SupportsIndex

from overspin._overspin import MODEL_VERSION, Scenario, Template, __version__, argument
from overspin.errors import RunError

#: Keys with the values of each, or one mapping for each point.
Space = Mapping[str, object] | Iterable[Mapping[str, object]]
#: `--set` arguments, and a value for each column.
Point = tuple[list[str], list[str | None]]

#: More runs than this are a typing mistake.
MOST_RUNS = 100_000_000
#: More points than this would not fit into memory as scenarios to check.
MOST_POINTS = 10_000_000

_NUMBER = re.compile(r"-?\d+(\.\d+)?([eE][+-]?\d+)?")
_HELP = (
    'give a mapping of keys to lists, such as {"domain.guest.lock": ["ticket", "mcs"]}, whose combinations are run; '
    "or a list of mappings, one for each point"
)
_RESERVED = {"run", "seed", "elapsed_us", "ending", "error", "trace_hash"}


@dataclass(frozen=True)
class Batch:
    """Runs that are made together, in one place. It can be pickled."""

    template: Template
    start: int
    points: list[Point]
    jobs: list[tuple[int, int]]
    columns: list[tuple[str, str]]
    #: What must be equal where the runs are made, for equal results.
    version: tuple[str, int] = (__version__, MODEL_VERSION)

    def __len__(self) -> int:
        return len(self.jobs)


@dataclass(frozen=True)
class Plan:
    """All runs of a sweep. They are numbered: all points with the first seed, then all with the second, and so on. So
    more seeds continue a sweep, and batches of equal length take similar time.
    """

    template: Template
    name: str
    #: Axes by name, with their values in words.
    axes: dict[str, tuple[str, ...]]
    #: Name and sort of the column of each axis.
    columns: list[tuple[str, str]]
    points: list[Point]
    seeds: Sequence[int]
    #: Of the scenarios of all points, and of the version of the model.
    digest: str

    def __len__(self) -> int:
        return len(self.points) * len(self.seeds)

    def batch(self, start: int, stop: int) -> Batch:
        """The runs with these numbers."""
        count = len(self.points)
        runs = range(start, stop)
        if len(runs) >= count:
            points = self.points
            jobs = [(run % count, self.seeds[run // count]) for run in runs]
        else:
            points = [self.points[run % count] for run in runs]
            jobs = [(i, self.seeds[run // count]) for i, run in enumerate(runs)]
        return Batch(self.template, start, points, jobs, self.columns)


def plan(scenario: Scenario | str | os.PathLike[str], space: Space | None, seeds: int | Iterable[int] | None) -> Plan:
    """The plan of a sweep; checks the scenario of every point.

    Raises:
        ScenarioError: if a scenario, a key or a value is at fault.
        TypeError, ValueError: if `space` or `seeds` is no such thing.
    """
    if not isinstance(scenario, Scenario):
        scenario = Scenario.from_file(scenario)
    template = Template(scenario)
    if space is None or isinstance(space, Mapping):
        axes, named, points = _product(template, space or {})
    else:
        axes, named, points = _listed(template, space)
    if not points:
        raise ValueError(f"the space has no points\n help: {_HELP}")
    if seeds is None:
        # A scenario file may name its seeds, and so may the space.
        seeds = named or scenario.seeds
    elif named and "seed" in _keys(space):
        raise ValueError("both `space` and `seeds` name seeds\n help: give them once")
    numbers = _seeds(seeds, scenario.seed)
    if len(points) * len(numbers) > MOST_RUNS:
        raise ValueError(f"{len(points) * len(numbers):,} runs are more than {MOST_RUNS:,}\n help: vary less at once")
    columns = [(name, _sort(values)) for name, values in axes.items()]
    digest = template.check([sets for sets, _ in points])
    return Plan(template, scenario.name, axes, columns, points, numbers, digest)


_Axes = dict[str, tuple[str, ...]]


def _product(template: Template, space: Mapping[str, object]) -> tuple[_Axes, list[int], list[Point]]:
    """Every combination, the last axis fastest."""
    given = [(key, _values(key, values)) for key, values in space.items()]
    found, seeds = template.axes(given)
    count = 1
    for _, values, _ in found:
        count *= len(values)
    if count > MOST_POINTS:
        raise ValueError(f"{count:,} combinations are more than {MOST_POINTS:,}\n help: vary less at once")
    axes = {_column(name): tuple(values) for name, values, _ in found}
    points: list[Point] = []
    for choice in itertools.product(*(zip(values, sets, strict=True) for _, values, sets in found)):
        points.append(([one for _, sets in choice for one in sets], [value for value, _ in choice]))
    return axes, seeds, points


def _listed(template: Template, space: Iterable[Mapping[str, object]]) -> tuple[_Axes, list[int], list[Point]]:
    """The points of a list. A point that does not name a key has the scenario's own value."""
    if isinstance(space, (str, bytes)):
        raise TypeError(f"`space` is a text\n help: {_HELP}")
    rows = list(space)
    for row in rows:
        if not isinstance(row, Mapping):
            raise TypeError(f"`space` is a list with an element of type {type(row).__name__}\n help: {_HELP}")
        if "seed" in row:
            raise ValueError("a point names the seed\n help: give all seeds with `seeds`, which every point is run with")
    texts = [{key: _value(key, value) for key, value in row.items()} for row in rows]
    keys = list(dict.fromkeys(key for row in texts for key in row))
    # The axes of the file do not count: the list says what is run.
    found = {key: list(dict.fromkeys(row[key] for row in texts if key in row)) for key in keys}
    axes: _Axes = {}
    chosen: dict[str, dict[str, tuple[str, list[str]]]] = {}
    for key, values in found.items():
        name, labels, sets = template.axes([(key, values)])[0][-1]
        if len(labels) != len(values):
            raise ValueError(f"`{key}` has a value that stands for many\n help: name one value in each mapping of a list")
        name = _column(name if _column(name) not in axes else key)
        axes[name] = tuple(labels)
        chosen[key] = {value: (label, arguments) for value, label, arguments in zip(values, labels, sets, strict=True)}
    points: list[Point] = []
    for row in texts:
        own = [one for key, value in row.items() for one in chosen[key][value][1]]
        points.append((own, [chosen[key][row[key]][0] if key in row else None for key in keys]))
    return axes, [], points


def _keys(space: Space | None) -> list[str]:
    return [key.strip() for key in space] if isinstance(space, Mapping) else []


def _values(key: str, values: object) -> list[str]:
    if isinstance(values, (str, bytes, Mapping)) or not isinstance(values, Iterable):
        raise TypeError(f"`{key}` has the value {values!r}, but must have a list of values\n help: write [{values!r}]")
    return [_value(key, value) for value in values]


def _value(key: str, value: object) -> str:
    """A value in words; for keys that vary together, one value for each of them."""
    if "/" in key and isinstance(value, (tuple, list)):
        return "/".join(argument(part) for part in value)
    return argument(value)


def _seeds(seeds: int | Iterable[int], first: int) -> Sequence[int]:
    if isinstance(seeds, SupportsIndex):
        count = operator.index(seeds)
        if count < 1:
            raise ValueError(f"`seeds` is {count}\n help: give the number of seeds, 1 or more, or a list of seeds")
        return range(first, first + count)
    numbers: Any = seeds if isinstance(seeds, range) else [int(seed) for seed in seeds]
    if len(numbers) == 0:
        raise ValueError("`seeds` is empty\n help: give the number of seeds, 1 or more, or a list of seeds")
    if min(numbers) < 0 or max(numbers) >= 1 << 64:
        raise ValueError("a seed is out of range\n help: seeds are whole numbers from 0 to 2^64 - 1")
    if not isinstance(numbers, range) and len(set(numbers)) < len(numbers):
        raise ValueError("a seed is listed twice\n help: the same seed gives the same run")
    return numbers  # type: ignore[no-any-return]


def _sort(values: Sequence[str]) -> str:
    """What a column holds: `count`, `number`, `flag` or `text`."""
    if all(value.isascii() and value.isdigit() and int(value) < 1 << 64 for value in values):
        return "count"
    if all(_NUMBER.fullmatch(value) for value in values):
        return "number"
    return "flag" if all(value in ("true", "false") for value in values) else "text"


def _column(name: str) -> str:
    return f"axis {name}" if name in _RESERVED else name


def work(batch: Batch, stop: Any = None) -> tuple[Any, float]:
    """Makes the runs of a batch, where it is called. Returns their table, and the seconds of the work."""
    if batch.version != (__version__, MODEL_VERSION):
        there, here = batch.version, (__version__, MODEL_VERSION)
        raise RunError(
            f"a worker has overspin {here[0]} (model {here[1]}), but the sweep was begun by {there[0]} (model {there[1]})",
            "install the same version for all workers: results of different models are not comparable",
        )
    return batch.template.run(batch.start, batch.points, batch.jobs, batch.columns, stop)
