"""What a ratio can be: a table, a linear model, Fourier features, a network. Each fits the same regression."""

from .fourier import FourierFeatures
from .linear import IncrementalLinear, Linear
from .network import NetworkRegression
from .regression import Fitted, History, RatioModel, Regression
from .table import Table

__all__ = [
    "Fitted",
    "FourierFeatures",
    "History",
    "IncrementalLinear",
    "Linear",
    "NetworkRegression",
    "RatioModel",
    "Regression",
    "Table",
]
