"""The experiments: what each varies, as units of work. A preset says how much of it.

- main: every method at γ = 0.95, its error against training steps.
- robustness: one axis at a time around main: discount, transitions, length of episodes, noise.
- tuning: the paper's grid for its own method, with and without the truth.
- ablation: the paper's method with and without the regulariser of the mass.
- trust: the recommended estimator with its interval and verdict, at the settings of robustness.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from types import MappingProxyType
from typing import Any

from average_dice.errors import SettingError
from average_dice.estimators import RECOMMENDED, REGISTRY
from average_dice.experiments.jobs import Method, Setting, Unit
from average_dice.experiments.measurements import fingerprint
from average_dice.tasks.shipped import policy_hash
from average_dice.tasks.task import DISCOUNTS, TRANSITIONS, Task, find_task

PAPER = "average-dice-paper"  # the method that tuning and ablation are about
AXES = ("discount", "transitions", "max_steps", "noise")


def settings_along(axes: tuple[str, ...], task: Task) -> list[Setting]:
    """The settings of the axes, one at a time around that of main."""
    middle = Setting.of(task)
    grids = {
        "discount": [replace(middle, discount=value) for value in DISCOUNTS],
        "transitions": [replace(middle, transitions=value) for value in TRANSITIONS],
        "max_steps": [replace(middle, max_steps=value) for value in task.lengths],
        "noise": [replace(middle, noise=value) for value in task.noises],
    }
    return list(dict.fromkeys(setting for axis in axes for setting in grids[axis]))


@dataclass(frozen=True)
class Main:
    """Closed forms on `logs` logs of each task, trained methods on the first `trained_logs`, with `seeds` each.

    `steps`: how long each method trains; its curve is looked at `every` so many of them. A method that trains and is
    not in it is left out.
    """

    tasks: tuple[str, ...]
    estimators: tuple[str, ...]
    logs: int
    trained_logs: int
    seeds: int
    every: int
    steps: Mapping[str, int] = field(default_factory=dict)

    def settings(self, task: Task) -> list[Setting]:
        return [Setting.of(task)]

    def units(self, experiment: str) -> Iterator[Unit]:
        closed = tuple(_method(name) for name in self.estimators if not REGISTRY[name].make().trains)
        named = (name for name in self.estimators if name in self.steps)
        longest_first = sorted(named, key=lambda name: -self.steps[name])  # so that nobody waits for it at the end
        trained = [_method(name, self.steps[name], self.every) for name in longest_first]
        for log, name in product(range(max(self.logs, self.trained_logs)), self.tasks):
            policy = policy_hash(name)
            for setting in self.settings(find_task(name)):
                if log < self.logs and closed:
                    yield Unit(experiment, name, policy, setting, log, 1, closed)
                if log < self.trained_logs:
                    for method in trained:
                        yield Unit(experiment, name, policy, setting, log, self.seeds, (method,))


@dataclass(frozen=True)
class Robustness(Main):
    """The same at every setting of the `axes`."""

    axes: tuple[str, ...] = AXES

    def settings(self, task: Task) -> list[Setting]:
        return settings_along(self.axes, task)


@dataclass(frozen=True)
class Tuning:
    """Every combination of λ₁ (`ridges`), λ₂ (`mass_weights`) and rate, fitted to 80 % of the episodes.

    The other 20 % give the loss by which a user would choose, without the truth.
    """

    tasks: tuple[str, ...]
    logs: int
    seeds: int
    steps: int
    every: int
    ridges: tuple[float, ...] = (0.0, 0.001, 0.01, 0.1)
    mass_weights: tuple[float, ...] = (0.5, 2.0, 10.0, 20.0)
    learning_rates: tuple[float, ...] = (5e-5, 1e-4, 5e-4, 1e-3, 5e-3)
    held_out: float = 0.2

    def units(self, experiment: str) -> Iterator[Unit]:
        grid = [
            {"ridge": ridge, "mass_weight": mass_weight, "learning_rate": rate, "held_out": self.held_out}
            for ridge, mass_weight, rate in product(self.ridges, self.mass_weights, self.learning_rates)
        ]
        methods = [_method(PAPER, self.steps, self.every, options) for options in grid]
        for log, name, method in product(range(self.logs), self.tasks, methods):
            yield Unit(experiment, name, policy_hash(name), Setting.of(find_task(name)), log, self.seeds, (method,))


@dataclass(frozen=True)
class Ablation:
    """The paper's method at several λ₂ (`mass_weights`), 0 among them."""

    tasks: tuple[str, ...]
    logs: int
    seeds: int
    steps: int
    every: int
    mass_weights: tuple[float, ...] = (0.0, 0.5)

    def units(self, experiment: str) -> Iterator[Unit]:
        methods = [_method(PAPER, self.steps, self.every, {"mass_weight": weight}) for weight in self.mass_weights]
        for log, name, method in product(range(self.logs), self.tasks, methods):
            yield Unit(experiment, name, policy_hash(name), Setting.of(find_task(name)), log, self.seeds, (method,))


@dataclass(frozen=True)
class Trust:
    """The recommended estimator with its interval from `draws` draws of episodes, at every setting of robustness."""

    tasks: tuple[str, ...]
    logs: int
    draws: int
    axes: tuple[str, ...] = AXES

    def units(self, experiment: str) -> Iterator[Unit]:
        method = _method(RECOMMENDED, options={"draws": float(self.draws)})
        for log, name in product(range(self.logs), self.tasks):
            for setting in settings_along(self.axes, find_task(name)):
                yield Unit(experiment, name, policy_hash(name), setting, log, 1, (method,))


def _method(
    name: str, steps: int | None = None, every: int = 1, options: Mapping[str, float] = MappingProxyType({})
) -> Method:
    num_checkpoints = None if steps is None else max(1, round(steps / every))
    plain = Method(name, steps, num_checkpoints, dict(options))
    return replace(plain, settings=fingerprint(plain))


Plan = Main | Robustness | Tuning | Ablation | Trust

EXPERIMENTS: dict[str, type[Plan]] = {
    "main": Main,
    "robustness": Robustness,
    "tuning": Tuning,
    "ablation": Ablation,
    "trust": Trust,
}


def read_plan(experiment: str, content: Mapping[str, Any]) -> Plan:
    """A plan from its JSON form."""
    values: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in content.items()
    }
    return find_experiment(experiment)(**values)


def find_experiment(name: str) -> type[Plan]:
    if name not in EXPERIMENTS:
        raise SettingError(f"unknown experiment {name!r}. Known are {', '.join(EXPERIMENTS)}, claims, comparison.")
    return EXPERIMENTS[name]
