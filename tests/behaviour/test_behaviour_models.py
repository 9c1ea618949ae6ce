"""The models of the behaviour policy: exact frequencies, least squares, and rows that a model must not see."""

from dataclasses import replace

import numpy as np
import pytest

from average_dice.behaviour.calibration import Residuals, calibrated, table_of_probabilities, table_of_ranges
from average_dice.behaviour.categorical import Constant, Softmax, Table, Trees, normalised
from average_dice.behaviour.folded import FoldedLog
from average_dice.behaviour.gaussian import Gaussian
from average_dice.data import LoggedDataset
from average_dice.testing.exact_mdps import early_termination, tiny

DISCRETE = (Constant(), Table(4.0), Softmax("linear", 1e-3), Softmax("fourier", 1e-3), Trees())
CONTINUOUS = (Gaussian(None), Gaussian("linear", 1e-4), Gaussian("fourier", 1e-4))


def one_step_log(observation, action):
    """A log of episodes of one step."""
    number = len(observation)
    return LoggedDataset.from_arrays(
        observation=observation,
        action=action,
        reward=np.zeros(number),
        next_observation=observation,
        terminated=np.ones(number, bool),
        episode=np.arange(number),
    )


def continuous_log(number=200, seed=0):
    generator = np.random.default_rng(seed)
    observation = generator.normal(size=(number, 2))
    return one_step_log(observation, observation @ [[1.0, 0.5], [-2.0, 0.0]] + generator.normal(size=(number, 2)))


def twice(data):
    """The log and a copy of it, as two folds: the model of each fold is fitted to exactly the rows it predicts."""
    number = data.num_episodes
    both = data.select_episodes(np.tile(np.arange(number), 2))
    return FoldedLog(both, np.repeat([0, 1], data.num_transitions), 2, 0)


def fresh(model):
    """The model without the results that a softmax starts its refits from."""
    return replace(model, _starts={}) if isinstance(model, Softmax) else model


def test_a_table_of_all_that_can_happen_is_the_behaviour_policy():
    """Each fold is a log with every trajectory as often as it is likely."""
    mdp = tiny()
    log = twice(mdp.exhaustive(unit=1_000))
    found = Table(0.0).predict(log, log.every)
    logged = found[np.arange(len(found)), log.data.action]
    np.testing.assert_allclose(logged, log.data.behaviour_log_prob, atol=2e-3)  # whole episodes: 1 / 1,000 is rounded


def test_a_table_counts_the_rows_of_other_folds_and_shrinks_towards_all_of_them():
    data = early_termination().sample(12, seed=0)
    log = FoldedLog.of(data, 3, 0)
    counts = np.random.default_rng(1).integers(0, 3, data.num_episodes)
    weights = np.repeat(counts, data.lengths).astype(float)
    found = Table(4.0).predict(log, weights)
    row = 17
    others = (log.fold != log.fold[row]).astype(float) * weights
    here = (data.observation == data.observation[row]).all(axis=1)
    overall = np.array([others[data.action == one].sum() + 0.5 for one in range(log.num_actions)])
    at_state = np.array([others[here & (data.action == one)].sum() for one in range(log.num_actions)])
    expected = at_state + 4.0 * overall / overall.sum()
    np.testing.assert_allclose(np.exp(found[row]), expected / expected.sum())


def test_a_softmax_meets_its_score_equations():
    """Without a ridge, Σ φ (μ − [a taken]) = 0 on the fitted rows."""
    data = early_termination().sample(40, seed=0)
    log = twice(data)
    phi = log.linear
    prob = np.exp(normalised(Softmax("linear", 0.0).predict(log, log.every), None))
    taken = np.arange(log.num_actions) == log.data.action[:, None]
    np.testing.assert_allclose(phi.T @ (prob - taken) / len(phi), 0.0, atol=1e-5)


def test_a_gaussian_mean_is_least_squares():
    log = twice(continuous_log())
    found = Gaussian("linear").predict(log, log.every)
    beta, *_ = np.linalg.lstsq(log.linear, log.data.action, rcond=None)
    np.testing.assert_allclose(found, log.linear @ beta, atol=1e-6)


@pytest.mark.parametrize("model", [*DISCRETE, *CONTINUOUS], ids=lambda model: f"{type(model).__name__} {model.name}")
def test_a_model_has_not_seen_the_fold_that_it_predicts(model):
    """Other actions in one fold change the predictions of all other folds, and none of its own."""
    if isinstance(model, Trees):
        pytest.importorskip("sklearn")
    data = continuous_log() if isinstance(model, Gaussian) else early_termination().sample(30, seed=0)
    log = FoldedLog.of(data, 3, 0)
    changed_rows = log.fold == 1
    action = data.action.copy()
    action[changed_rows] = action[changed_rows] + 5.0 if isinstance(model, Gaussian) else 0
    other = FoldedLog(replace(data, action=action), log.fold, 3, 0)
    before, after = fresh(model).predict(log, log.every), fresh(model).predict(other, other.every)
    np.testing.assert_array_equal(after[changed_rows], before[changed_rows])
    assert (after[~changed_rows] != before[~changed_rows]).any(axis=1).all()


@pytest.mark.parametrize("model", [Table(4.0), Softmax("linear", 1e-3), Gaussian("linear")], ids=lambda one: one.name)
def test_copies_of_an_episode_stay_in_its_fold(model):
    """An episode that a resample contains ten times does not change its own prediction."""
    data = continuous_log(60) if isinstance(model, Gaussian) else early_termination().sample(30, seed=0)
    log = FoldedLog.of(data, 3, 0)
    copied = np.concatenate([np.arange(data.num_episodes), np.full(9, 4)])
    model = fresh(model)
    before, after = model.predict(log, log.every), model.predict(log, log.weights_of(copied))
    own = log.fold == log.fold[data.starts[4]]
    np.testing.assert_allclose(after[own], before[own], atol=1e-3)  # L-BFGS starts elsewhere
    assert np.abs(after[~own] - before[~own]).max() > 1e-2


def test_a_fold_is_made_of_whole_episodes():
    data = early_termination().sample(31, seed=0)
    log = FoldedLog.of(data, 5, 0)
    assert all(len(set(log.fold[data.starts[one] :][: data.lengths[one]])) == 1 for one in range(31))
    assert sorted(np.bincount(log.fold[data.starts])) == [6, 6, 6, 6, 7]


def test_calibration_finds_the_temperature_and_the_share_of_random_actions():
    generator = np.random.default_rng(0)
    scores = generator.normal(size=(40_000, 3)) * 3
    prob = 0.7 * np.exp(normalised(scores / 2, None)) + 0.1
    action = (generator.random((len(scores), 1)) > prob.cumsum(axis=1)[:, :2]).sum(axis=1)
    data = one_step_log(np.zeros((len(scores), 1)), action)
    found = np.exp(calibrated(scores, data, None, np.ones(len(scores))))
    assert np.abs(found - prob).max() < 0.02
    assert np.abs(np.exp(normalised(scores, None)) - prob).max() > 0.2


def test_forbidden_actions_have_no_probability():
    generator = np.random.default_rng(0)
    mask = generator.random((300, 4)) < 0.6
    mask[:, 0] = True
    data = one_step_log(np.zeros((300, 1)), np.zeros(300, int))
    found = np.exp(calibrated(generator.normal(size=(300, 4)), data, mask, np.ones(300)))
    assert (found[~mask] == 0).all()
    np.testing.assert_allclose(found.sum(axis=1), 1.0)


def test_the_spread_and_the_tails_of_residuals():
    generator = np.random.default_rng(0)
    normal, heavy = generator.normal(0, 2.0, (20_000, 1)), 0.5 * generator.standard_t(4, (20_000, 1))
    weights = np.ones(20_000)
    found = Residuals.of(normal, weights)
    assert found.freedom == np.inf
    np.testing.assert_allclose(found.spread, np.sqrt((normal**2).mean(axis=0)))
    found = Residuals.of(heavy, weights)
    assert found.freedom == 4.0
    np.testing.assert_allclose(found.spread, 0.5, rtol=0.03)
    for one in table_of_ranges(found.central):
        assert abs(one.predicted - one.observed) < 4 * one.standard_error


def test_the_table_of_calibration_is_exact_on_frequencies_that_came_true():
    data = one_step_log(np.zeros((400, 1)), (np.arange(400) % 4 == 0).astype(int))
    (low, high) = table_of_probabilities(np.log(np.tile([0.75, 0.25], (400, 1))), data)
    assert (low.predicted, low.observed, low.number) == (0.25, 0.25, 400)
    assert (high.predicted, high.observed) == (0.75, 0.75)
    np.testing.assert_allclose(low.standard_error, np.sqrt(0.25 * 0.75 / 400))
