"""What an experiment is made of: units of work, each a log and the methods that are fitted to it."""

import hashlib
import json
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field, replace

from average_dice.tasks.task import Task

DISCOUNT = 0.95  # of the main experiment


@dataclass(frozen=True)
class Setting:
    """How a log is collected, and the discount at which the policy is evaluated."""

    discount: float
    transitions: int
    max_steps: int
    noise: float

    @staticmethod
    def of(task: Task) -> "Setting":
        """The setting of the main experiment."""
        return Setting(DISCOUNT, transitions=4_000, max_steps=100, noise=task.noise)


@dataclass(frozen=True)
class Method:
    """A method by name, with how long it trains if it does, and what else differs from its defaults.

    `settings` is the hash of all its settings: another default makes another unit.
    """

    estimator: str
    num_steps: int | None = None
    num_checkpoints: int | None = None
    options: Mapping[str, float] = field(default_factory=dict)
    settings: str = ""


@dataclass(frozen=True)
class Unit:
    """One log of a task, and the methods fitted to it, each once for every seed.

    `policy` is the hash of the target policy: another policy makes another unit.
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
        """A name that two different units never share."""
        content = json.dumps(asdict(self), sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()[:16]

    def each(self) -> list["Unit"]:
        """A unit for each method: what is stored by its key, so that a method added later is all that is run."""
        return [replace(self, methods=(method,)) for method in self.methods]

    def without(self, done: Collection[str]) -> "Unit":
        """What is left of it when the methods with these keys are done."""
        return replace(self, methods=tuple(one.methods[0] for one in self.each() if one.key not in done))
