"""Groups of episodes by an extra column, and rewards by name."""

from dataclasses import replace

import numpy as np
import pytest

import average_dice as ad
from average_dice.data.groups import groups_of


def log_of(**extra):
    """Three episodes of two steps."""
    return ad.LoggedDataset.from_arrays(
        observation=np.zeros((6, 1)),
        action=[0] * 6,
        reward=[1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
        next_observation=np.zeros((6, 1)),
        terminated=[False, True] * 3,
        episode=[4, 4, 5, 5, 9, 9],
        behaviour_log_prob=[0.0] * 6,
        extra=extra,
    )


def test_episodes_of_each_group():
    log = log_of(site=["b", "b", "a", "a", "b", "b"], ward=[1, 1, 2, 2, 1.5, 1.5])
    assert {name: list(one) for name, one in groups_of(log, "site").items()} == {"a": [1], "b": [0, 2]}
    assert {name: list(one) for name, one in groups_of(log, "ward").items()} == {"1": [0], "1.5": [2], "2": [1]}


@pytest.mark.parametrize(
    ("by", "message"),
    [
        ("sites", r"no column sites to group by\. Did you mean site\? It has site, ward, age"),
        ("ward", r"episode 5, step 1: ward is 2, and 1 at the start of the episode"),
        ("age", r"episode 9, step 0: age is missing"),
    ],
)
def test_columns_that_make_no_groups(by, message):
    nan = float("nan")
    log = log_of(site=["a"] * 6, ward=[1, 1, 1, 2, 1, 1], age=[1, 1, 1, 1, nan, nan])
    with pytest.raises(ad.AverageDiceError, match=message):
        groups_of(log, by)


def test_many_numbers_are_to_be_put_into_bins():
    one = log_of()
    many = one.select_episodes(np.arange(21) % 3)
    with pytest.raises(ad.SettingError, match=r"age has 21 different numbers, and at most 20 .* bins"):
        groups_of(replace(many, extra={"age": np.repeat(np.arange(21.0), 2)}), "age")
    assert len(groups_of(replace(many, extra={"age": np.repeat(np.arange(21.0) % 20, 2)}), "age")) == 20


def test_another_reward():
    log = log_of(cost=[1, 0, 2, 0, 3, 0.5], site=["a"] * 6)
    other = log.with_reward(log.reward_named("cost"))
    np.testing.assert_array_equal(other.reward, [1, 0, 2, 0, 3, 0.5])
    assert other.sha256 == replace(log, reward=log.extra["cost"]).sha256 != log.sha256
    assert log.reward_named("reward") is log.reward


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("csot", r"the log has no reward csot\. Did you mean cost\? It has reward, cost, late"),
        ("site", r"column site holds texts"),
        ("late", r"episode 5, step 0: late is nan\. A reward must be finite"),
    ],
)
def test_columns_that_are_no_rewards(name, message):
    log = log_of(cost=[1.0] * 6, site=["a"] * 6, late=[0, 0, float("nan"), 0, 0, 0])
    with pytest.raises(ad.AverageDiceError, match=message):
        log.reward_named(name)
