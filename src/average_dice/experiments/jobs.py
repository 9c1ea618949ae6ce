"""Jobs, the units of an experiment. A job is one log and the methods that are fitted to it."""

import hashlib
import json
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from average_dice.tasks import DISCOUNTS, TRANSITIONS, Task

DISCOUNT = 0.95  # of the main experiment, as in the paper
PAPER = "average-dice-paper"  # the method that the paper proposes
RELEASED_METHOD = "average-dice-released"  # what the authors' released code computes
AXES = ("discount", "transitions", "max_steps", "noise")

Row = dict[str, Any]  # what is stored of one fit; `store.SCHEMA` has the columns


@dataclass(frozen=True)
class Setting:
    """How a log is collected, and the discount at which the policy is evaluated.

    `only_full`: episodes that end before `max_steps` are thrown away.
    """

    discount: float
    transitions: int
    max_steps: int
    noise: float
    only_full: bool = False

    @staticmethod
    def of(task: Task) -> "Setting":
        """The setting of the main experiment."""
        return Setting(DISCOUNT, transitions=4_000, max_steps=100, noise=task.noise)

    @staticmethod
    def as_released(task: Task) -> "Setting":
        """The collection of the authors' released code: only full episodes, and standard deviations doubled."""
        noise = task.noise if task.discrete else 4.0  # a factor on the variance
        return replace(Setting.of(task), noise=noise, only_full=True)


def settings_along(axes: Collection[str], task: Task) -> list[Setting]:
    """The settings that differ from the main setting along one of the axes, and the main setting itself."""
    middle = Setting.of(task)
    grids = {
        "discount": [replace(middle, discount=value) for value in DISCOUNTS],
        "transitions": [replace(middle, transitions=value) for value in TRANSITIONS],
        "max_steps": [replace(middle, max_steps=value) for value in task.lengths],
        "noise": [replace(middle, noise=value) for value in task.noises],
    }
    return list(dict.fromkeys(setting for axis in axes for setting in grids[axis]))


@dataclass(frozen=True)
class Method:
    """An estimator by name, its training length if it trains, and the options that differ from its defaults.

    `settings` is the hash of all its settings: another default makes another job.
    """

    estimator: str
    num_steps: int | None = None
    num_checkpoints: int | None = None
    options: Mapping[str, float] = field(default_factory=dict)
    settings: str = ""


@dataclass(frozen=True)
class Job:
    """One log of a task, and the methods fitted to it, each once for every seed.

    `policy` is the hash of the target policy: another policy makes another job.
    """

    experiment: str
    task: str
    policy: str
    setting: Setting
    log: int
    num_seeds: int
    methods: tuple[Method, ...]

    @property
    def key(self) -> str:
        """A name that is unique to the job."""
        described = asdict(self)
        if not self.setting.only_full:
            del described["setting"]["only_full"]  # added later: the keys of stored results stay
        content = json.dumps(described, sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()[:16]

    def each(self) -> list["Job"]:
        """One job for each method. Rows are stored under these keys, so that only methods added later are run."""
        return [replace(self, methods=(method,)) for method in self.methods]

    def without(self, done: Collection[str]) -> "Job":
        """The job without the methods whose keys are done."""
        return replace(self, methods=tuple(one.methods[0] for one in self.each() if one.key not in done))
