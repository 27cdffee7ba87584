"""A laboratory for locks and CPU schedulers when there are more vCPUs than CPUs.

>>> import overspin
>>> scenario = overspin.Scenario.example("ticket-overcommit")
>>> result = overspin.run(scenario, seed=1)
>>> result.locks

`docs/python.md` describes everything.
"""

from overspin._overspin import (
    MODEL_VERSION,
    Comparison,
    Env,
    Machine,
    Scenario,
    Table,
    __version__,
    examples,
    experiments,
    locks,
    machines,
    schedulers,
    workloads,
)
from overspin.errors import (
    DeadlockError,
    Error,
    MissingPackage,
    NameTaken,
    NotInResult,
    RunError,
    ScenarioError,
    SchedulerError,
    SweepError,
    SweepInterrupted,
    TimelineCut,
    UnknownName,
)
from overspin.live_page import LivePage, live
from overspin.own import (
    MS,
    SEC,
    US,
    Checked,
    Scheduler,
    check_scheduler,
    register_scheduler,
    register_workload,
)
from overspin.result import Result
from overspin.sweep_result import Sweep
from overspin.sweeps import sweep
from overspin.work import compare, reproduce, run

__all__ = [
    "MODEL_VERSION",
    "MS",
    "SEC",
    "US",
    "Checked",
    "Comparison",
    "DeadlockError",
    "Env",
    "Error",
    "LivePage",
    "Machine",
    "MissingPackage",
    "NameTaken",
    "NotInResult",
    "Result",
    "RunError",
    "Scenario",
    "ScenarioError",
    "Scheduler",
    "SchedulerError",
    "Sweep",
    "SweepError",
    "SweepInterrupted",
    "Table",
    "TimelineCut",
    "UnknownName",
    "__version__",
    "check_scheduler",
    "compare",
    "examples",
    "experiments",
    "live",
    "locks",
    "machines",
    "register_scheduler",
    "register_workload",
    "reproduce",
    "run",
    "schedulers",
    "sweep",
    "workloads",
]
