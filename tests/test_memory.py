"""Limits of memory: what is reduced, that the peak stays below the limit, and that nothing changes without one."""

import gc
import tracemalloc

import jax
import numpy as np
import pytest

import average_dice as ad
from average_dice import memory
from average_dice.features import logged_state_actions
from average_dice.features.logged_state_actions import LoggedStateActions, size_of
from average_dice.features.state_action import StateActionFeatures
from average_dice.notes import NoteCode
from average_dice.testing.exact_mdps import early_termination
from average_dice.threads import carried, in_threads

KEY = jax.random.key(0)
RESAMPLES = 4


def wide_log(num_rows: int = 10_000, num_actions: int = 5, num_steps: int = 20) -> ad.Problem:
    """Random states and rewards: only its size matters."""
    generator = np.random.default_rng(0)
    weights = generator.standard_normal((num_actions, 6))
    policy = ad.CategoricalPolicy(lambda observations: observations @ weights.T)
    observation = generator.standard_normal((num_rows + 1, 6))
    log = ad.LoggedDataset.from_arrays(
        observation=observation[:-1],
        action=generator.integers(num_actions, size=num_rows),
        reward=generator.standard_normal(num_rows),
        next_observation=observation[1:],
        terminated=np.zeros(num_rows, bool),
        episode=np.arange(num_rows) // num_steps,
        behaviour_log_prob=np.full(num_rows, -np.log(num_actions)),
    )
    return ad.Problem(log, policy, 0.9)


def codes(notes: tuple[ad.Note, ...]) -> list[NoteCode]:
    return [note.code for note in notes]


@pytest.mark.parametrize(
    ("text", "expected"),
    [("2GiB", 2 * 2**30), ("1.5 gib", 3 * 2**29), ("500MiB", 500 * 2**20), ("7k", 7168), ("123", 123), (4096, 4096)],
)
def test_an_amount_is_read(text, expected):
    assert memory.parsed(text) == expected


@pytest.mark.parametrize("text", ["", "GiB", "-1GiB", "2 apples", "0", "0GiB", "1e9"])
def test_an_amount_that_is_none_is_an_error(text):
    with pytest.raises(ad.SettingError, match="memory"):
        memory.parsed(text)


def test_the_argument_wins_over_the_variable_and_the_variable_over_the_machine(monkeypatch):
    monkeypatch.delenv(memory.VARIABLE, raising=False)
    assert memory.limit() == memory.available() // 2
    monkeypatch.setenv(memory.VARIABLE, "3GiB")
    assert memory.limit() == 3 * 2**30
    with memory.limited("1GiB"):
        assert memory.limit() == 2**30
        with memory.limited(None):
            assert memory.limit() == 2**30
    assert memory.limit() == 3 * 2**30


def test_a_container_with_less_than_the_machine_counts(monkeypatch, tmp_path):
    (tmp_path / "limit").write_text("1048576\n")
    (tmp_path / "unlimited").write_text("max\n")
    monkeypatch.setattr(memory, "CGROUPS", ())
    machine = memory.available.__wrapped__()
    assert machine > 2**20
    for name, expected in (("limit", 2**20), ("unlimited", machine), ("missing", machine)):
        monkeypatch.setattr(memory, "CGROUPS", (str(tmp_path / name),))
        assert memory.available.__wrapped__() == expected


def test_threads_have_the_limit_of_their_caller():
    with memory.limited(12345):
        assert in_threads(lambda _: memory.limit(), range(4)) == [12345] * 4
        later = carried(memory.limit)
    assert later() == 12345


@pytest.mark.parametrize("num_actions", [1, 2, 3, 4, 10, 80, 700, None])
def test_the_size_of_features_is_known_before_they_are_drawn(num_actions):
    generator = np.random.default_rng(0)
    states = generator.standard_normal((60, 3))
    actions = generator.standard_normal((60, 2)) if num_actions is None else np.zeros(60, int)
    drawn = StateActionFeatures.draw(states, actions, num_actions, 10, generator)
    assert StateActionFeatures.size_of(5 if num_actions is None else 3, num_actions, 10) == drawn.size


def test_features_are_halved_until_they_fit():
    problem = wide_log(2_000)
    with memory.limited(memory.need(2_000, size_of(problem, 50)) + 2**22):
        assert LoggedStateActions.of(problem, 200, KEY).features.states.waves.shape[1] == 50
    assert LoggedStateActions.of(wide_log(2_000), 200, KEY).features.states.waves.shape[1] == 200


@pytest.mark.parametrize("with_step", [False, True])
def test_features_made_in_parts_are_the_same(monkeypatch, with_step):
    whole = LoggedStateActions.of(wide_log(600), 30, KEY, with_step=with_step)
    monkeypatch.setattr(logged_state_actions, "ROWS_AT_ONCE", 256)
    monkeypatch.setattr(logged_state_actions, "ROWS_IN_PRODUCTS", 7)
    parts = LoggedStateActions.of(wide_log(600), 30, KEY, with_step=with_step)
    for name in ("logged", "after", "start"):
        np.testing.assert_allclose(getattr(parts, name), getattr(whole, name), rtol=1e-5, atol=1e-5)  # float32
    rows, weight = np.arange(0, 600, 5), np.linspace(-1, 1, 120)
    matrix = np.zeros((whole.features.size, whole.features.size))
    parts.add_products(matrix, rows, weight)
    np.testing.assert_allclose(matrix, (parts.logged[rows] * weight[:, None]).T @ parts.after[rows], atol=1e-10)
    np.testing.assert_allclose(parts.logged_products(rows, weight), weight @ parts.logged[rows], atol=1e-10)


@pytest.mark.slow
def test_the_peak_of_an_evaluation_stays_below_the_limit_and_a_note_says_what_was_reduced():
    problem, limit = wide_log(), 230 * 2**20
    ad.evaluate(wide_log(400).dataset, problem.policy, 0.9, bootstrap=RESAMPLES)  # compiles
    gc.collect()

    def peak(memory_limit: int | None) -> tuple[int, ad.Estimate]:
        tracemalloc.start()
        try:
            found = ad.evaluate(problem.dataset, problem.policy, 0.9, bootstrap=RESAMPLES, memory=memory_limit)
            return tracemalloc.get_traced_memory()[1], found.recommended_estimate
        finally:
            tracemalloc.stop()

    reduced, estimate = peak(limit)
    assert reduced < limit
    (note,) = [one for one in estimate.notes if one.code is NoteCode.LESS_MEMORY]
    assert "random features of states and actions instead of 200" in note.text
    assert "230 MiB" in note.text
    unlimited, estimate = peak(None)
    assert unlimited > 2 * limit  # so the limit was the reason
    assert NoteCode.LESS_MEMORY not in codes(estimate.notes)


def test_a_value_with_fewer_features_is_close_to_the_exact_one():
    mdp = early_termination()
    problem = mdp.problem(1_000, seed=0)
    rows = problem.dataset.num_transitions
    exact, full = mdp.value, ad.Blend().fit(problem, key=KEY)
    small = memory.need(rows, size_of(problem, 30)) + 2**22
    with memory.limited(small):
        found = ad.Blend().fit(mdp.problem(1_000, seed=0), key=KEY)
    assert NoteCode.LESS_MEMORY in codes(found.notes)
    assert NoteCode.LESS_MEMORY not in codes(full.notes)
    assert abs(found.value - exact) < 2 * abs(full.value - exact) + 0.02 * abs(exact)


def test_a_limit_that_suffices_changes_no_digit():
    problem = wide_log(2_000)
    values = []
    for limit in (None, memory.need(2_000, size_of(problem, 200), memory.WITHOUT_LIMIT) + 2**30):
        found = ad.evaluate(problem.dataset, problem.policy, 0.9, bootstrap=RESAMPLES, memory=limit)
        content = found.to_dict()
        for one in content["estimates"]:
            del one["seconds"]
        values.append(content)
    assert values[0] == values[1]


def test_only_the_log_that_cannot_fit_is_an_error_with_both_numbers():
    problem = wide_log(2_000)
    with pytest.raises(ad.NotEnoughMemory, match=r"2,000 rows .* needs \d+ MiB of memory, the limit is 1 MiB\. Raise"):
        ad.evaluate(problem.dataset, problem.policy, 0.9, memory="1MiB", starting=pytest.fail)
    with memory.limited("1MiB"), pytest.raises(ad.NotEnoughMemory, match="1 MiB"):
        ad.Blend().fit(problem, key=KEY)


def test_methods_that_share_features_all_have_the_note():
    problem = wide_log(1_000)
    limit = memory.need(1_000, size_of(problem, 50)) + 2**22
    found = ad.evaluate(problem.dataset, problem.policy, 0.9, estimators=["fqe", "dr"], bootstrap=0, memory=limit)
    assert all(NoteCode.LESS_MEMORY in codes(one.notes) for one in found.estimates.values())
