"""States given as integer codes: the exact value, and the same answers as with indicators made by hand."""

from dataclasses import replace
from functools import cache

import jax
import numpy as np
import pytest

import average_dice as ad
from average_dice.errors import NotApplicable
from average_dice.estimators import REGISTRY, Estimator, FittedQ
from average_dice.resampling import Resample
from average_dice.testing.exact_mdps import early_termination, integer_codes, many_states

KEY = jax.random.key(0)
MANY = integer_codes(many_states())

# All pairs of 300 states and 2 actions have values of their own: the default features and ridge cannot hold them all.
FINE_FQE = FittedQ(num_features=300, ridge=1e-5)


@cache
def many(declared: bool = True) -> ad.Problem:
    log = MANY.sample(500, seed=1)
    return ad.Problem(log if declared else replace(log, categorical=()), MANY.policy, MANY.discount)


@pytest.mark.parametrize(
    "method",
    [FINE_FQE, *(REGISTRY[name].make() for name in ("average-dice-features", "cop-td-features", "average-dice-blend"))],
    ids=["fqe", "average-dice-features", "cop-td-features", "average-dice-blend"],
)
def test_300_states_as_integer_codes(method):
    """J is 0.292, and what μ earns is 0.146."""
    assert abs(method.fit(many(), key=KEY).value - MANY.value) < 0.015


def test_codes_used_as_numbers_mislead():
    assert abs(FINE_FQE.fit(many(declared=False), key=KEY).value - MANY.value) > 0.1


def test_the_ratio_of_each_code():
    """A smooth function of the code has nothing to do with the ratio."""
    method, codes = REGISTRY["cop-td-features"].make(), MANY.codes[:-1, None].astype(float)
    found = [np.corrcoef(method.fit(many(one), key=KEY).ratio(codes), MANY.ratio)[0, 1] for one in (True, False)]
    assert found[0] > 0.4
    assert found[1] < 0.2


def by_code_and_by_hand() -> tuple[ad.Problem, ad.Problem]:
    """One log with integer codes and two numeric columns around them, and with indicators made by hand."""
    mdp = integer_codes(early_termination(), seed=3)
    log = mdp.sample(60, seed=0)
    noise = np.random.default_rng(0).normal(size=(log.num_transitions + 1, 2))

    def beside(columns: np.ndarray, first: int) -> np.ndarray:
        shown = noise[first : first + len(columns)]
        return np.column_stack([shown[:, 0], columns, shown[:, 1]])

    def ones(codes: np.ndarray) -> np.ndarray:
        return np.eye(mdp.num_states + 1)[codes[:, 0].astype(int)]

    def policy_at(place: slice, code) -> ad.CategoricalPolicy:
        return ad.CategoricalPolicy(lambda rows: mdp.policy.logits(code(rows[:, place])))

    both = (log.observation, log.next_observation)
    coded = replace(log, observation=beside(both[0], 0), next_observation=beside(both[1], 1), categorical=(1,))
    made = replace(log, observation=beside(ones(both[0]), 0), next_observation=beside(ones(both[1]), 1), categorical=())
    return (
        ad.Problem(coded, policy_at(slice(1, 2), lambda code: code), mdp.discount),
        ad.Problem(made, policy_at(slice(1, -1), lambda rows: rows.argmax(axis=1)[:, None]), mdp.discount),
    )


def few_steps(name: str) -> Estimator:
    method = REGISTRY[name].make()
    return method.with_training(num_steps=20, num_checkpoints=2) if method.trains else method


CLOSED_FORMS = [name for name, entry in REGISTRY.items() if not entry.make().trains]
NETWORKS = ["average-dice-neural", "cop-td", "td", "sr-dice", "dual-dice"]  # the others share their inputs with these


@pytest.mark.parametrize("name", [*CLOSED_FORMS, *NETWORKS])
def test_declared_codes_are_indicators_made_by_hand(name):
    """The value, the ratio and the critic at any state, and the refit to a resample."""
    coded, made = by_code_and_by_hand()
    assert set(np.unique(coded.dataset.observation[:, 1])) | set(
        np.unique(coded.dataset.next_observation[:, 1])
    ) == set(range(6))
    chosen = np.random.default_rng(1).integers(0, 60, 60)
    method, found = few_steps(name), []
    for problem in (coded, made):
        data = problem.dataset
        prepared = method.prepare(problem, key=KEY)
        fit = prepared.fit()
        numbers = [[fit.value], [prepared.refit([Resample.of(problem, chosen)])[0].value]]
        for actions in ((), (data.action[:50],)):
            try:
                numbers.append(fit.ratio(data.observation[:50], *actions))
            except NotApplicable:
                numbers.append([np.nan])
        if fit.critic is not None:
            numbers += [fit.critic.q(data.observation[:50], data.action[:50]), fit.critic.v(data.next_observation[:50])]
        found.append(np.concatenate(numbers))
    np.testing.assert_allclose(found[0], found[1], rtol=1e-9)


def test_the_evaluation_is_the_same_too():
    """Diagnostics and checks included; the map of states, too."""
    found = [
        ad.evaluate(one.dataset, one.policy, one.discount, estimators=["average-dice-features"], bootstrap=4).to_dict()
        for one in by_code_and_by_hand()
    ]
    for name in ("diagnostics", "states", "against_behaviour"):
        first, second = (jax.tree.leaves(one[name]) for one in found)
        numbers = [(one, other) for one, other in zip(first, second, strict=True) if isinstance(one, float)]
        assert len(numbers) > 3
        np.testing.assert_allclose(*np.array(numbers).T, rtol=1e-7, atol=1e-12)
    assert [one["status"] for one in found[0]["checks"]] == [one["status"] for one in found[1]["checks"]]


def test_the_recommended_estimate_says_that_a_column_looks_categorical():
    mdp = integer_codes(early_termination())
    log = mdp.sample(30, seed=0)
    for declared in (True, False):
        data = log if declared else replace(log, categorical=())
        found = ad.evaluate(data, mdp.policy, mdp.discount, bootstrap=0)
        codes = {name: [note.code for note in one.notes] for name, one in found.estimates.items()}
        named = [name for name, of_one in codes.items() if ad.NoteCode.LOOKS_CATEGORICAL in of_one]
        assert named == ([] if declared else [found.recommended])


def test_an_unknown_code_has_a_value():
    mdp = integer_codes(early_termination())
    critic = FittedQ().fit(mdp.problem(40, seed=0), key=KEY).critic
    assert np.isfinite(critic.q(np.array([[77.0]]), np.array([1]))).all()
