"""The exact MDPs: their answers agree with simulation, and their logs are what they say."""

from dataclasses import replace

import numpy as np
import pytest

from average_dice.testing.exact_mdps import (
    ALL,
    early_termination,
    hidden_clock,
    masked,
    random_mdp,
    sticky_chain,
    support_hole,
    tiny,
    truncated,
    unseen_action,
)

# Of 40 episodes with seed 0: published results were computed on such logs.
HASHES = {
    "sticky chain": "3d7daf542027cb93c85b913997024a880bd87b59ef1701d002df81dd4926ca3e",
    "truncated": "1f0a8c81721153a5687c0731fa7f268d8aa54e60c60f0d382020b60c3b200326",
}
EVERY = (*ALL, unseen_action(), hidden_clock(), support_hole(), tiny(), masked())


@pytest.mark.parametrize("mdp", EVERY, ids=lambda mdp: mdp.name)
def test_probabilities_are_probabilities(mdp):
    for table in (mdp.target, mdp.behaviour, mdp.start[None]):
        np.testing.assert_allclose(table.sum(axis=1), 1)
    assert (mdp.transition >= 0).all()
    assert mdp.transition.sum(axis=2).max() <= 1 + 1e-12


@pytest.mark.parametrize("mdp", EVERY, ids=lambda mdp: mdp.name)
def test_the_value_is_what_the_target_policy_earns(mdp):
    """Episodes of π itself, to where γᵗ is negligible."""
    long = None if mdp.clock else int(np.ceil(np.log(1e-5) / np.log(mdp.discount)))
    own = replace(mdp, behaviour=mdp.target, truncation=long, early_truncations=())
    log = own.sample(3_000, seed=1)
    returns = (1 - mdp.discount) * np.bincount(log.episode, mdp.discount**log.step * log.reward)
    assert abs(returns.mean() - mdp.value) < 4.5 * returns.std() / np.sqrt(len(returns)) + 1e-4


def test_truncation_early_and_late():
    log = replace(truncated(), early_truncations=(3, 7)).sample(3_000, seed=0)
    ends = log.lengths[log.truncated[log.starts + log.lengths - 1]]
    assert set(ends) == {3, 7, 20}
    assert not random_mdp().sample(50, seed=0).terminated.any()
    assert not early_termination().sample(50, seed=0).truncated.any()


def test_every_trajectory_is_there_as_often_as_it_is_likely():
    mdp = tiny()
    log = mdp.exhaustive(4)
    visits = mdp.visits(mdp.behaviour, 3)
    for step in range(3):
        found = log.observation[log.step == step].sum(axis=0) / log.num_episodes
        np.testing.assert_allclose(found, visits[step], rtol=1e-12)


def test_hidden_states_share_an_observation():
    log = hidden_clock().sample(20, seed=0)
    np.testing.assert_array_equal(log.observation, np.eye(6)[np.zeros(log.num_transitions, int)])


def test_logs_carry_the_mask_and_no_policy_takes_a_forbidden_action():
    mdp = masked()
    assert not mdp.allowed.all()
    for policy in (mdp.target, mdp.behaviour):
        np.testing.assert_array_equal(policy > 0, mdp.allowed)
    for log in (mdp.sample(50, seed=0), mdp.exhaustive(4)):
        np.testing.assert_array_equal(log.action_mask, mdp.allowed[log.observation.argmax(axis=1)])
        assert log.terminated.any()
        assert log.truncated.any()
    assert tiny().exhaustive(4).action_mask is None


def test_the_same_seed_gives_the_same_log():
    for mdp in (sticky_chain(), truncated()):
        assert mdp.sample(40, seed=0).sha256 == HASHES[mdp.name]
