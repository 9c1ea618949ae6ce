"""Estimates of the behaviour policy are made once for each bootstrap resample."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

import average_dice as ad
from average_dice.behaviour import estimation
from average_dice.behaviour.folded import FoldedLog
from average_dice.behaviour.refits import NUM_SPLITS, Refits
from average_dice.testing.exact_mdps import early_termination

MDP = early_termination()
NUM_RESAMPLES = 6
DATA = MDP.sample(30, seed=0)
UNKNOWN = replace(DATA, behaviour_log_prob=None, extra={"cost": -2 * DATA.reward})


class Counted:
    """`Refits` that counts fits and keeps at most so many bytes."""

    def __init__(self, **settings):
        self.number, self.settings = 0, settings

    def __call__(self, log, fit):
        def counted(weights):
            self.number += 1
            return fit(weights)

        return Refits(log, counted, **self.settings)


def evaluated(monkeypatch, counted, **settings):
    monkeypatch.setattr(estimation, "Refits", counted)
    options = {"estimate_behaviour": True, "bootstrap": NUM_RESAMPLES, "estimators": ["wpdis", "average-dice-features"]}
    return ad.evaluate(UNKNOWN, MDP.policy, MDP.discount, **options | settings)


def test_each_resample_is_estimated_once_for_all_rewards_and_methods(monkeypatch):
    kept, again = Counted(), Counted(most_bytes=0)
    found, expected = (evaluated(monkeypatch, one, rewards=["reward", "cost"]) for one in (kept, again))
    assert kept.number == NUM_RESAMPLES + 2 * NUM_SPLITS
    assert again.number == 3 * NUM_RESAMPLES + 2 * NUM_SPLITS  # two methods, and one of them for the second reward
    for name in found.estimates:
        np.testing.assert_array_equal(found.replicates[name], expected.replicates[name])
    for name in found.rewards:
        assert found.rewards[name].estimate.interval == expected.rewards[name].estimate.interval


def test_policies_share_the_estimates(monkeypatch):
    counted = Counted()
    monkeypatch.setattr(estimation, "Refits", counted)
    policies = {"one": MDP.policy, "other": MDP.policy}
    ad.compare(UNKNOWN, policies, MDP.discount, estimate_behaviour=True, bootstrap=NUM_RESAMPLES)
    assert counted.number == NUM_RESAMPLES + 2 * NUM_SPLITS


@pytest.mark.parametrize(("most", "fits"), [(0, 6), (1, 5), (2, 4), (3, 3), (10, 3)])
def test_the_memory_is_bounded(most, fits):
    log, calls = FoldedLog.of(DATA, 2, 0), []

    def fit(weights):
        calls.append(weights)
        return weights.copy()

    refits = Refits(log, fit, most_bytes=most * 8 * DATA.num_transitions)
    chosen = [np.arange(30), np.arange(30) // 2, np.full(30, 3)]
    first, second = ([refits(one) for one in chosen] for _ in range(2))
    assert len(calls) == fits
    np.testing.assert_array_equal(first, second)


def test_the_order_of_episodes_does_not_matter():
    refits = Refits(FoldedLog.of(DATA, 2, 0), partial(np.array))
    chosen = np.array([3, 1, 1, 2])
    assert refits(chosen) is refits(chosen[::-1])
    with pytest.raises(ValueError, match="read-only"):
        refits(chosen)[0] = 1.0
