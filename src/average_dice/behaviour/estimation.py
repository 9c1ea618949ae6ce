"""estimate_behaviour: fills in the probabilities of the logged actions where the log has none.

    candidates  →  cross-fitted by whole episodes  →  calibrated  →  the one with the highest held-out likelihood

Every probability comes from a model that has not seen its episode. The package lies above `features`, which it uses,
and below `inference`, which refits the chosen model to bootstrap resamples through `LoggedDataset.estimated_behaviour`
and knows no more of it.

It assumes that actions depended on the logged observations only. No log can show whether anything else drove them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Literal

import numpy as np
from jaxtyping import Float

from average_dice import memory
from average_dice.behaviour.calibration import Residuals, calibrated, table_of_probabilities, table_of_ranges
from average_dice.behaviour.categorical import CategoricalModel, Constant, LogProbs, Softmax, Table, Trees
from average_dice.behaviour.folded import FoldedLog, Rows
from average_dice.behaviour.gaussian import Gaussian
from average_dice.behaviour.refits import Refits
from average_dice.data import LoggedDataset
from average_dice.data.estimated import CalibrationBin, EstimatedBehaviour
from average_dice.errors import NotEnoughMemory, SettingError, needs_extra

MODELS = ("constant", "table", "linear", "fourier", "trees")
SHRINKAGES = (1.0, 4.0, 16.0, 64.0)  # rows
RIDGES = {"linear": (1e-4, 1e-2), "fourier": (1e-5, 1e-4, 1e-3, 1e-2)}
GAUSSIAN_RIDGES: dict[Literal["linear", "fourier"], tuple[float, ...]] = {
    "linear": (1e-4,),
    "fourier": (1e-7, 1e-6, 1e-5, 1e-4, 1e-3),
}
SLOW = {"trees": ("constant", "table", "linear", "fourier"), "fourier": ("table",)}  # and models with faster refits
FLOOR = 1e-3  # least probability of a logged action, or a tenth of 1 / number of actions
DENSITY_FLOOR = 1e-5  # least density, as a part of the highest, for each dimension: 4.8 standard deviations
MOST_TREE_CELLS = 500_000  # rows times actions: above, trees take minutes for each resample
TREES_MISSING = (
    "gradient-boosted trees were not tried, because scikit-learn is not installed: pip install 'average-dice[estimate]'"
)


def estimate_behaviour(
    data: LoggedDataset, *, folds: int = 5, seed: int = 0, models: Sequence[str] | None = None
) -> LoggedDataset:
    """The same log with estimated probabilities of its actions, and a record of how they were estimated.

    - `folds`: the probabilities of an episode come from a model of the other folds.
    - `models`: which to try, of `constant`, `table` (where states repeat), `linear`, `fourier` and `trees` (where they
      do not). All that apply by default. `trees` needs scikit-learn: pip install 'average-dice[estimate]'.

    Recorded probabilities, if there are any, are not used and replaced. Intervals estimate the probabilities again in
    every bootstrap resample. The verdict is at best "supported if nothing unobserved drove the actions".

    >>> data = estimate_behaviour(data)                     # doctest: +SKIP
    >>> data.estimated_behaviour.model                      # doctest: +SKIP
    'fourier (ridge 0.001)'
    """
    if folds < 2:
        raise SettingError(f"the behaviour policy is estimated with at least 2 folds, not {folds}.")
    if data.num_episodes < 2:
        raise SettingError(
            "estimating the behaviour policy takes at least two episodes, and the log has one. Log more, or check the "
            "column of episodes if there are several."
        )
    if unknown := [one for one in models or () if one not in MODELS]:
        raise SettingError(f"unknown model {', '.join(unknown)}. Known are {', '.join(MODELS)}.")
    if not 0 <= seed < 2**32:
        raise SettingError(f"the seed must lie between 0 and {2**32 - 1}, not {seed}.")
    log = FoldedLog.of(data, folds, seed)
    candidates, notes = (_discrete if data.is_discrete else _continuous)(log, models)
    if not candidates:
        raise SettingError(f"none of the models {', '.join(models or ())} applies to this log.")
    fits = {one.name: one.fit(log.every) for one in candidates}
    best = _best(log, fits)
    chosen = next(one for one in candidates if one.name == best)
    found = fits[best]
    floored = int((found.log_prob < found.least).sum())
    if floored:
        notes.append(f"estimated probabilities were raised to the least that is believed in {floored:,} of the rows")
    refits = Refits(log, lambda weights: chosen.fit(weights).floored)
    record = EstimatedBehaviour(
        model=best,
        candidates={name: float(fit.log_prob.mean()) for name, fit in fits.items()},
        calibration=found.table(),
        floored=floored,
        notes=tuple(notes),
        again=refits,
        of_halves=refits.of_halves,
    )
    return replace(data, behaviour_log_prob=found.floored, estimated_behaviour=record)


@dataclass(frozen=True, eq=False)
class Fitted:
    """A calibrated model: log μ of the logged actions, the least that is believed, and the table of calibration."""

    log_prob: Float[np.ndarray, " transition"]
    least: float
    table: Callable[[], tuple[CalibrationBin, ...]]

    @property
    def floored(self) -> Float[np.ndarray, " transition"]:
        """log μ with the floor."""
        return np.maximum(self.log_prob, self.least)


@dataclass(frozen=True, eq=False)
class Candidate:
    """A model by name; `fit` fits it to all folds but one, for each, with weights of rows, and calibrates it."""

    name: str
    fit: Callable[[Rows], Fitted]


def _best(log: FoldedLog, fits: dict[str, Fitted]) -> str:
    """The highest held-out likelihood. A model whose refits take long must be better by a standard error."""
    left = dict(fits)
    for slow, fast in SLOW.items():
        best = _likeliest(left)
        faster = {name: fit for name, fit in left.items() if name.startswith(fast)}
        if best.startswith(slow) and faster and not _is_better(log, left[best], left[_likeliest(faster)]):
            left = {name: fit for name, fit in left.items() if not name.startswith(slow)}
    return _likeliest(left)


def _likeliest(fits: dict[str, Fitted]) -> str:
    return max(fits, key=lambda name: float(fits[name].log_prob.mean()))


def _is_better(log: FoldedLog, one: Fitted, other: Fitted) -> bool:
    """By more than a standard error of the sums over episodes."""
    gain = np.add.reduceat(one.log_prob - other.log_prob, log.data.starts)
    return bool(gain.mean() > gain.std(ddof=1) / np.sqrt(len(gain)))


def _discrete(log: FoldedLog, names: Sequence[str] | None) -> tuple[list[Candidate], list[str]]:
    """The models that apply to discrete actions, and notes on those that do not."""
    _require_memory(log)
    wanted, notes = names or MODELS, []
    models: list[CategoricalModel] = [Constant()] if "constant" in wanted else []
    if "table" in wanted and log.states.repeat:
        models += [Table(one) for one in SHRINKAGES]
    models += [Softmax(kind, ridge) for kind in ("linear", "fourier") if kind in wanted for ridge in RIDGES[kind]]
    if names is not None and "trees" in names:
        with needs_extra("estimate"):
            import sklearn  # noqa: F401
        models.append(Trees())
    elif names is None and not log.states.repeat and len(log.every) * log.num_actions <= MOST_TREE_CELLS:
        if find_spec("sklearn"):
            models.append(Trees())
        else:
            notes.append(TREES_MISSING)

    def candidate(model: CategoricalModel) -> Candidate:
        return Candidate(model.name, lambda weights: _calibrated(log, model.predict(log, weights), weights))

    return [candidate(one) for one in models], notes


def _calibrated(log: FoldedLog, scores: LogProbs, weights: Rows) -> Fitted:
    log_probs = calibrated(scores, log.data, log.mask, weights)
    logged = log_probs[np.arange(len(log_probs)), log.data.action]
    least = float(np.log(min(FLOOR, 0.1 / log.num_actions)))
    return Fitted(logged, least, lambda: table_of_probabilities(log_probs, log.data))


def _continuous(log: FoldedLog, names: Sequence[str] | None) -> tuple[list[Candidate], list[str]]:
    """The models of continuous actions."""
    wanted = names or MODELS
    models = [Gaussian(None)] if "constant" in wanted else []
    models += [Gaussian(kind, ridge) for kind, ridges in GAUSSIAN_RIDGES.items() if kind in wanted for ridge in ridges]

    def candidate(model: Gaussian) -> Candidate:
        return Candidate(model.name, lambda weights: _with_density(log, model, weights))

    return [candidate(one) for one in models], []


def _with_density(log: FoldedLog, model: Gaussian, weights: Rows) -> Fitted:
    found = Residuals.of(log.data.action - model.predict(log, weights), weights)
    least = float(found.highest_log_density.sum() + np.log(DENSITY_FLOOR) * len(found.spread))
    return Fitted(found.log_density.sum(axis=1), least, lambda: table_of_ranges(found.central))


def _require_memory(log: FoldedLog) -> None:
    """Probabilities of all actions in all rows, in four copies."""
    needed = 32 * log.data.num_transitions * log.num_actions
    if needed > memory.limit():
        raise NotEnoughMemory(
            f"estimating the behaviour policy takes {log.num_actions:,} probabilities in each of "
            f"{log.data.num_transitions:,} rows, {needed / 2**30:.1f} GiB, above the limit of memory: raise --memory."
        )
