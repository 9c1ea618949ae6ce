"""Measurements: a job collects its log and fits its methods, and each fit becomes a row."""

import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, is_dataclass, replace
from functools import lru_cache
from importlib.metadata import version
from types import MappingProxyType
from typing import Any

import jax

from average_dice.data import LoggedDataset
from average_dice.errors import NotApplicable, SettingError
from average_dice.estimators import REGISTRY, Estimator, Fit, prepared_once
from average_dice.estimators.base import ADDED_LATER
from average_dice.experiments.jobs import Job, Method, Row
from average_dice.inference.diagnostics import diagnose
from average_dice.inference.uncertainty import IntervalSettings, uncertainty
from average_dice.notes import Note, NoteCode
from average_dice.problem import Problem
from average_dice.tasks import collect, fastest_envs, find_task, simulator_versions, target_policy, true_value

BOOTSTRAP = "bootstrap"  # an option of any method: the number of resamples, if its interval is measured, too


def run(job: Job) -> list[Row]:
    """The rows of a job, one for each method and seed. The same job gives the same rows, except for the seconds."""
    setting = job.setting
    log = log_of(job.task, setting.transitions, setting.max_steps, setting.noise, job.log, setting.only_full)
    problem = Problem(log, target_policy(job.task), setting.discount)
    truth, truth_error = true_value(job.task, setting.discount)
    keys = [jax.random.fold_in(jax.random.key(seed), job.log) for seed in range(job.num_seeds)]
    rows = []
    for one in job.each():
        (method,) = one.methods
        start = time.perf_counter()
        if num_resamples := method.options.get(BOOTSTRAP):
            fits = [_with_interval(make(method), problem, key, int(num_resamples)) for key in keys]
        else:
            fits = _fits(make(method), problem, keys)
        seconds = (time.perf_counter() - start) / len(keys)
        for seed, fit in enumerate(fits):
            rows.append(
                {
                    "unit": one.key,
                    "experiment": job.experiment,
                    "task": job.task,
                    "estimator": method.estimator,
                    "options": json.dumps(dict(method.options), sort_keys=True),
                    "discount": setting.discount,
                    "transitions": setting.transitions,
                    "max_steps": setting.max_steps,
                    "noise": setting.noise,
                    "log": job.log,
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
    """One fit for each key. If one key fails, each is fitted on its own, so that the others keep their values."""
    try:
        return [_outcome(fit) for fit in estimator.fit_seeds(problem, keys=keys)]
    except NotApplicable as reason:
        if len(keys) == 1:
            return [_stored_notes([Note(NoteCode.NOT_APPLICABLE, f"not applicable: {reason}")])]
    return [row for key in keys for row in _fits(estimator, problem, [key])]


def _with_interval(estimator: Estimator, problem: Problem, key: jax.Array, num_resamples: int) -> Row:
    """The fit with all inputs of the verdict, so that other rules can judge it later."""
    prepared = prepared_once(estimator, problem, key=key)
    fit = prepared.fit()
    found = uncertainty(estimator, problem, prepared, IntervalSettings(bootstrap=num_resamples), key=key).interval
    of_log = replace(diagnose(problem, key=key), weights=(), by_step=())
    content = {
        "lower": None if found is None else found.lower,
        "upper": None if found is None else found.upper,
        "episodes": problem.dataset.num_episodes,
        "fit": dict(fit.diagnostics),
        "log": asdict(of_log),
    }
    return {**_outcome(fit), "diagnostics": json.dumps(content)}


def _outcome(fit: Fit) -> Row:
    curve = fit.history
    return {
        "value": fit.value,
        **_stored_notes(fit.notes),
        "diagnostics": json.dumps({name: float(number) for name, number in fit.diagnostics.items()}),
        "curve_step": [] if curve is None else curve.step.tolist(),
        "curve_value": [] if curve is None else curve.value.tolist(),
        "curve_loss": [] if curve is None else curve.loss.tolist(),
    }


def _stored_notes(notes: Sequence[Note]) -> Row:
    """The texts for people and the codes for programs."""
    return {"notes": "; ".join(note.text for note in notes), "note_codes": [note.code.value for note in notes]}


@lru_cache(maxsize=2)  # consecutive jobs often share a log
def log_of(
    task: str, transitions: int, max_steps: int, noise: float, log: int, only_full: bool = False
) -> LoggedDataset:
    """The log with this number as its seed."""
    return collect(
        find_task(task),
        target_policy(task),
        num_transitions=transitions,
        max_steps=max_steps,
        noise=noise,
        seed=log,
        make_envs=fastest_envs(),
        only_full=only_full,
    )


def planned(
    estimator: str, steps: int | None = None, every: int = 1, options: Mapping[str, float] = MappingProxyType({})
) -> Method:
    """The method with the hash of all its settings, and a checkpoint after `every` steps."""
    num_checkpoints = None if steps is None else max(1, round(steps / every))
    method = Method(estimator, steps, num_checkpoints, dict(options))
    return replace(method, settings=fingerprint(method))


def make(method: Method) -> Estimator:
    """The estimator, with the training length and the options of the method."""
    estimator = REGISTRY[method.estimator].make()
    options = {name: value for name, value in method.options.items() if name != BOOTSTRAP}
    if method.num_steps is None or method.num_checkpoints is None:
        if options:
            raise SettingError(f"{method.estimator}: {', '.join(options)} can only be set with a training length.")
        return estimator
    return estimator.with_training(num_steps=method.num_steps, num_checkpoints=method.num_checkpoints, **options)


def fingerprint(method: Method) -> str:
    """The hash of everything that is set in the method."""
    return hashlib.sha256(json.dumps(_described(make(method))).encode()).hexdigest()[:12]


def _described(value: Any) -> Any:
    """Settings by the names of classes and functions, without their modules: code may move.

    A setting that was added later, and is at its default, leaves stored results valid.
    """
    if is_dataclass(value):
        given = {field.name: getattr(value, field.name) for field in fields(value)}
        later = {field.name: field.default for field in fields(value) if ADDED_LATER in field.metadata}
        settings = {name: _described(one) for name, one in given.items() if name not in later or one != later[name]}
        revision = getattr(value, "revision", 1)
        return [type(value).__name__, settings, *([revision] if revision > 1 else [])]
    if isinstance(value, tuple):
        return [_described(one) for one in value]
    return value.__qualname__ if callable(value) else value


def versions() -> dict[str, str]:
    """The versions that the numbers of a store depend on."""
    packages = ("average-dice", "jax", "jaxlib", "optax", "numpy")
    return {package: version(package) for package in packages} | simulator_versions(fastest_envs())
