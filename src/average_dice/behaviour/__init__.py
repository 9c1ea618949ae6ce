"""Estimating the behaviour policy, where a log lacks the probabilities of its actions."""

from average_dice.behaviour.estimation import MODELS, estimate_behaviour

__all__ = ["MODELS", "estimate_behaviour"]
