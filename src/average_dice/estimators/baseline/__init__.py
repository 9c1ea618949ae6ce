"""Baselines: what the behaviour policy earned, uncorrected."""
