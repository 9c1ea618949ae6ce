"""Uncertainty: bootstrap resamples, what each episode adds, and the interval that suits a method."""

from dataclasses import dataclass, replace

import jax
import numpy as np
import pytest

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
    PreparedClosedForm,
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


class Simple(Estimator):
    """An estimator by a function of the resampled problem."""

    def prepare(self, problem, *, key):
        return PreparedClosedForm(problem, lambda resample: self.fit_to(resample.problem))


@dataclass(frozen=True)
class Nothing(Simple):
    """A critic that is 0 everywhere."""

    def fit_to(self, problem):
        return Fit(0.0, critic=Critic(lambda s, a: np.zeros(len(s)), lambda s: np.zeros(len(s))))


def by_episode(method, problem):
    """One number for each episode, by a cross-fitted critic; on truncated logs, too, where `dr` does not use them."""
    if isinstance(method, DoublyRobust):
        return method._by_episode(problem, method.critic.prepare(problem, key=KEY))
    return method.fit(problem, key=KEY).episode_values()


def found_for(method, problem, **settings):
    prepared = method.prepare(problem, key=KEY)
    return prepared.fit(), uncertainty(method, problem, prepared, IntervalSettings(**settings), key=KEY)


def test_resamples_are_the_same_for_every_method_and_of_whole_episodes():
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
    chosen = list(resampled_episodes(25, 6, seed=0))
    found = replicate(AverageReward(), problem, chosen, key=KEY)
    expected = [problem.dataset.select_episodes(one).reward.mean() for one in chosen]
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
    chosen = list(resampled_episodes(12, 8, seed=0))
    found = replicate(FittedQ(10), problem, chosen, key=KEY)
    assert len(np.unique(found.round(10))) == 4
    np.testing.assert_allclose(found[::2], found[1::2], rtol=1e-9)  # two resamples have one draw of features
    assert np.ptp(replicate(FittedQ(10), problem, chosen, key=KEY, feature_draws=1)) < 1e-9


@pytest.mark.slow
def test_the_spread_of_the_replicates_is_that_of_other_logs():
    """Weighted per-decision IS: the bootstrap's spread on a log, against the spread over 150 logs."""
    method = ImportanceSampling.weighted_per_decision()
    values = [method.fit(MDP.problem(100, seed=seed), key=KEY).value for seed in range(150)]
    spreads = [np.std(bootstrap_values(method, MDP.problem(100, seed=seed), 100, 0, key=KEY)) for seed in range(8)]
    assert np.mean(spreads) == pytest.approx(np.std(values), rel=0.15)


@pytest.mark.slow
def test_after_truncation_the_critics_error_is_in_the_interval_of_dr():
    """Student's t over episodes does not know of it: its intervals are a third too narrow here."""
    method = DoublyRobust(critic=FittedQ(20, 1e-9))
    values = [method.fit(truncated().problem(50, seed=seed), key=KEY).value for seed in range(120)]
    widths = []
    for seed in range(8):
        problem = truncated().problem(50, seed=seed)
        _, found = found_for(method, problem, level=0.8, bootstrap=60, seed=seed)
        assert found.interval.kind.startswith("percentiles")
        widths.append(found.interval.width)
    assert np.mean(widths) / (2 * 1.2816) == pytest.approx(np.std(values), rel=0.2)


def test_resamples_on_which_the_method_fails():
    class Moody(Simple):
        def fit_to(self, problem):
            if problem.dataset.reward[0] > 0:
                raise NotApplicable("it does not like this one")
            return Fit(1.0)

    values = bootstrap_values(Moody(), MDP.problem(20, seed=0), 50, 0, key=KEY)
    assert 0 < np.isnan(values).sum() < 50
    found = of_replicates(1.0, values, 0.95, 20)
    assert found.interval is None
    assert "the method fails on" in found.note.text
    values[:] = np.linspace(0, 1, 50)
    values[7] = np.nan
    assert of_replicates(0.5, values, 0.8, 20).interval.kind == "percentiles of 50 bootstrap resamples, 1 failed"


def test_without_a_critic_doubly_robust_is_importance_sampling():
    """Per decision: ψ of an episode is then its importance-weighted return, and of the marginalised its w ρ r."""
    problem = truncated().problem(50, seed=0)
    data = problem.dataset
    decision = by_episode(DoublyRobust(critic=Nothing()), problem)
    expected = ImportanceSampling.per_decision().fit(problem, key=KEY)
    np.testing.assert_allclose(decision, added_by_episode(problem, expected.weights * data.reward))
    marginalised = by_episode(MarginalisedDoublyRobust(critic=Nothing()), problem)
    weights = ad.AverageDICE().fit(problem, key=KEY).weights
    np.testing.assert_allclose(marginalised, added_by_episode(problem, weights * data.reward))
    assert marginalised.mean() == pytest.approx(ad.AverageDICE().fit(problem, key=KEY).value)


@pytest.mark.parametrize("make", [DoublyRobust, MarginalisedDoublyRobust])
def test_with_a_critic_that_learns_nothing_the_mean_is_the_estimate(make):
    """Folds do not matter then, and start, δ and weights must be put together as in the method itself."""
    generator = np.random.default_rng(0)
    table, values = generator.standard_normal((5, 2)), generator.standard_normal(5)

    class Fixed(Simple):
        def fit_to(self, problem):
            return Fit(0.0, critic=Critic(lambda s, a: table[s.argmax(1), a], lambda s: values[s.argmax(1)]))

    problem = truncated().problem(60, seed=0)
    method = make(critic=Fixed())
    assert by_episode(method, problem).mean() == pytest.approx(method.fit(problem, key=KEY).value, rel=1e-9)


def test_the_critic_is_asked_about_episodes_that_it_has_not_seen():
    seen = []

    class Spying(Simple):
        def fit_to(self, problem):
            known = {row.tobytes() for row in problem.dataset.observation}

            def q(observations, actions):
                seen.append(sum(row.tobytes() in known for row in observations))
                return np.zeros(len(observations))

            return Fit(0.0, critic=Critic(q, lambda observations: np.zeros(len(observations))))

    log = MDP.sample(20, seed=0)
    number = np.cumsum(log.step == 0)[:, None]  # no state is there in two episodes
    apart = replace(log, observation=log.observation + number, next_observation=log.next_observation + number)
    problem = ad.Problem(apart, MDP.policy, 0.9)
    by_episode(DoublyRobust(critic=Spying()), problem)
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
        ("td", "no interval: the method trains anew on every resample; ask for some with bootstrap_trained"),
    ],
)
def test_kinds(name, kind):
    problem = MDP.problem(60, seed=0)
    method = REGISTRY[name].make()
    prepared = method.prepare(problem, key=KEY)
    found = uncertainty(method, problem, prepared, IntervalSettings(bootstrap=50), key=KEY)
    if found.interval is None:
        assert found.note.text == kind
        return
    assert found.interval.kind == kind
    assert found.interval.lower < prepared.fit().value < found.interval.upper


def test_a_method_that_trains_is_trained_on_each_resample():
    problem = random_mdp().problem(20, seed=0)
    method = replace(REGISTRY["td"].make(), num_steps=5, num_checkpoints=1)
    fit, found = found_for(method, problem, bootstrap_trained=3)
    assert found.interval.kind == "Student's t with the spread of 3 bootstrap resamples"
    assert len(set(found.replicates)) == 3
    assert found.interval.lower < fit.value < found.interval.upper


def test_of_resamples_that_train_at_once_only_those_that_fail_are_lost():
    class WithoutTheFirst(TrainedEstimator):
        num_steps = 1

        def train(self, problem, *, keys, resamples=None):
            if any(one.counts[0] == 0 for one in resamples):
                raise NotApplicable("no first episode")
            return [Fit(float(one.counts[0])) for one in resamples]

    chosen = [np.array([0, 0, 1]), np.array([1, 2, 2]), np.array([0, 1, 2])]
    values = replicate(WithoutTheFirst(), MDP.problem(3, seed=0), chosen, key=KEY)
    assert values == pytest.approx([2.0, np.nan, 1.0], nan_ok=True)


def test_progress_continues_from_one_lot_of_training_to_the_next(monkeypatch):
    class Reporting(TrainedEstimator):
        num_steps = 2

        def train(self, problem, *, keys, resamples=None):
            for done in (1, 2):
                report(done, 2)
            return [Fit(0.0) for _ in resamples]

    monkeypatch.setattr(bootstrap, "AT_ONCE", 2)
    seen = []
    with listening(lambda done, total: seen.append((done, total))):
        replicate(Reporting(), MDP.problem(3, seed=0), [np.arange(3)] * 5, key=KEY)
    assert seen == [(done, 6) for done in range(1, 7)]


def test_no_interval_from_one_episode_or_without_resamples():
    _, alone = found_for(AverageReward(), MDP.problem(1, seed=0))
    assert alone.note.text.startswith("no interval: the log has one episode. Log more")
    _, none = found_for(AverageReward(), MDP.problem(9, seed=0), bootstrap=0)
    assert none.note.text == "no interval: no bootstrap resamples were asked for"
    _, one = found_for(AverageReward(), MDP.problem(9, seed=0), bootstrap=1)
    assert one.note.text == "no interval: an interval takes at least two bootstrap resamples"
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
    """On a truncated log: the whole of J(μ), not the part before the truncation."""
    mdp = replace(sticky_chain(), target=sticky_chain().behaviour)
    problem = mdp.problem(400, seed=1)
    value, draws = behaviour_value(AverageDICE(), problem, 5, 0, key=KEY)
    part = REGISTRY["behaviour-return"].make().fit(problem, key=KEY).value
    assert value == pytest.approx(mdp.value, abs=0.02)
    assert part < value - 0.02
    assert np.std(draws) > 0


def test_without_truncation_the_behaviour_policy_earned_what_the_log_says():
    problem = MDP.problem(60, seed=0)
    expected = REGISTRY["behaviour-return"].make().fit(problem, key=KEY).value
    assert behaviour_value(AverageDICE(), problem, 2, 0, key=KEY)[0] == pytest.approx(expected, rel=1e-6)


def test_the_behaviour_policy_does_not_differ_from_itself():
    """μ must be estimated by the same method as π: another continues otherwise after truncation."""
    demo = load_demo("Hopper-v5")
    log = demo.dataset.select_episodes(np.arange(20))
    found = ad.evaluate(log, find_task("Hopper-v5").behaviour(demo.policy), 0.97, bootstrap=10)
    assert found.estimates["average-dice-blend"].diagnostics["effective_episodes"] == pytest.approx(20)
    assert found.against_behaviour.judgement == "no significant difference"
    assert found.against_behaviour.upper - found.against_behaviour.lower < 0.05


@pytest.mark.parametrize("name", ["wpdis", "pdis", "average-dice-features"])
def test_with_a_single_action_weights_are_those_of_the_policy_itself(name):
    problem = replace(MDP, target=MDP.behaviour).problem(60, seed=0)
    method = REGISTRY[name].make()
    value, draws = behaviour_value(method, problem, 2, 0, key=KEY)
    assert value == pytest.approx(method.fit(problem, key=KEY).value, rel=1e-6)
    assert draws == pytest.approx(bootstrap_values(method, problem, 2, 0, key=KEY), rel=1e-6)


@pytest.mark.parametrize("method", [FittedQ(20, 1e-9), Blend(20, ridges=(1e-9, 1e-8))], ids=["fqe", "blend"])
def test_with_a_single_action_critics_learn_the_values_of_states(method):
    """On every trajectory as often as it comes: all of J(μ), of which a good part lies after the truncation."""
    mdp = replace(tiny(), target=tiny().behaviour)
    problem = ad.Problem(mdp.exhaustive(unit=4), mdp.policy, mdp.discount)
    value, _ = behaviour_value(method, problem, 1, 0, key=KEY)
    assert value == pytest.approx(mdp.value, rel=1e-4)
    assert mdp.value_to_truncation < 0.9 * mdp.value


def test_a_difference_from_the_behaviour_policy_where_the_interval_needs_no_resamples():
    log = MDP.sample(30, seed=0)
    found = ad.evaluate(log, MDP.policy, MDP.discount, estimators=["pdis"], bootstrap=20)
    assert found.against_behaviour.lower < found.against_behaviour.value < found.against_behaviour.upper
    for changes in ({"bootstrap": 0}, {"estimators": {"mine": replace(REGISTRY["td"].make(), num_steps=2)}}):
        none = ad.evaluate(log, MDP.policy, MDP.discount, **{"estimators": ["pdis"]} | changes)
        assert none.against_behaviour is None
        assert "Against the behaviour policy: not compared:" in str(none)


def test_differences_are_of_pairs():
    draws = np.random.default_rng(0).standard_normal(300)
    found = difference(1.5, 1.0, draws + 0.5, draws, 0.95, 20)
    assert (found.value, found.lower, found.upper) == pytest.approx((0.5, 0.5, 0.5))
    assert found.judgement == "better"
    assert difference(1.0, 1.5, draws, draws + 0.5, 0.95, 20).judgement == "worse"
    apart = difference(1.0, 1.0, draws, draws[::-1], 0.95, 20)
    assert apart.judgement == "no significant difference"
    assert "95% interval" in apart.in_words("{:.2f}".format, " per step")
    few = difference(0.01, 0.0, np.array([0.03, 0.06]), np.zeros(2), 0.95, 20)
    assert few.lower < 0 < few.upper  # two draws tell nothing
    assert few.judgement == "no significant difference"
