"""The recommended estimator: its candidates are the methods it is made of, and it degrades to what is given."""

from dataclasses import replace

import jax
import numpy as np
import pytest

import average_dice as ad
from average_dice.errors import NotApplicable
from average_dice.estimators import AverageDICE, Blend, DoublyRobust, Estimator, FittedQ, MarginalisedDoublyRobust
from average_dice.estimators.blend._candidates import Candidate, candidates_of, errors_of
from average_dice.estimators.blend._critics import ScoredCritic, step_dependence
from average_dice.estimators.blend.blend import reference_of
from average_dice.estimators.blend.row_weights import evenly
from average_dice.estimators.doubly_robust._td_errors import logged_values, td_errors
from average_dice.testing.exact_mdps import early_termination, hidden_clock, random_mdp, sticky_chain, truncated
from conftest import columns_of

KEY = jax.random.key(0)
RIDGE = 1e-6
ALONE = Blend(20, (evenly,), (RIDGE,))


def critic_of(problem):
    """The only critic of a blend with one ridge."""
    (critic,), _ = ALONE.prepare(problem, key=KEY).critics.learn_log()
    return critic


@pytest.mark.parametrize("mdp", [random_mdp(), early_termination(), truncated()], ids=lambda mdp: mdp.name)
def test_its_candidates_are_fitted_q_weighted_dr_and_marginalised_dr(mdp):
    problem = mdp.problem(200, seed=1)
    critic = critic_of(problem)
    weights = AverageDICE().fit(problem, key=KEY).weights
    found = candidates_of(problem, [critic], [weights])
    fitted = FittedQ(20, RIDGE)
    key = jax.random.fold_in(KEY, 0)  # of the first draw

    class Given(Estimator):
        """The same weights, whatever the key."""

        def prepare(self, problem, *, key):
            return AverageDICE().prepare(problem, key=KEY)

    assert found[0].value == pytest.approx(fitted.fit(problem, key=key).value, abs=1e-6)
    weighted = replace(DoublyRobust.weighted(), critic=fitted).fit(problem, key=key).value
    (full,) = [candidate for candidate in found if candidate.full]
    assert full.value == pytest.approx(weighted, abs=1e-6)
    marginalised = MarginalisedDoublyRobust(Given(), fitted).fit(problem, key=key).value
    assert found[-1].value == pytest.approx(marginalised, abs=1e-6)


@pytest.mark.slow
def test_the_error_of_fitted_q_is_what_other_logs_show():
    """Its standard error by episode, against the spread over 120 logs."""
    mdp = random_mdp()
    values, errors = [], []
    for seed in range(120):
        problem = mdp.problem(60, seed=seed)
        critic = critic_of(problem)
        direct = candidates_of(problem, [critic], [])[0]
        values.append(direct.value)
        errors.append(np.linalg.norm(direct.errors))
    assert np.mean(errors) == pytest.approx(np.std(values), rel=0.15)


@pytest.mark.slow
def test_the_error_of_the_products_is_what_other_logs_show():
    mdp = early_termination()
    values, errors = [], []
    for seed in range(100):
        problem = mdp.problem(100, seed=seed)
        critic = critic_of(problem)
        nothing = np.zeros(problem.dataset.num_transitions)
        (full,) = [one for one in candidates_of(problem, [critic], [nothing]) if one.full]
        values.append(full.value)
        errors.append(np.linalg.norm(full.errors))
    assert 0.6 < np.mean(errors) / np.std(values) < 1.6


def test_the_error_of_the_products_where_most_episodes_terminate():
    """Episodes terminate at a rate of 0.25 under μ and 0.05 under π; TD errors are noise.

    Over 200 logs the correction spreads as its error says.
    """
    generator = np.random.default_rng(0)
    corrections, errors = [], []
    for _ in range(200):
        lengths = np.minimum(generator.geometric(0.25, size=200), 12)
        episode = np.repeat(np.arange(200), lengths)
        step = np.concatenate([np.arange(length) for length in lengths])
        last = np.diff(episode, append=200) > 0
        terminated = last & (step < 11)
        observation = np.zeros((len(step), 1))
        log = ad.LoggedDataset.from_arrays(
            observation=observation,
            action=terminated.astype(np.int64),
            reward=np.zeros(len(step)),
            next_observation=observation,
            terminated=terminated,
            episode=episode,
            step=step,
            behaviour_log_prob=np.log(np.where(terminated, 0.25, 0.75)),
            target_log_prob=np.log(np.where(terminated, 0.05, 0.95)),
        )
        problem = ad.Problem(log, None, 0.95)
        critic = ScoredCritic(np.zeros(200), generator.standard_normal(len(step)), np.zeros(200))
        (full,) = [one for one in candidates_of(problem, [critic], [np.zeros(len(step))]) if one.full]
        corrections.append(full.value)
        errors.append(np.linalg.norm(full.errors))
    assert np.mean(errors) == pytest.approx(np.std(corrections), rel=0.15)


def corrections_of(num_episodes: int, seed: int) -> Candidate:
    """The corrected estimate of a log whose episodes all terminate, by a critic that has no error but its own."""
    generator = np.random.default_rng(seed)
    lengths = generator.integers(2, 6, num_episodes)
    step = np.concatenate([np.arange(length) for length in lengths])
    episode = np.repeat(np.arange(num_episodes), lengths)
    observation = np.zeros((len(step), 1))
    log = ad.LoggedDataset.from_arrays(
        observation=observation,
        action=np.zeros(len(step), np.int64),
        reward=np.zeros(len(step)),
        next_observation=observation,
        terminated=np.diff(episode, append=num_episodes) > 0,
        episode=episode,
        step=step,
        behaviour_log_prob=np.zeros(len(step)),
        target_log_prob=np.zeros(len(step)),
    )
    own = generator.standard_normal(num_episodes)
    critic = ScoredCritic(np.zeros(num_episodes), np.zeros(len(step)), own)
    found = candidates_of(ad.Problem(log, None, 1.0), [critic], [np.zeros(len(step))])
    (full,) = [one for one in found if one.full]
    np.testing.assert_allclose(np.linalg.norm(found[0].errors), (own - own.mean()).std() / np.sqrt(num_episodes))
    return full


def test_the_error_of_a_critic_is_gone_where_all_episodes_have_terminated():
    """At discount 1 the factor is the share of π's episodes that go on, not γʲ = 1."""
    assert np.linalg.norm(corrections_of(50, seed=0).errors) == 0


def test_products_of_one_effective_episode_have_an_error_without_limit():
    """One of 30 episodes has all the weight: its TD error, whatever it is, says nothing."""
    log = random_mdp().problem(30, seed=0).dataset
    step, episode = log.step, np.repeat(np.arange(30), log.lengths)
    target = np.where((episode == 0) | (step == 0), log.behaviour_log_prob, -50.0)
    problem = ad.Problem(replace(log, target_log_prob=target), None, 0.9)
    critic = ScoredCritic(np.zeros(30), np.random.default_rng(1).standard_normal(len(step)), np.zeros(30))
    every = candidates_of(problem, [critic], [np.zeros(len(step))], strict=True)
    found = [one for one in every if one.kind == "products"]
    assert np.linalg.norm(found[0].errors) < 1  # 30 effective episodes
    assert np.linalg.norm(found[-1].errors) > 10


def test_it_finds_the_value_after_truncation():
    """Sticky chain: up to the truncation 0.5205, in all 0.5897."""
    chain = sticky_chain()
    found = Blend(20, (evenly,)).fit(chain.problem(2_000, seed=0), key=KEY)
    assert found.value == pytest.approx(chain.value, abs=0.02)
    assert found.diagnostics["in_sample_error"] < 0.02
    assert sum(found.diagnostics[f"share_by_{kind}"] for kind in ("values", "products", "ratio")) == pytest.approx(1)


def test_without_a_policy_object_it_is_its_ratio():
    mdp = early_termination()
    problem = mdp.problem(100, seed=0)
    log = problem.dataset
    columns = {**columns_of(log), "target_log_prob": problem.target_log_prob}
    given = ad.Problem(ad.LoggedDataset(**columns), None, mdp.discount)
    found = Blend().fit(given, key=KEY)
    assert found.value == AverageDICE().fit(given, key=KEY).value
    assert found.notes[-1].code == ad.NoteCode.NO_POLICY
    assert "by importance ratios alone: it needs π itself" in found.notes[-1].text


def test_without_the_behaviour_policy_it_is_a_blend_of_values():
    mdp = early_termination()
    columns = columns_of(mdp.sample(2_000, seed=0))
    del columns["behaviour_log_prob"]
    found = Blend(20, (evenly,)).fit(ad.Problem(ad.LoggedDataset(**columns), mdp.policy, mdp.discount), key=KEY)
    assert found.value == pytest.approx(mdp.value, abs=0.03)
    assert found.diagnostics["share_by_values"] == pytest.approx(1)
    assert found.notes[0].code == ad.NoteCode.NO_RATIOS
    assert "by learnt values alone: it needs μ" in found.notes[0].text


def test_without_either_it_says_so():
    columns = columns_of(early_termination().sample(20, seed=0))
    del columns["behaviour_log_prob"]
    with pytest.raises(NotApplicable):
        Blend().fit(ad.Problem(ad.LoggedDataset(**columns), None, 0.9), key=KEY)


def test_one_episode_and_no_overlap_are_no_crash():
    mdp = early_termination()
    assert np.isfinite(Blend().fit(mdp.problem(1, seed=0), key=KEY).value)
    apart = replace(mdp, target=np.eye(mdp.target.shape[1])[np.zeros(len(mdp.target), int)])
    log = mdp.sample(30, seed=0)
    chosen = np.repeat(log.action[log.starts] == 1, log.lengths)
    columns = {name: column[chosen] for name, column in columns_of(log).items()}
    found = Blend().fit(ad.Problem(ad.LoggedDataset(**columns), apart.policy, mdp.discount), key=KEY)
    assert np.isfinite(found.value)
    assert found.notes[0].code == ad.NoteCode.NO_RATIOS


def test_the_answer_is_never_outside_of_what_rewards_allow():
    mdp = random_mdp()
    for seed in range(20):
        problem = mdp.problem(3, seed=seed)
        value = Blend(20, (evenly,)).fit(problem, key=KEY).value
        assert problem.dataset.reward.min() <= value <= problem.dataset.reward.max() or problem.dataset.terminated.any()


def treated(num_episodes: int, seed: int) -> ad.LoggedDataset:
    """Treatment earns 1 where s > 0; episodes last 2 to 5 steps, whatever happens."""
    generator = np.random.default_rng(seed)
    lengths = generator.integers(2, 6, num_episodes)
    state = generator.standard_normal((int(lengths.sum()), 1))
    up = state[:, 0] > 0
    treats = generator.random(len(state)) < 0.3 + 0.4 * up
    episode = np.repeat(np.arange(num_episodes), lengths)
    return ad.LoggedDataset.from_arrays(
        observation=state,
        action=treats.astype(np.int64),
        reward=(treats & up).astype(np.float64),
        next_observation=np.roll(state, -1, axis=0),
        terminated=np.diff(episode, append=num_episodes) > 0,
        episode=episode,
        behaviour_log_prob=np.log(np.where(treats == up, 0.7, 0.3)),
    )


@pytest.mark.slow
def test_the_effect_of_actions_is_not_shrunk():
    """π treats with probability 0.9 where s > 0 and 0.1 elsewhere: E[Σ r] is 3.5 · 0.45, μ's is 3.5 · 0.35."""
    policy = ad.as_policy(lambda seen: np.where(seen[:, :1] > 0, [[0.1, 0.9]], [[0.9, 0.1]]))
    gains = []
    for seed in range(6):
        log = treated(700, seed)
        problem = ad.Problem(log, policy, 1.0)
        gains.append(Blend().fit(problem, key=KEY).value - log.reward.sum() / 700)
    error = np.std(gains, ddof=1) / np.sqrt(len(gains))
    assert error < 0.02
    assert np.mean(gains) == pytest.approx(0.35, abs=3 * error)


def test_a_hidden_clock_shows_in_the_td_errors():
    """Critics of the state leave a mean behind that depends on the step; where states tell all, they do not."""
    plain, clocked = random_mdp().problem(200, seed=0), hidden_clock(()).problem(200, seed=0)
    for problem, found in ((plain, False), (clocked, True)):
        values = logged_values(problem, FittedQ(20, 1e-9).fit(problem, key=KEY).critic)
        assert (step_dependence(problem, td_errors(problem, values)) > Blend().clock) == found


def test_the_dependence_on_the_step_by_hand():
    """Two parts of the episode with means of 1 and −1 and a spread over episodes of 1/2."""
    problem = random_mdp().problem(100, seed=0)
    step = problem.dataset.step
    spread = np.where(np.arange(100) % 2 == 0, 0.5, -0.5)[problem.episode_index]
    delta = np.where(step == 0, 1 + spread, 0.0)
    error = np.std([0.5, -0.5] * 50, ddof=1) / 10
    assert step_dependence(problem, delta) == pytest.approx(1 / error)


def test_the_reference_trusts_what_is_precise():
    errors = np.array([[0.1, 0.0], [0.0, 0.2], [0.0, 0.0]])
    np.testing.assert_allclose(reference_of(errors, np.array([True, True, False])), [0.8, 0.2, 0.0])
    np.testing.assert_allclose(reference_of(0 * errors, np.array([True, True, False])), [0.5, 0.5, 0.0])
    least = reference_of(np.array([[1.0], [0.0]]), np.array([True, True]))
    np.testing.assert_allclose(least, [1 / 10_001, 10_000 / 10_001])


def test_solutions_that_did_not_settle_are_an_error_of_their_critic_alone():
    candidates = [Candidate("values", True, 0.0, np.array([0.1, 0.2]), unsettled) for unsettled in (0.0, 0.0, 0.3, 0.5)]
    found = errors_of(candidates, num_critics=2)
    np.testing.assert_allclose(found, [[0.1, 0.2, 0, 0], [0.1, 0.2, 0, 0], [0.1, 0.2, 0, 0.3], [0.1, 0.2, 0, 0.5]])
