"""A log in another order or in parts gives the same answer; a corrupted one an error or a number, never NaN."""

import json

import jax
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given
from hypothesis import strategies as st

import average_dice as ad
from average_dice.testing.exact_mdps import early_termination
from conftest import columns_of

MDP = early_termination()
LOG = MDP.sample(12, seed=3)
ROWS = LOG.num_transitions


def answers(log):
    """The value of the closed forms, to the last digit."""
    problem = ad.Problem(log, MDP.policy, 0.9)
    methods = (ad.AverageDICE(), ad.AverageDICE.tabular(), ad.AverageDICE.linear(), ad.BehaviourReturn())
    return [method.fit(problem, key=jax.random.key(0)).value for method in methods]


ANSWERS = answers(LOG)


@given(st.permutations(range(ROWS)))
def test_any_order_of_rows_gives_the_same_answer(order):
    columns = {name: values[order] for name, values in columns_of(LOG).items()}
    assert answers(ad.LoggedDataset(**columns)) == ANSWERS


@given(st.lists(st.booleans(), min_size=ROWS, max_size=ROWS), st.sampled_from([".parquet", ".npz"]))
def test_a_log_split_over_two_files_gives_the_same_answer(tmp_path_factory, first, suffix):
    folder = tmp_path_factory.mktemp("split")
    first = np.array(first)
    if first.all() or not first.any():
        first[0] = not first[0]
    for name, rows in (("a", first), ("b", ~first)):
        _write_rows(folder / f"{name}{suffix}", {name: values[rows] for name, values in columns_of(LOG).items()})
    log = ad.read_dataset(folder / f"a{suffix}", folder / f"b{suffix}")
    assert log.sha256 == LOG.sha256
    assert answers(log) == ANSWERS


BAD = [None, float("nan"), float("inf"), float("-inf"), -1.0, 0.0, 1.0, 0.3, 2.0, 1e9, -1e9, 1e38, -800.0]


@given(st.sampled_from(sorted(columns_of(LOG))), st.integers(0, ROWS - 1), st.integers(0, 4), st.sampled_from(BAD))
def test_one_corrupted_cell_gives_an_error_or_a_number(tmp_path_factory, name, row, place, value):
    columns = {column: values.tolist() for column, values in columns_of(LOG).items()}
    if isinstance(columns[name][row], list):
        columns[name][row][place] = value
    else:
        columns[name][row] = value
    try:
        table = pa.table(columns)
    except (pa.ArrowInvalid, pa.ArrowTypeError):  # Arrow cannot hold it
        table = pa.table(columns | {name: pa.array([str(cell) for cell in columns[name]])})
    path = tmp_path_factory.mktemp("corrupted") / "log.parquet"
    pq.write_table(table, path)
    try:
        log = ad.read_dataset(path)
        evaluation = ad.evaluate(
            log, MDP.policy, 0.9, estimators="recommended,average-dice-tabular,behaviour-return", bootstrap=2
        )
    except ad.AverageDiceError:
        return
    for estimate in evaluation.estimates.values():
        assert estimate.value is None or np.isfinite(estimate.value)
        assert estimate.value is not None or estimate.notes[0].code == ad.NoteCode.NOT_APPLICABLE
    json.dumps(evaluation.to_dict(), allow_nan=False)


def _write_rows(path, columns):
    """Writes part of a log, which need not be valid on its own."""
    if path.suffix == ".npz":
        np.savez(path, **columns)
    else:
        pq.write_table(pa.table({name: pa.array(values.tolist()) for name, values in columns.items()}), path)
