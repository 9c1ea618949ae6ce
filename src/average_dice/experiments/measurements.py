"""Running a unit: its log is collected, its methods are fitted, and each fit becomes a row."""

import hashlib
import json
import time
from collections.abc import Sequence
from dataclasses import asdict, fields, is_dataclass, replace
from functools import lru_cache
from importlib.metadata import version
from typing import Any

import jax

from average_dice.data import LoggedDataset
from average_dice.errors import NotApplicable, SettingError
from average_dice.estimators import REGISTRY, SRDICE, AverageDICE, Estimator
from average_dice.experiments.jobs import Method, Unit
from average_dice.inference.diagnostics import diagnose
from average_dice.inference.uncertainty import Sampling, uncertainty
from average_dice.models import MLPRegression
from average_dice.models.held_out import HeldOut
from average_dice.problem import Problem
from average_dice.tasks.collection import collect, simulator_versions
from average_dice.tasks.rollouts import fastest_envs
from average_dice.tasks.shipped import target_policy, truth_record
from average_dice.tasks.task import find_task

Row = dict[str, Any]

ENCODER_SHARE = 0.3  # SR-DICE's encoder trains for so many of the steps of its successor features, as in its paper


def run(unit: Unit) -> list[Row]:
    """The rows of a unit, one for each method and seed. The same unit gives the same rows but for their seconds."""
    setting = unit.setting
    log = log_of(unit.task, setting.transitions, setting.max_steps, setting.noise, unit.log)
    problem = Problem(log, target_policy(unit.task), setting.discount)
    truth, truth_error = true_value(unit.task, setting.discount)
    keys = [jax.random.fold_in(jax.random.key(seed), unit.log) for seed in range(unit.num_seeds)]
    rows = []
    for one in unit.each():
        (method,) = one.methods
        start = time.perf_counter()
        if draws := method.options.get("draws"):
            fits = [_with_interval(make(method), problem, key, int(draws)) for key in keys]
        else:
            fits = _fits(make(method), problem, keys)
        seconds = (time.perf_counter() - start) / len(keys)
        for seed, fit in enumerate(fits):
            rows.append(
                {
                    "unit": one.key,
                    "experiment": unit.experiment,
                    "task": unit.task,
                    "estimator": method.estimator,
                    "options": json.dumps(dict(method.options), sort_keys=True),
                    "discount": setting.discount,
                    "transitions": setting.transitions,
                    "max_steps": setting.max_steps,
                    "noise": setting.noise,
                    "log": unit.log,
                    "seed": seed,
                    "truth": truth,
                    "truth_standard_error": truth_error,
                    "seconds": seconds,
                    "versions": json.dumps(versions(), sort_keys=True),
                    **fit,
                }
            )
    return rows


def _fits(estimator: Estimator, problem: Problem, keys: Sequence[jax.Array]) -> list[Row]:
    """What becomes of each key. Where one of them fails, the others are done again without it."""
    try:
        return [_outcome(fit) for fit in estimator.fit_many(problem, keys=keys)]
    except NotApplicable as reason:
        if len(keys) == 1:
            return [{"notes": f"not applicable, because {reason}"}]
    return [row for key in keys for row in _fits(estimator, problem, [key])]


def _with_interval(estimator: Estimator, problem: Problem, key: jax.Array, num_draws: int) -> Row:
    """The fit with all that the verdict looks at, so that it can be judged again by other rules."""
    fit = estimator.fit(problem, key=key)
    found = uncertainty(estimator, problem, fit, Sampling(num_draws=num_draws), key=key)
    of_log = replace(diagnose(problem, key=key), weights=(), by_step=())
    content = {
        "lower": found.lower,
        "upper": found.upper,
        "episodes": problem.dataset.num_episodes,
        "fit": dict(fit.diagnostics),
        "log": asdict(of_log),
    }
    return {**_outcome(fit), "diagnostics": json.dumps(content)}


def make(method: Method) -> Estimator:
    """The estimator, with the training length and the options of the method."""
    estimator = REGISTRY[method.estimator].make()
    if method.options and "draws" not in method.options:
        if not (isinstance(estimator, AverageDICE) and isinstance(estimator.model, MLPRegression)):
            raise SettingError(f"{method.estimator} has no options to vary.")
        options: dict[str, Any] = dict(method.options)
        held_out = options.pop("held_out", None)
        model: Any = replace(estimator.model, **options, **_length(method))
        return replace(estimator, model=model if held_out is None else HeldOut(model, held_out))
    if not estimator.trains or method.num_steps is None:
        return estimator
    if isinstance(estimator, AverageDICE):
        return replace(estimator, model=replace(estimator.model, **_length(method)))  # type: ignore[type-var]
    if isinstance(estimator, SRDICE):
        estimator = replace(estimator, encoder_steps=max(1, round(ENCODER_SHARE * method.num_steps)))
    return replace(estimator, **_length(method))  # type: ignore[type-var]


def _length(method: Method) -> dict[str, Any]:
    return {"num_steps": method.num_steps, "num_checkpoints": method.num_checkpoints}


def _outcome(fit: Any) -> Row:
    curve = fit.history
    return {
        "value": fit.value,
        "notes": "; ".join(fit.notes),
        "diagnostics": json.dumps({name: float(number) for name, number in fit.diagnostics.items()}),
        "curve_step": [] if curve is None else curve.step.tolist(),
        "curve_value": [] if curve is None else curve.value.tolist(),
        "curve_loss": [] if curve is None else curve.loss.tolist(),
    }


@lru_cache(maxsize=2)
def log_of(task: str, transitions: int, max_steps: int, noise: float, log: int) -> LoggedDataset:
    """The log of that number."""
    return collect(
        find_task(task),
        target_policy(task),
        num_transitions=transitions,
        max_steps=max_steps,
        noise=noise,
        seed=log,
        make_envs=fastest_envs(),
    )


def true_value(task: str, discount: float) -> tuple[float, float]:
    """J(π) of the shipped policy, and its standard error."""
    record = truth_record(task)
    for row in record["values"] if record else ():
        if row["discount"] == discount:
            return row["value"], row["standard_error"]
    raise SettingError(
        f"no true value of {task} is shipped at a discount of {discount:g}. Use one of `average-dice tasks`."
    )


def fingerprint(method: Method) -> str:
    """The hash of everything that is set in the method."""
    return hashlib.sha256(json.dumps(_described(make(method))).encode()).hexdigest()[:12]


def _described(value: Any) -> Any:
    if is_dataclass(value):
        settings = {field.name: _described(getattr(value, field.name)) for field in fields(value)}
        revision = getattr(value, "revision", 1)
        return [type(value).__name__, settings, *([revision] if revision > 1 else [])]
    if isinstance(value, tuple):
        return [_described(one) for one in value]
    return f"{value.__module__}.{value.__qualname__}" if callable(value) else value


def versions() -> dict[str, str]:
    """What the numbers of a store depend on."""
    packages = ("average-dice", "jax", "jaxlib", "optax", "numpy")
    return {package: version(package) for package in packages} | simulator_versions(fastest_envs())
