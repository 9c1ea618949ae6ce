"""Features: fixed functions of states, and of states and actions, that linear methods are built on."""

from average_dice.features.fourier import FourierMap
from average_dice.features.state_action import StateActionFeatures

__all__ = ["FourierMap", "StateActionFeatures"]
