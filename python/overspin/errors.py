"""What can go wrong. Every class is an `Error`, and also the built-in exception that a program would expect.

A file that cannot be read or written is an `OSError`, as everywhere in Python.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from overspin.result import Result
    from overspin.sweep_result import Sweep


class Error(Exception):
    """An error of Overspin.

    Attributes:
        message: the cause.
        help: the remedy.
    """

    def __init__(self, message: str, help: str = "") -> None:
        super().__init__(message, help)
        self.message = message
        self.help = help

    def __str__(self) -> str:
        return f"{self.message}\n help: {self.help}" if self.help else self.message


class ScenarioError(Error, ValueError):
    """A fault in a scenario, a record or an experiment. As a text it is the place in the file, as a compiler shows it.

    Attributes:
        file: the file, or `--set` for a change by `Scenario.set`.
        line: the line, from 1; 0 if the fault has no place.
        column: the column in characters, from 1.
        key: the dotted key; empty if the fault is not about a key.
    """

    def __init__(
        self,
        message: str,
        help: str = "",
        text: str = "",
        file: str = "",
        line: int = 0,
        column: int = 0,
        key: str = "",
    ) -> None:
        super().__init__(message, help)
        self.args = (message, help, text, file, line, column, key)
        self.text = text
        self.file = file
        self.line = line
        self.column = column
        self.key = key

    def __str__(self) -> str:
        return self.text or super().__str__()


class UnknownName(Error, LookupError):
    """There is no example, experiment, world or metric of this name. `help` lists those that there are."""


class NotInResult(Error, LookupError):
    """The result does not have what was asked for: for example, a sweep has no single outcome."""


class NameTaken(Error, ValueError):
    """A part of your own has the name of a built-in one."""


class SchedulerError(Error, RuntimeError):
    """A scheduler broke a rule: in a run by a decision, in `check_scheduler` by anything that the suite checks."""


class RunError(Error, RuntimeError):
    """The world cannot run the scenario."""


class DeadlockError(RunError):
    """A run with `strict=True` ended in a deadlock.

    Attributes:
        result: its result.
    """

    def __init__(self, message: str, help: str, result: Result) -> None:
        super().__init__(message, help)
        self.args = (message, help, result)
        self.result = result


class SweepError(RunError):
    """A sweep could not be finished.

    Attributes:
        sweep: the runs that were made; `sweep.missing` says how many are not there.
    """

    sweep: Sweep


class SweepInterrupted(KeyboardInterrupt):
    """Ctrl-C ended a sweep.

    Attributes:
        sweep: the runs that were made; `sweep.missing` says how many are not there.
    """

    def __init__(self, message: str, sweep: Sweep) -> None:
        super().__init__(message)
        self.sweep = sweep


class MissingPackage(Error, ImportError):
    """An optional package is not installed. `help` says how to install it."""


class TimelineCut(UserWarning):
    """Slices or marks cover a part of the run only."""
