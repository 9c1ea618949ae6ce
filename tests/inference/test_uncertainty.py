"""Uncertainty: bootstrap resamples, what each episode adds, and the interval that suits a method."""

from dataclasses import dataclass, replace

import jax
import numpy as np
import pytest
from average_dice.inference.influence import cross_fitted

import average_dice as ad
from average_dice.demo import load_demo
from average_dice.errors import NotApplicable
from average_dice.estimators import (
    REGISTRY,
    AverageDICE,
    AverageReward,
    Blend,
    Critic,
    DoublyRobust,
    Estimator,
    Fit,
    FittedQ,
    ImportanceSampling,
    MarginalisedDoublyRobust,
    TrainedEstimator,
)
from average_dice.estimators._shared.ratio_fits import added_by_episode
from average_dice.inference import bootstrap
from average_dice.inference.bootstrap import left_out_episodes, replicate, resampled_episodes
from average_dice.inference.difference import behaviour_value, difference
from average_dice.inference.uncertainty import (
    IntervalSettings,
    bias_corrected_interval,
    bootstrap_values,
    of_replicates,
    uncertainty,
)
from average_dice.progress import listening, report
from average_dice.tasks.task import find_task
from average_dice.testing.exact_mdps import early_termination, random_mdp, sticky_chain, tiny, truncated

KEY = jax.random.key(0)
MDP = early_termination()


@dataclass(frozen=True)
class Nothing(Estimator):
    """A critic that knows nothing."""

    def fit(self, problem, *, key):
        return Fit(0.0, critic=Critic(lambda s, a: np.zeros(len(s)), lambda s: np.zeros(len(s))))


def test_draws_are_the_same_for_everyone_and_of_whole_episodes():
    draws = resampled_episodes(30, 10, seed=4)
    np.testing.assert_array_equal(draws, resampled_episodes(30, 10, seed=4))
    assert not np.array_equal(draws, resampled_episodes(30, 10, seed=5))
    assert draws.shape == (10, 30)
    assert draws.min() >= 0
    assert draws.max() <= 29
    counts = np.bincount(resampled_episodes(30, 2_000, seed=0).ravel(), minlength=30)
    assert np.abs(counts / 2_000 - 1).max() < 0.1


def test_leaving_out_each_episode_or_group():
    assert [list(kept) for kept in left_out_episodes(3)] == [[1, 2], [0, 2], [0, 1]]
    groups = left_out_episodes(120)
    assert len(groups) == 50
    assert sum(120 - len(kept) for kept in groups) == 120


def test_replicates_are_the_values_on_the_logs_drawn():
    problem = MDP.problem(25, seed=0)
    draws = list(resampled_episodes(25, 6, seed=0))
    found = replicate(AverageReward(), problem, draws, key=KEY)
    expected = [problem.dataset.select_episodes(chosen).reward.mean() for chosen in draws]
    np.testing.assert_allclose(found, expected)


def test_random_features_are_drawn_anew_for_some_of_the_resamples():
    """Copies of one episode: every resample is the same log, and only the features make a difference."""
    generator = np.random.default_rng(0)
    walk = np.cumsum(generator.normal(size=(21, 2)), axis=0)
    log = ad.LoggedDataset.from_arrays(
        episode=np.repeat(np.arange(12), 20),
        observation=np.tile(walk[:-1], (12, 1)),
        action=np.tile(generator.integers(0, 2, 20), 12),
        reward=np.tile(np.sin(walk[:-1, 0]), 12),
        next_observation=np.tile(walk[1:], (12, 1)),
        terminated=np.zeros(240, bool),
        behaviour_log_prob=np.full(240, np.log(0.5)),
    )
    problem = ad.Problem(log, ad.CategoricalPolicy(lambda observations: observations), 0.9)
    draws = list(resampled_episodes(12, 8, seed=0))
    found = replicate(FittedQ(10), problem, draws, key=KEY)
    assert len(np.unique(found.round(10))) == 4
    np.testing.assert_allclose(found[::2], found[1::2], rtol=1e-9)  # two resamples have one draw of features
    assert np.ptp(replicate(FittedQ(10), problem, draws, key=KEY, feature_draws=1)) < 1e-9


@pytest.mark.slow
def test_the_spread_of_the_replicates_is_that_of_other_logs():
    """Weighted per-decision IS: the bootstrap's spread on a log, against the spread over 150 logs."""
    method = ImportanceSampling.weighted_per_decision()
    values = [method.fit(MDP.problem(100, seed=seed), key=KEY).value for seed in range(150)]
    spreads = [np.std(bootstrap_values(method, MDP.problem(100, seed=seed), 100, 0, key=KEY)) for seed in range(8)]
    assert np.mean(spreads) == pytest.approx(np.std(values), rel=0.15)


@pytest.mark.slow
def test_beyond_a_cut_the_critics_error_is_in_the_interval_of_dr():
    """Student's t over episodes does not know of it: its intervals are a third too narrow here."""
    method = DoublyRobust(critic=FittedQ(20, 1e-9))
    values = [method.fit(truncated().problem(50, seed=seed), key=KEY).value for seed in range(120)]
    widths = []
    for seed in range(8):
        problem = truncated().problem(50, seed=seed)
        fit = method.fit(problem, key=KEY)
        found = uncertainty(method, problem, fit, IntervalSettings(level=0.8, bootstrap=60, seed=seed), key=KEY)
        assert found.kind.startswith("percentiles")
        widths.append(found.upper - found.lower)
    assert np.mean(widths) / (2 * 1.2816) == pytest.approx(np.std(values), rel=0.2)


def test_draws_on_which_it_fails():
    class Moody(Estimator):
        def fit(self, problem, *, key):
            if problem.dataset.reward[0] > 0:
                raise NotApplicable("it does not like this one")
            return Fit(1.0)

    values = bootstrap_values(Moody(), MDP.problem(20, seed=0), 50, 0, key=KEY)
    assert 0 < np.isnan(values).sum() < 50
    found = of_replicates(1.0, values, 0.95, 20)
    assert found.lower is None
    assert "it fails on" in found.kind
    values[:] = np.linspace(0, 1, 50)
    values[7] = np.nan
    assert of_replicates(0.5, values, 0.8, 20).kind == "percentiles of 50 bootstrap resamples, 1 failed"


def test_without_a_critic_doubly_robust_is_importance_sampling():
    """Per decision: ψ of an episode is then its importance-weighted return, and of the marginalised its w ρ r."""
    problem = truncated().problem(50, seed=0)
    data = problem.dataset
    decision = cross_fitted(DoublyRobust(critic=Nothing()), problem, key=KEY)
    expected = ImportanceSampling.per_decision().fit(problem, key=KEY)
    np.testing.assert_allclose(decision, added_by_episode(problem, expected.weights * data.reward))
    marginalised = cross_fitted(MarginalisedDoublyRobust(critic=Nothing()), problem, key=KEY)
    weights = ad.AverageDICE().fit(problem, key=KEY).weights
    np.testing.assert_allclose(marginalised, added_by_episode(problem, weights * data.reward))
    assert marginalised.mean() == pytest.approx(ad.AverageDICE().fit(problem, key=KEY).value)


@pytest.mark.parametrize("make", [DoublyRobust, MarginalisedDoublyRobust])
def test_with_a_critic_that_learns_nothing_the_mean_is_the_estimate(make):
    """Folds do not matter then, and start, δ and weights must be put together as in the method itself."""
    generator = np.random.default_rng(0)
    table, values = generator.standard_normal((5, 2)), generator.standard_normal(5)

    class Fixed(Estimator):
        def fit(self, problem, *, key):
            return Fit(0.0, critic=Critic(lambda s, a: table[s.argmax(1), a], lambda s: values[s.argmax(1)]))

    problem = truncated().problem(60, seed=0)
    method = make(critic=Fixed())
    assert cross_fitted(method, problem, key=KEY).mean() == pytest.approx(method.fit(problem, key=KEY).value, rel=1e-9)


def test_the_critic_is_asked_about_episodes_that_it_has_not_seen():
    seen = []

    class Spying(Estimator):
        def fit(self, problem, *, key):
            known = {row.tobytes() for row in problem.dataset.observation}

            def q(observations, actions):
                seen.append(sum(row.tobytes() in known for row in observations))
                return np.zeros(len(observations))

            return Fit(0.0, critic=Critic(q, lambda observations: np.zeros(len(observations))))

    log = MDP.sample(20, seed=0)
    number = np.cumsum(log.step == 0)[:, None]  # no state is there in two episodes
    apart = replace(log, observation=log.observation + number, next_observation=log.next_observation + number)
    problem = ad.Problem(apart, MDP.policy, 0.9)
    cross_fitted(DoublyRobust(critic=Spying()), problem, key=KEY)
    assert seen == [0] * 5


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("behaviour-return", "Student's t over 60 episodes"),
        ("is", "Student's t over 60 episodes"),
        ("pdis", "Student's t over 60 episodes"),
        ("wis", "percentiles of 50 bootstrap resamples"),
        ("average-reward", "percentiles of 50 bootstrap resamples"),
        ("dr", "Student's t over 60 episodes"),
        ("average-dice-dr", "Student's t over 60 episodes"),
        ("lstd-q", "percentiles of 50 bootstrap resamples"),
        ("td", "no interval: it trains anew for each draw; ask for some"),
    ],
)
def test_kinds(name, kind):
    problem = MDP.problem(60, seed=0)
    method = REGISTRY[name].make()
    fit = Fit(0.0) if method.trains else method.fit(problem, key=KEY)
    found = uncertainty(method, problem, fit, IntervalSettings(bootstrap=50), key=KEY)
    assert found.kind == kind
    if found.lower is not None:
        assert found.lower < fit.value < found.upper


def test_a_method_that_trains_is_trained_on_each_draw():
    problem = random_mdp().problem(20, seed=0)
    method = replace(REGISTRY["td"].make(), num_steps=5, num_checkpoints=1)
    fit = method.fit(problem, key=KEY)
    found = uncertainty(method, problem, fit, IntervalSettings(bootstrap_trained=3), key=KEY)
    assert found.kind == "Student's t with the spread of 3 bootstrap resamples"
    assert len(set(found.replicates)) == 3
    assert found.lower < fit.value < found.upper


def test_of_draws_that_train_at_once_only_those_that_fail_are_lost():
    class WithoutTheFirst(TrainedEstimator):
        num_steps = 1

        def fit_seeds(self, problem, *, keys, draws=None):
            if any(draw.counts[0] == 0 for draw in draws):
                raise NotApplicable("no first episode")
            return [Fit(float(draw.counts[0])) for draw in draws]

    draws = [np.array([0, 0, 1]), np.array([1, 2, 2]), np.array([0, 1, 2])]
    values = replicate(WithoutTheFirst(), MDP.problem(3, seed=0), draws, key=KEY)
    assert values == pytest.approx([2.0, np.nan, 1.0], nan_ok=True)


def test_progress_over_draws_that_train_goes_on_from_one_lot_to_the_next(monkeypatch):
    class Reporting(TrainedEstimator):
        num_steps = 2

        def fit_seeds(self, problem, *, keys, draws=None):
            for done in (1, 2):
                report(done, 2)
            return [Fit(0.0) for _ in draws]

    monkeypatch.setattr(bootstrap, "AT_ONCE", 2)
    seen = []
    with listening(lambda done, total: seen.append((done, total))):
        replicate(Reporting(), MDP.problem(3, seed=0), [np.arange(3)] * 5, key=KEY)
    assert seen == [(done, 6) for done in range(1, 7)]


def test_no_interval_from_one_episode_or_without_draws():
    problem = MDP.problem(1, seed=0)
    fit = AverageReward().fit(problem, key=KEY)
    assert uncertainty(AverageReward(), problem, fit, IntervalSettings(), key=KEY).kind.endswith(
        "the log has one episode"
    )
    none = uncertainty(AverageReward(), MDP.problem(9, seed=0), fit, IntervalSettings(bootstrap=0), key=KEY)
    assert none.kind == "no interval: no draws were asked for"
    one = uncertainty(AverageReward(), MDP.problem(9, seed=0), fit, IntervalSettings(bootstrap=1), key=KEY)
    assert one.kind == "no interval: it takes two bootstrap resamples or more"
    for wrong in ({"level": 1.0}, {"bootstrap": -1}):
        with pytest.raises(ad.SettingError):
            IntervalSettings(**wrong)


def test_bias_correction_of_an_estimator():
    problem = MDP.problem(40, seed=0)
    method = ImportanceSampling.weighted()
    fit = method.fit(problem, key=KEY)
    draws = bootstrap_values(method, problem, 500, 0, key=KEY)
    low, high = bias_corrected_interval(method, problem, fit, draws, 0.9, KEY)
    assert draws.min() <= low < fit.value < high <= draws.max()


def test_what_the_behaviour_policy_earns():
    """On a cut log: the whole of J(μ), not the part before the cut."""
    mdp = replace(sticky_chain(), target=sticky_chain().behaviour)
    problem = mdp.problem(400, seed=1)
    value, draws = behaviour_value(AverageDICE(), problem, 5, 0, key=KEY)
    part = REGISTRY["behaviour-return"].make().fit(problem, key=KEY).value
    assert value == pytest.approx(mdp.value, abs=0.02)
    assert part < value - 0.02
    assert np.std(draws) > 0


def test_without_a_cut_the_behaviour_policy_earned_what_the_log_says():
    problem = MDP.problem(60, seed=0)
    expected = REGISTRY["behaviour-return"].make().fit(problem, key=KEY).value
    assert behaviour_value(AverageDICE(), problem, 2, 0, key=KEY)[0] == pytest.approx(expected, rel=1e-6)


def test_the_behaviour_policy_is_not_told_apart_from_itself():
    """What one method says of π must not be set against what another, which continues otherwise, says of μ."""
    demo = load_demo("Hopper-v5")
    log = demo.dataset.select_episodes(np.arange(20))
    found = ad.evaluate(log, find_task("Hopper-v5").behaviour(demo.policy), 0.97, bootstrap=10)
    assert found.estimates["average-dice-blend"].diagnostics["effective_episodes"] == pytest.approx(20)
    assert found.against_behaviour.judgement == "no significant difference"
    assert found.against_behaviour.upper - found.against_behaviour.lower < 0.05


@pytest.mark.parametrize("name", ["wpdis", "pdis", "average-dice-features"])
def test_without_choices_weights_are_those_of_the_policy_itself(name):
    problem = replace(MDP, target=MDP.behaviour).problem(60, seed=0)
    method = REGISTRY[name].make()
    value, draws = behaviour_value(method, problem, 2, 0, key=KEY)
    assert value == pytest.approx(method.fit(problem, key=KEY).value, rel=1e-6)
    assert draws == pytest.approx(bootstrap_values(method, problem, 2, 0, key=KEY), rel=1e-6)


@pytest.mark.parametrize("method", [FittedQ(20, 1e-9), Blend(20, ridges=(1e-9, 1e-8))], ids=["fqe", "blend"])
def test_without_choices_critics_learn_the_values_of_states(method):
    """On every trajectory as often as it comes: all of J(μ), of which a good part lies beyond the cut."""
    mdp = replace(tiny(), target=tiny().behaviour)
    problem = ad.Problem(mdp.exhaustive(unit=4), mdp.policy, mdp.discount)
    value, _ = behaviour_value(method, problem, 1, 0, key=KEY)
    assert value == pytest.approx(mdp.value, rel=1e-4)
    assert mdp.value_to_truncation < 0.9 * mdp.value


def test_a_difference_from_the_behaviour_policy_where_the_interval_needs_no_draws():
    log = MDP.sample(30, seed=0)
    found = ad.evaluate(log, MDP.policy, MDP.discount, estimators=["pdis"], bootstrap=20)
    assert found.against_behaviour.lower < found.against_behaviour.value < found.against_behaviour.upper
    for changes in ({"bootstrap": 0}, {"estimators": {"mine": replace(REGISTRY["td"].make(), num_steps=2)}}):
        none = ad.evaluate(log, MDP.policy, MDP.discount, **{"estimators": ["pdis"]} | changes)
        assert none.against_behaviour is None
        assert "Against the behaviour policy: no difference, because" in str(none)


def test_differences_are_of_pairs():
    draws = np.random.default_rng(0).standard_normal(300)
    found = difference(1.5, 1.0, draws + 0.5, draws, 0.95, 20)
    assert (found.value, found.lower, found.upper) == pytest.approx((0.5, 0.5, 0.5))
    assert found.judgement == "better"
    assert difference(1.0, 1.5, draws, draws + 0.5, 0.95, 20).judgement == "worse"
    apart = difference(1.0, 1.0, draws, draws[::-1], 0.95, 20)
    assert apart.judgement == "no significant difference"
    assert "95% interval" in apart.in_words("{:.2f}".format)
    few = difference(0.01, 0.0, np.array([0.03, 0.06]), np.zeros(2), 0.95, 20)
    assert few.lower < 0 < few.upper  # two draws tell nothing
    assert few.judgement == "no significant difference"
