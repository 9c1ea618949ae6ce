"""Models of the ratio: a table, a linear model, Fourier features, an MLP. Each fits the same regression."""

from average_dice.models.fourier import FourierFeatures
from average_dice.models.held_out import HeldOut
from average_dice.models.learning_curves import History
from average_dice.models.linear import IncrementalLinear, Linear
from average_dice.models.mlp_regression import MLPRegression
from average_dice.models.regression import Fitted, PreparedModel, RatioModel, Regression, Resampled
from average_dice.models.released_regression import ReleasedRegression
from average_dice.models.table import ShrunkTable, Table

__all__ = [
    "Fitted",
    "FourierFeatures",
    "HeldOut",
    "History",
    "IncrementalLinear",
    "Linear",
    "MLPRegression",
    "PreparedModel",
    "RatioModel",
    "Regression",
    "ReleasedRegression",
    "Resampled",
    "ShrunkTable",
    "Table",
]
