"""select: standard errors that other logs confirm, and the rule by hand."""

from dataclasses import dataclass

import jax
import numpy as np
import pytest

import average_dice as ad
from average_dice.estimators import AverageReward, BehaviourReturn, ImportanceSampling, PreparedClosedForm
from average_dice.testing.exact_mdps import early_termination, random_mdp

KEY = jax.random.key(0)


@dataclass(frozen=True)
class Says(ad.Estimator):
    """`level`, and around it `width` times how much the mean of the starting states' rewards is off."""

    level: float
    width: float

    def prepare(self, problem, *, key):
        return PreparedClosedForm(problem, self.solve_for)

    def solve_for(self, resample):
        data = resample.problem.dataset
        return ad.Fit(self.level + self.width * float(data.reward[data.starts].mean() - 0.5))


@pytest.fixture(scope="module")
def problem():
    """Episodes of one step whose rewards are 0 and 1 by turns."""
    episodes = 100
    return ad.Problem(
        ad.LoggedDataset.from_arrays(
            observation=np.zeros((episodes, 1)),
            action=np.zeros(episodes, np.int64),
            reward=np.arange(episodes) % 2.0,
            next_observation=np.zeros((episodes, 1)),
            terminated=np.ones(episodes, bool),
            episode=np.arange(episodes),
            step=np.zeros(episodes, np.int64),
        ),
        None,
        0.9,
    )


def test_the_narrowest_that_agrees_with_all_wider_is_chosen(problem):
    """Standard errors are width · 0.05: wide 0.5, middle 0.05, biased 0.005, narrow 0.0005."""
    methods = {"narrow": Says(2.12, 0.01), "wide": Says(2.0, 10.0), "biased": Says(2.6, 0.1), "middle": Says(2.1, 1.0)}
    found = ad.select(problem, methods, key=KEY)
    assert found.chosen == "narrow"  # though "biased", which is wider, does not agree with it
    assert found.value == pytest.approx(2.12)
    assert found.standard_error == pytest.approx(0.0005, rel=0.6)
    assert [reason.split(":")[0] for reason in found.reasons] == ["wide", "middle", "biased", "narrow"]
    assert "does not overlap middle: biased" in found.reasons[2]
    assert str(found).startswith("narrow: 2.12 ± ")


def test_if_all_agree_the_narrowest_is_chosen(problem):
    found = ad.select(problem, {"a": Says(2.0, 10.0), "b": Says(2.2, 1.0), "c": Says(2.25, 0.5)}, key=KEY)
    assert found.chosen == "c"


def test_the_standard_error_is_what_other_logs_show():
    mdp = random_mdp()
    values, errors = [], []
    for seed in range(80):
        found = ad.select(mdp.problem(50, seed=seed), {"b": BehaviourReturn()}, key=KEY)
        values.append(found.value)
        errors.append(found.standard_error)
    assert np.mean(errors) == pytest.approx(np.std(values), rel=0.2)


def test_names_what_does_not_apply_and_bad_input():
    mdp = early_termination()
    problem = mdp.problem(30, seed=0)
    by_name = ad.select(problem, ["behaviour-return", "wpdis"], key=KEY)
    methods = {"behaviour-return": BehaviourReturn(), "wpdis": ImportanceSampling.weighted_per_decision()}
    assert by_name == ad.select(problem, methods, key=KEY)
    without = ad.Problem(problem.dataset, None, 0.9)
    found = ad.select(without, ["wpdis", "behaviour-return"], key=KEY)
    assert found.chosen == "behaviour-return"
    assert found.reasons[0].startswith("wpdis: not applicable: ")
    with pytest.raises(ad.NotApplicable):
        ad.select(without, ["wpdis"], key=KEY)
    with pytest.raises(ad.SettingError, match="unknown estimator 'best'"):
        ad.select(problem, ["best"], key=KEY)
    assert ad.select(problem, "behaviour-return, wpdis", key=KEY) == by_name
    assert (
        "nothing: no finite value"
        in ad.select(problem, {"nothing": Says(float("nan"), 0.0), "some": BehaviourReturn()}, key=KEY).reasons
    )
    with pytest.raises(ad.SettingError, match="at least two episodes"):
        ad.select(mdp.problem(1, seed=0), ["behaviour-return"], key=KEY)


def test_a_number_on_another_scale_is_not_compared(problem):
    """Where episodes terminate, the average reward is no value. With one step each it is."""
    ending = early_termination().problem(30, seed=0)
    found = ad.select(ending, ["average-reward", "behaviour-return"], key=KEY)
    alone = ad.select(ending, ["behaviour-return"], key=KEY)
    assert (found.chosen, found.value, found.standard_error) == (alone.chosen, alone.value, alone.standard_error)
    assert found.reasons[0].startswith("average-reward: ")
    assert "left out: a reward per logged step, not on the scale of the value" in found.reasons[0]
    with pytest.raises(ad.NotApplicable, match="not on the scale of the value"):
        ad.select(ending, ["average-reward"], key=KEY)
    assert ad.select(problem, {"mean": AverageReward()}, key=KEY).value == 0.5


def test_select_episodes_keeps_them_whole():
    log = early_termination().sample(6, seed=0)
    some = log.select_episodes(np.array([4, 1, 4]))
    assert some.num_episodes == 3
    assert list(some.lengths) == [log.lengths[4], log.lengths[1], log.lengths[4]]
    rows = slice(log.starts[1], log.starts[1] + log.lengths[1])
    np.testing.assert_array_equal(some.reward[some.episode == 1], log.reward[rows])
    np.testing.assert_array_equal(some.observation[some.episode == 1], log.observation[rows])
    np.testing.assert_array_equal(some.behaviour_log_prob[some.episode == 1], log.behaviour_log_prob[rows])
    assert some.target_log_prob is None
    assert log.select_episodes(np.arange(6)).sha256 == log.sha256
