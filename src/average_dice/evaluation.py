"""evaluate: the one call most users make."""

import json
import math
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jaxtyping import Float
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from average_dice import report
from average_dice.data import LoggedDataset
from average_dice.errors import NotApplicable, SettingError
from average_dice.estimators import BASELINES, RECOMMENDED, REGISTRY, Estimate, Estimator, Fit, find
from average_dice.files import write_text_whole
from average_dice.inference.diagnostics import Diagnostics, diagnose
from average_dice.inference.difference import Difference, behaviour_value, difference
from average_dice.inference.state_map import StateMap, check_features, map_states
from average_dice.inference.uncertainty import Sampling, Uncertainty, draw_values, uncertainty
from average_dice.inference.verdict import Verdict, judge
from average_dice.policies import Policy
from average_dice.problem import Problem
from average_dice.report.formatting import NO_DIFFERENCE, short

INTERVAL = "interval: "  # begins the note that says of which kind it is
ONLY_BASELINES = Verdict("not supported", ("only baselines were asked for, and they are the behaviour policy's",))


@dataclass(frozen=True)
class Evaluation:
    """What the log says about the policy: an estimate for each method asked for, and how far to trust it.

    `print` it, look at `recommended_estimate.value` and `verdict`, write it with `to_json` or `to_html`.

    - `judged`: the estimate that the verdict is on; the recommended one, or the first that was asked for.
    - `against_behaviour`: its value minus what the behaviour policy itself earns, with its interval.
    - `fits` and `draws` are what the methods found and their values on draws of episodes; not in the JSON.
    """

    discount: float
    seed: int
    dataset: Mapping[str, Any]
    estimates: Mapping[str, Estimate]
    recommended: str
    verdict: Verdict
    versions: Mapping[str, str]
    judged: str | None = None
    diagnostics: Diagnostics | None = None
    against_behaviour: Difference | None = None
    states: StateMap | None = None
    curves: Mapping[str, Mapping[str, Sequence[Any]]] = field(default_factory=dict)
    command: str | None = None
    fits: Mapping[str, Fit] = field(default_factory=dict, repr=False, compare=False)
    draws: Mapping[str, Float[np.ndarray, " draw"]] = field(default_factory=dict, repr=False, compare=False)

    @property
    def recommended_estimate(self) -> Estimate | None:
        """The estimate of the method that we recommend, if it was asked for."""
        return self.estimates.get(self.recommended)

    def to_dict(self) -> dict[str, Any]:
        """The JSON form; numbers that JSON cannot hold become null."""
        plain = {name: getattr(self, name) for name in self.__dataclass_fields__ if name not in ("fits", "draws")}
        plain["estimates"] = [{"estimator": name, **asdict(found)} for name, found in self.estimates.items()]
        for name in ("verdict", "diagnostics", "against_behaviour", "states"):
            plain[name] = None if plain[name] is None else asdict(plain[name])
        content: dict[str, Any] = _without_nonfinite(plain)
        return content

    def to_json(self, path: str | Path) -> None:
        """Writes the JSON form. The file appears whole or not at all."""
        write_text_whole(path, json.dumps(self.to_dict(), indent=2, allow_nan=False) + "\n")

    def to_html(self, path: str | Path) -> None:
        """Writes the report: one page that needs no network. The file appears whole or not at all."""
        write_text_whole(path, report.page(self.to_dict()))

    def _repr_html_(self) -> str:
        return report.fragment(self.to_dict())

    def __rich__(self) -> Group:
        return self.rendered()

    def __str__(self) -> str:
        console = Console(width=100, no_color=True)
        with console.capture() as capture:
            console.print(self)
        return capture.get()

    def rendered(self, truth: float | None = None) -> Group:
        """The verdict and the estimates as a table, with their errors where the truth is known, and the notes."""
        table = Table(title=f"J(π) at discount {self.discount}, a reward per step", title_justify="left")
        table.add_column("estimator", no_wrap=True)
        level = next((found.level for found in self.estimates.values() if found.level is not None), 0.95)
        last = "return" if truth is None else "error"  # the discounted return, if there is room for it
        for heading in ("value", f"{100 * level:g}% interval", last, "seconds"):
            table.add_column(heading, justify="right", no_wrap=True)
        for name, found in self.estimates.items():
            label = Text(f"{name} ★", style="bold") if name == self.recommended else Text(name)
            if found.value is None:
                numbers = ["–"] * 3
            else:
                interval = "–" if found.lower is None else f"{short(found.lower)} to {short(found.upper)}"
                shown = short(found.value / (1 - self.discount)) if truth is None else f"{found.value - truth:+.4f}"
                numbers = [short(found.value), interval, shown]
            table.add_row(label, *numbers, f"{found.seconds:.2f}")
        notes = [
            Text(f"{name}: {'; '.join(said)}")
            for name, found in self.estimates.items()
            if (said := [note for note in found.notes if not note.startswith(INTERVAL)])
        ]
        dataset = self.dataset
        star = "★ recommended · " if self.recommended in self.estimates else ""
        source = (
            f"{star}{dataset['transitions']:,} transitions in {dataset['episodes']:,} episodes · "
            f"log {dataset['sha256'][:12]} · seed {self.seed}"
        )
        kinds = {note for found in self.estimates.values() for note in found.notes if note.startswith(INTERVAL)}
        if kinds:
            source += "\nintervals: " + "; ".join(sorted(kind.removeprefix(INTERVAL) for kind in kinds))
        return Group(*self._verdict_lines(), table, *notes, Text(source, style="dim"))

    def _verdict_lines(self) -> list[Text]:
        colour = {"supported": "green", "weak": "yellow", "not supported": "red"}[self.verdict.level]
        whose = f", of {self.judged}" if self.judged not in (None, self.recommended) else ""
        lines = [Text(f"Verdict{whose}: {self.verdict.level}", style=f"bold {colour}")]
        lines += [Text(f"  · {reason}") for reason in self.verdict.reasons]
        lines += [Text(f"  → {remedy}", style="dim") for remedy in self.verdict.remedies]
        gain = self.against_behaviour
        if gain is not None:
            lines.append(Text(f"Against the behaviour policy: {gain.in_words(short)}"))
        elif self.judged is not None:
            lines.append(Text(f"Against the behaviour policy: {NO_DIFFERENCE}", style="dim"))
        return lines


def evaluate(
    dataset: LoggedDataset,
    policy: Policy | None,
    discount: float,
    *,
    estimators: str | Sequence[str] | Mapping[str, Estimator] = "recommended",
    level: float = 0.95,
    num_draws: int = 100,
    num_trained_draws: int = 0,
    features: tuple[int, int] | None = None,
    seed: int = 0,
    command: str | None = None,
    starting: Callable[[str], None] = lambda name: None,
) -> Evaluation:
    """Estimates what `policy` would earn, from the log alone, with intervals and a verdict.

    - `policy`: None if the log has a `target_log_prob` column.
    - `estimators`: `recommended` (with the baselines), `all`, names (a list, or separated by commas), or methods of
      your own making by name: `{"mine": ad.AverageDICE(labels=plain)}`.
    - `level` of the intervals; `num_draws` of episodes for the bootstrap, 0 for no intervals; `num_trained_draws` for
      methods that train, which are trained anew on each.
    - `features`: the two numbers of an observation that the map of states shows; its principal components if None.
    - `command` goes into the report; `starting` is called with the name of each method before it starts.

    A method that the log or the policy cannot serve is reported with the reason and without a value. The verdict is on
    the recommended estimate; where that was not asked for, on the first that is no baseline.

    >>> evaluation = evaluate(data, policy, 0.95)  # doctest: +SKIP
    >>> print(evaluation)                          # doctest: +SKIP
    """
    if not 0 <= seed < 2**32:
        raise SettingError(f"the seed must lie between 0 and {2**32 - 1}, not {seed}.")
    sampling = Sampling(level, num_draws, num_trained_draws, seed)
    methods = (
        estimators if isinstance(estimators, Mapping) else {name: REGISTRY[name].make() for name in find(estimators)}
    )
    if not methods:
        raise SettingError("give at least one estimator.")
    problem = Problem(dataset, policy, discount)
    check_features(problem, features)
    key = jax.random.key(seed)
    estimates, fits, draws = {}, {}, {}
    for name, method in methods.items():
        starting(name)
        estimates[name], fit, found = _estimate(method, problem, sampling, key)
        if fit is not None:
            fits[name] = fit
        if found is not None and found.replicates is not None:
            draws[name] = found.replicates
    starting("diagnostics")
    diagnostics = diagnose(problem, key=key)
    judged = next((name for name in (RECOMMENDED, *estimates) if name in estimates and name not in BASELINES), None)
    value = None if judged is None else estimates[judged].value
    against_behaviour = None
    if judged is not None and value is not None:
        starting("behaviour policy")
        against_behaviour = _against_behaviour(methods[judged], problem, value, draws.get(judged), sampling, key)
    return Evaluation(
        discount=discount,
        seed=seed,
        dataset=_summary(dataset),
        estimates=estimates,
        recommended=RECOMMENDED,
        verdict=ONLY_BASELINES if judged is None else judge(estimates[judged], diagnostics, dataset.num_episodes),
        judged=judged,
        versions={
            "average-dice": version("average-dice"),
            "jax": jax.__version__,
            "numpy": version("numpy"),
            "python": platform.python_version(),
        },
        diagnostics=diagnostics,
        against_behaviour=against_behaviour,
        states=None if judged is None else map_states(problem, fits.get(judged), features, key=key),
        curves={
            name: {"step": curve.step.tolist(), "value": curve.value.tolist(), "loss": curve.loss.tolist()}
            for name, fit in fits.items()
            if (curve := fit.history) is not None
        },
        command=command,
        fits=fits,
        draws=draws,
    )


def _estimate(
    method: Estimator, problem: Problem, sampling: Sampling, key: jax.Array
) -> tuple[Estimate, Fit | None, Uncertainty | None]:
    start = time.perf_counter()
    try:
        fit = method.fit(problem, key=key)
    except NotApplicable as reason:
        return Estimate(None, notes=(f"not applicable, because {reason}",)), None, None
    seconds = time.perf_counter() - start
    found = uncertainty(method, problem, fit, sampling, key=key)
    level = None if found.lower is None else sampling.level
    notes = (*fit.notes, f"{INTERVAL}{found.kind}" if level else found.kind)
    estimate = Estimate(fit.value, found.lower, found.upper, level, seconds, fit.diagnostics, notes)
    return estimate, fit, found


def _against_behaviour(
    method: Estimator, problem: Problem, value: float, draws: np.ndarray | None, sampling: Sampling, key: jax.Array
) -> Difference | None:
    """What π earns more than μ: both by the same method, on the same draws of episodes, if there are any."""
    if draws is None and not method.trains and sampling.num_draws > 1 and problem.dataset.num_episodes > 1:
        draws = draw_values(method, problem, sampling.num_draws, sampling.seed, key=key)  # its interval needed none
    if draws is None:
        return None
    try:
        behaviour, behaviour_draws = behaviour_value(method, problem, len(draws), sampling.seed, key=key)
    except NotApplicable:
        return None
    return difference(value, behaviour, draws, behaviour_draws, sampling.level, problem.dataset.num_episodes)


def _summary(dataset: LoggedDataset) -> dict[str, Any]:
    last = dataset.starts + dataset.lengths - 1
    return {
        "sha256": dataset.sha256,
        "transitions": dataset.num_transitions,
        "episodes": dataset.num_episodes,
        "terminated": int(dataset.terminated[last].sum()),
        "lengths": [int(dataset.lengths.min()), float(dataset.lengths.mean()), int(dataset.lengths.max())],
        "rewards": [float(dataset.reward.min()), float(dataset.reward.mean()), float(dataset.reward.max())],
        "observation": dataset.observation.shape[1],
        "action": "discrete" if dataset.is_discrete else f"continuous, {dataset.action.shape[1]} wide",
        "behaviour_known": dataset.behaviour_log_prob is not None,
        "metadata": {name: str(value) for name, value in dataset.metadata.items()},
    }


def _without_nonfinite(content: Any) -> Any:
    match content:
        case float() if not math.isfinite(content):
            return None
        case Mapping():
            return {name: _without_nonfinite(value) for name, value in content.items()}
        case list() | tuple():
            return [_without_nonfinite(value) for value in content]
    return content
