"""EstimatedBehaviour: says that the probabilities of the logged actions were estimated, and how."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from average_dice.errors import DatasetError

MOST_REMEMBERED = 2**27  # bytes of estimates (128 MiB): 100 resamples of 160,000 rows
GIVEN = "given by the user"  # the model of estimates that the user filled in

Chosen = Int[np.ndarray, " chosen"]
LogProbs = Float[np.ndarray, " transition"]
Halves = Float[np.ndarray, "half transition"]


@dataclass(frozen=True)
class CalibrationBin:
    """Predictions of about the same size: their mean, how often they came true, the error by chance, their number."""

    predicted: float
    observed: float
    standard_error: float
    number: int


@dataclass(frozen=True)
class EstimatedBehaviour:
    """How `behaviour_log_prob` was estimated.

    - `model`: what was fitted. `candidates`: the held-out log likelihood of each candidate, per row.
    - `calibration`: predicted and observed frequencies on held-out episodes.
    - `floored`: the number of rows whose probability was raised to the least that is believed. `notes`: in sentences.
    - `again`: log μ of all rows of the log, estimated again from these episodes, which may repeat. None if that is not
      possible, as for a log from a file. It is not stored.
    - `of_halves`: log μ of all rows, from each of several random halves of the episodes. They show how much the
      estimates still change with the size of the log. None if that is not possible; it gives None if the log is small.
    """

    model: str = GIVEN
    candidates: Mapping[str, float] = field(default_factory=dict)
    calibration: tuple[CalibrationBin, ...] = ()
    floored: int = 0
    notes: tuple[str, ...] = ()
    again: Callable[[Chosen], LogProbs] | None = field(default=None, repr=False, compare=False)
    of_halves: Callable[[], Halves | None] | None = field(default=None, repr=False, compare=False)

    @property
    def calibration_error(self) -> float | None:
        """The mean distance of predicted from observed frequencies; None if it was not measured."""
        number = sum(one.number for one in self.calibration)
        if not number:
            return None
        return sum(one.number * abs(one.predicted - one.observed) for one in self.calibration) / number

    @property
    def calibration_distance(self) -> float | None:
        """The largest distance of a predicted from an observed frequency, in standard errors."""
        found = [
            abs(one.predicted - one.observed) / max(one.standard_error, 1e-12) for one in self.calibration if one.number
        ]
        return max(found) if found else None

    def of_rows(self, kept: Bool[np.ndarray, " transition"]) -> "EstimatedBehaviour":
        """For a log with only these rows of every episode."""
        again = self.again
        return self if again is None else replace(self._at(kept), again=lambda chosen: again(chosen)[kept])

    def of_episodes(self, rows: Int[np.ndarray, " row"]) -> "EstimatedBehaviour":
        """For a log of other episodes, with these rows of this one: it cannot be estimated again."""
        return replace(self._at(rows), again=None)

    def remembered(self) -> "EstimatedBehaviour":
        """Estimates again only once from the same episodes, for several policies on the same bootstrap resamples."""
        again, kept = self.again, dict[bytes, LogProbs]()
        if again is None:
            return self

        def once(chosen: Chosen) -> LogProbs:
            name = chosen.tobytes()
            found = kept.get(name)
            if found is None:
                found = again(chosen)
                if (len(kept) + 1) * found.nbytes <= MOST_REMEMBERED:
                    kept[name] = found
            return found

        return replace(self, again=once)

    def fixed(self) -> "EstimatedBehaviour":
        """For estimates that come with the log: they cannot be made again."""
        return replace(self, again=None, of_halves=None)

    def _at(self, rows: np.ndarray) -> "EstimatedBehaviour":
        of_halves = self.of_halves
        if of_halves is None:
            return self

        def selected() -> Halves | None:
            found = of_halves()
            return None if found is None else found[:, rows]

        return replace(self, of_halves=selected)

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            "model": self.model,
            "candidates": dict(self.candidates),
            "calibration": [vars(one) for one in self.calibration],
            "floored": self.floored,
            "notes": list(self.notes),
        }

    @staticmethod
    def from_json(text: str | bytes) -> "EstimatedBehaviour":
        """From a file."""
        try:
            content = json.loads(text)
            return EstimatedBehaviour(
                str(content["model"]),
                {str(name): float(value) for name, value in content["candidates"].items()},
                tuple(CalibrationBin(**one) for one in content["calibration"]),
                int(content["floored"]),
                tuple(map(str, content["notes"])),
            )
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            raise DatasetError(
                "its record of the estimated behaviour policy is not readable. Estimate it again."
            ) from None
