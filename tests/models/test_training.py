"""The gradient loop: records, progress, seeds."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import average_dice as ad
from average_dice.models import Table
from average_dice.models.regression import Regression
from average_dice.models.training import Schedule, train
from average_dice.progress import listening


def towards_the_mean(position, memory, minibatches, settings, key):
    """½ (position − mean)², and a memory that counts the steps."""
    (minibatch,) = minibatches
    return settings["pull"] * (position - jnp.mean(minibatch["y"])), memory + 1


def by_the_count(position, memory, minibatches, settings, key):
    """Uphill by the memory's parity: a memory that is forgotten shows."""
    return jnp.where(memory < 30, -1.0, 1.0), memory + 1


def run(num_steps, num_checkpoints, seeds=2, pull=1.0, update_step=towards_the_mean, batch_size=8):
    records = []
    final, _ = train(
        update_step,
        jnp.zeros(seeds),
        jnp.zeros(seeds),
        ({"y": jnp.arange(11.0)},),
        {"pull": pull},
        Schedule(0.05, batch_size, num_steps, num_checkpoints),
        keys=[jax.random.key(seed) for seed in range(seeds)],
        record=lambda step, position, memory: records.append((step, np.asarray(position))),
    )
    return final, records


def test_it_descends_from_every_seed():
    final, _ = run(1000, 1)
    np.testing.assert_allclose(final, 5.0, atol=0.3)


def test_the_number_of_records_changes_nothing_but_the_records():
    once, few = run(60, 1)
    often, many = run(60, 6)
    np.testing.assert_array_equal(once, often)
    assert [step for step, _ in few] == [0, 60]
    assert [step for step, _ in many] == [0, 10, 20, 30, 40, 50, 60]


def test_memory_is_kept_over_records():
    once, _ = run(60, 1, update_step=by_the_count)
    often, _ = run(60, 12, update_step=by_the_count)
    np.testing.assert_array_equal(once, often)
    assert float(often[0]) < 0.05 * 30  # it turned back half way


def test_columns_of_different_lengths_are_refused():
    with pytest.raises(ValueError, match="the columns of a group differ in length"):
        train(
            towards_the_mean,
            jnp.zeros(1),
            jnp.zeros(1),
            ({"y": jnp.arange(11.0), "z": jnp.arange(3.0)},),
            {"pull": 1.0},
            Schedule(learning_rate=0.05, batch_size=4, num_steps=2, num_checkpoints=1),
            keys=[jax.random.key(0)],
            record=lambda step, position, memory: None,
        )


def test_more_records_than_steps():
    _, records = run(3, 50)
    assert [step for step, _ in records] == [0, 1, 2, 3]


def test_seeds_see_different_minibatches():
    final, _ = run(5, 1, seeds=3)
    assert len(set(np.asarray(final).tolist())) == 3


def test_a_group_no_larger_than_a_minibatch_is_taken_whole():
    """Without noise, all seeds go the same way and end at the mean itself."""
    final, _ = run(1000, 1, seeds=3, batch_size=11)
    assert len(set(np.asarray(final).tolist())) == 1
    np.testing.assert_allclose(final, 5.0, atol=1e-3)
    noisy, _ = run(1000, 1, seeds=3, batch_size=10)
    assert len(set(np.asarray(noisy).tolist())) == 3


def test_progress_is_reported_within_its_context_only():
    seen = []
    with listening(lambda done, total: seen.append((done, total))):
        run(20, 4)
    run(20, 4)
    assert seen == [(5, 20), (10, 20), (15, 20), (20, 20)]


def test_a_table_knows_only_what_it_has_seen():
    inputs = np.array([[0.0, 1.0], [0.0, 2.0], [0.0, 1.0]])
    problem = Regression(inputs, np.array([1.0, 5.0, 3.0]), np.ones(3), 1.0, np.arange(3))
    fitted = Table().fit(problem, key=jax.random.key(0), value_of=lambda f: 0.0)
    assert fitted.rows.tolist() == [2.0, 5.0, 2.0]
    assert fitted.predict(np.array([[0.0, 2.0], [0.0, 1.0]])).tolist() == [5.0, 2.0]
    with pytest.raises(ad.SettingError, match="is not in the table"):
        fitted.predict(np.array([[0.0, 2.0], [9.0, 1.0]]))
