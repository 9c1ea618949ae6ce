"""What a ratio can be: a table, a linear model, Fourier features, a network. Each fits the same regression."""

from average_dice.models.fourier import FourierFeatures
from average_dice.models.linear import IncrementalLinear, Linear
from average_dice.models.mlp_regression import MLPRegression
from average_dice.models.regression import Fitted, History, RatioModel, Regression
from average_dice.models.table import Table

__all__ = [
    "Fitted",
    "FourierFeatures",
    "History",
    "IncrementalLinear",
    "Linear",
    "MLPRegression",
    "RatioModel",
    "Regression",
    "Table",
]
