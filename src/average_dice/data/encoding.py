"""Encoding: from observations to the inputs of features and networks.

A categorical column holds codes. Their order and their distances mean nothing, so features must not use them as
numbers. Policies receive the observations as they are.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float, Int

Observations = Float[np.ndarray, "row observation"]

MOST_INDICATORS = 300  # more values have a random code: costs grow with the inputs, and it is less exact for fitted Q

# Random vectors of this many dimensions are nearly orthogonal. So all different values have about the same distance
# (to 18 %), as with indicators, and the number of inputs does not grow with the number of values.
CODE_SIZE = 64
CODE_SEED = 20253  # any number


@dataclass(frozen=True, eq=False)
class Encoding:
    """Numeric columns stay as they are; a categorical column becomes indicators of its values, or a random code.

    `values`: for each of the `categorical` columns, its values in the log, sorted. Any other value is encoded as zeros.
    """

    categorical: tuple[int, ...]
    values: tuple[Float[np.ndarray, " _"], ...]

    @staticmethod
    def of(categorical: Sequence[int], *observations: Observations) -> "Encoding":
        """The encoding with all values of these columns that occur in the observations."""
        values = [np.unique(np.concatenate([one[:, column] for one in observations])) for column in categorical]
        return Encoding(tuple(categorical), tuple(values))

    def encode(self, observations: Observations) -> Float[np.ndarray, "row input"]:
        """The inputs of features and networks; the same array if no column is categorical."""
        if not self.categorical:
            return observations
        parts, first = [], 0
        for place, column in enumerate(self.categorical):
            parts += [observations[:, first:column], self._codes[place][self._index(place, observations[:, column])]]
            first = column + 1
        return np.concatenate([*parts, observations[:, first:]], axis=1)

    def sources(self, num_columns: int) -> Int[np.ndarray, " input"]:
        """The observation column that each input comes from."""
        widths = np.ones(num_columns, int)
        widths[list(self.categorical)] = [codes.shape[1] for codes in self._codes]
        return np.repeat(np.arange(num_columns), widths)

    @cached_property
    def _codes(self) -> list[Float[np.ndarray, "value_and_unknown code"]]:
        """The code of each value, with zeros for any other in the last row."""
        found = []
        for column, values in zip(self.categorical, self.values, strict=True):
            number = len(values)
            generator = np.random.default_rng([CODE_SEED, column])
            codes = np.eye(number) if number <= MOST_INDICATORS else generator.standard_normal((number, CODE_SIZE))
            found.append(np.vstack([codes, np.zeros(codes.shape[1])]))
        return found

    def _index(self, place: int, column: Float[np.ndarray, " row"]) -> np.ndarray:
        values = self.values[place]
        index = np.minimum(np.searchsorted(values, column), len(values) - 1)
        return np.where(values[index] == column, index, len(values))
