"""evaluate: the one call most users make."""

import json
import math
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jax
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from .data import LoggedDataset
from .errors import NotApplicable, SettingError
from .estimators import RECOMMENDED, REGISTRY, Estimate, Estimator, find
from .files import written_whole
from .policies import Policy
from .problem import Problem


@dataclass(frozen=True)
class Verdict:
    """Whether the log supports the recommended number, and why."""

    level: str
    reasons: tuple[str, ...]


NOT_ASSESSED = Verdict("not assessed", ("this version gives point estimates without intervals or a verdict",))


@dataclass(frozen=True)
class Evaluation:
    """What the log says about the policy: an estimate for each method asked for.

    `print` it, look at `recommended_estimate.value`, or write it with `to_json`.
    """

    discount: float
    seed: int
    dataset: Mapping[str, Any]
    estimates: Mapping[str, Estimate]
    recommended: str
    verdict: Verdict
    versions: Mapping[str, str]

    @property
    def recommended_estimate(self) -> Estimate | None:
        """The estimate of the method that we recommend, if it was asked for."""
        return self.estimates.get(self.recommended)

    def to_dict(self) -> dict[str, Any]:
        """The JSON form; numbers that JSON cannot hold become null."""
        content = asdict(self)
        content["estimates"] = [{"estimator": name, **asdict(found)} for name, found in self.estimates.items()]
        plain: dict[str, Any] = _without_nonfinite(content)
        return plain

    def to_json(self, path: str | Path) -> None:
        """Writes the JSON form. The file appears whole or not at all."""
        with written_whole(path) as temporary:
            temporary.write_text(json.dumps(self.to_dict(), indent=2, allow_nan=False) + "\n")

    def __rich__(self) -> Group:
        return self.rendered()

    def __str__(self) -> str:
        console = Console(width=100, no_color=True)
        with console.capture() as capture:
            console.print(self)
        return capture.get()

    def rendered(self, truth: float | None = None) -> Group:
        """The estimates as a table, with their errors where the truth is known, and the notes below it."""
        table = Table(title=f"J(π) at discount {self.discount}, a reward per step", title_justify="left")
        table.add_column("estimator", no_wrap=True)
        for heading in ("value", "discounted return", *(["error"] if truth is not None else []), "seconds"):
            table.add_column(heading, justify="right", no_wrap=True)
        for name, found in self.estimates.items():
            label = Text(f"{name} ★", style="bold") if name == self.recommended else Text(name)
            if found.value is None:
                numbers = ["–"] * (3 if truth is not None else 2)
            else:
                numbers = [_short(found.value), _short(found.value / (1 - self.discount))]
                numbers += [f"{found.value - truth:+.4f}"] if truth is not None else []
            table.add_row(label, *numbers, f"{found.seconds:.2f}")
        notes = [Text(f"{name}: {'; '.join(found.notes)}") for name, found in self.estimates.items() if found.notes]
        dataset = self.dataset
        star = "★ recommended · " if self.recommended in self.estimates else ""
        source = (
            f"{star}{dataset['transitions']:,} transitions in {dataset['episodes']:,} episodes · "
            f"log {dataset['sha256'][:12]} · seed {self.seed}"
        )
        return Group(table, *notes, Text(source, style="dim"))


def evaluate(
    dataset: LoggedDataset,
    policy: Policy | None,
    discount: float,
    *,
    estimators: str | Sequence[str] | Mapping[str, Estimator] = "recommended",
    seed: int = 0,
    starting: Callable[[str], None] = lambda name: None,
) -> Evaluation:
    """Estimates what `policy` would earn, from the log alone.

    - `policy`: None if the log has a `target_log_prob` column.
    - `estimators`: `recommended` (with the baselines), `all`, names (a list, or separated by commas), or methods of
      your own making by name: `{"mine": ad.AverageDICE(labels=plain)}`.
    - `starting` is called with the name of each method before it starts.

    A method that the log or the policy cannot serve is reported with the reason and without a value.

    >>> evaluation = evaluate(data, policy, 0.95)  # doctest: +SKIP
    >>> print(evaluation)                          # doctest: +SKIP
    """
    if not 0 <= seed < 2**32:
        raise SettingError(f"the seed must lie between 0 and {2**32 - 1}, not {seed}.")
    methods = (
        estimators if isinstance(estimators, Mapping) else {name: REGISTRY[name].make() for name in find(estimators)}
    )
    problem = Problem(dataset, policy, discount)
    key = jax.random.key(seed)
    estimates = {}
    for name, method in methods.items():
        starting(name)
        estimates[name] = _estimate(method, problem, key)
    return Evaluation(
        discount=discount,
        seed=seed,
        dataset={
            "sha256": dataset.sha256,
            "transitions": dataset.num_transitions,
            "episodes": dataset.num_episodes,
        },
        estimates=estimates,
        recommended=RECOMMENDED,
        verdict=NOT_ASSESSED,
        versions={
            "average-dice": version("average-dice"),
            "jax": jax.__version__,
            "numpy": version("numpy"),
            "python": platform.python_version(),
        },
    )


def _short(value: float) -> str:
    return f"{value:.4f}" if 1e-2 <= abs(value) < 1e6 or value == 0 else f"{value:.4g}"


def _estimate(method: Estimator, problem: Problem, key: jax.Array) -> Estimate:
    start = time.perf_counter()
    try:
        fit = method.fit(problem, key=key)
    except NotApplicable as reason:
        return Estimate(None, notes=(f"not applicable, because {reason}",))
    seconds = time.perf_counter() - start
    return Estimate(fit.value, seconds=seconds, diagnostics=fit.diagnostics, notes=fit.notes)


def _without_nonfinite(content: Any) -> Any:
    match content:
        case float() if not math.isfinite(content):
            return None
        case Mapping():
            return {name: _without_nonfinite(value) for name, value in content.items()}
        case list() | tuple():
            return [_without_nonfinite(value) for value in content]
    return content
