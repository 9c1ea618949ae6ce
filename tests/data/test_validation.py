"""Every invalid log raises an error that names the row and the remedy."""

import numpy as np
import pytest

import average_dice as ad
from conftest import columns_of


@pytest.fixture
def columns(small_log):
    return columns_of(small_log)


def place(columns, row):
    return f"episode {columns['episode'][row]}, step {columns['step'][row]}: "


def error_of(columns):
    with pytest.raises(ad.DatasetError) as caught:
        ad.LoggedDataset.from_columns(columns)
    return str(caught.value)


def middle(columns):
    """A row that is neither the first nor the last of its episode."""
    return int(np.flatnonzero((columns["step"] > 0) & ~columns["terminated"] & ~columns["truncated"])[0])


@pytest.mark.parametrize("name", ["episode", "step", "observation", "action", "reward", "terminated", "truncated"])
def test_missing_column(columns, name):
    columns[name] = None
    assert f"missing column: {name}" in error_of(columns)


@pytest.mark.parametrize("name", ["observation", "next_observation", "reward", "behaviour_log_prob", "target_log_prob"])
@pytest.mark.parametrize("value", [np.nan, np.inf, 1e38])
def test_number_that_is_none(columns, name, value):
    row = middle(columns)
    columns[name][row] = value
    assert f"{place(columns, row)}{name}" in error_of(columns)


def test_the_position_within_a_vector_is_named(columns):
    row = middle(columns)
    columns["observation"][row, 2] = np.nan
    assert f"{place(columns, row)}observation[2] is nan" in error_of(columns)


def test_action_that_mu_never_takes(columns):
    row = middle(columns)
    columns["behaviour_log_prob"][row] = -np.inf
    assert f"{place(columns, row)}behaviour_log_prob is -inf: the behaviour policy gives" in error_of(columns)


def test_action_that_pi_never_takes_is_fine(columns):
    columns["target_log_prob"][middle(columns)] = -np.inf
    assert ad.LoggedDataset(**columns).num_transitions == len(columns["reward"])


def test_ragged_observation(columns):
    row = middle(columns)
    ragged = columns["observation"].tolist()
    ragged[row] = ragged[row][:-1]
    columns["observation"] = ragged
    assert f"{place(columns, row)}observation has 4 numbers where other rows have 5" in error_of(columns)


def test_observations_of_another_size_than_next_observations(columns):
    columns["observation"] = columns["observation"][:, :-1]
    assert "observation has 4 numbers and next_observation 5" in error_of(columns)


def test_gap(columns):
    row = middle(columns)
    columns = {name: np.delete(values, row, axis=0) for name, values in columns.items()}
    before = columns["step"][row] - 2
    assert f"{place(columns, row)}rows are missing: the row before has step {before}" in error_of(columns)


def test_episode_that_starts_late(columns):
    columns = {name: values[1:] for name, values in columns.items()}
    assert f"{place(columns, 0)}the episode starts at step 1 instead of 0" in error_of(columns)


def test_repeat(columns):
    row = middle(columns)
    columns = {name: np.insert(values, row, values[row], axis=0) for name, values in columns.items()}
    assert f"{place(columns, row)}the row occurs twice" in error_of(columns)


@pytest.mark.parametrize("flag", ["terminated", "truncated"])
def test_episode_that_continues_after_its_end(columns, flag):
    row = middle(columns)
    columns[flag][row] = True
    assert f"{place(columns, row)}the episode continues after {flag}" in error_of(columns)


def test_episode_without_an_end(columns):
    row = int(columns["terminated"].argmax())
    columns["terminated"][row] = False
    assert f"{place(columns, row)}the episode ends here but is neither terminated nor truncated" in error_of(columns)


def test_both_flags_on_the_last_row_are_fine(columns):
    columns["truncated"] |= columns["terminated"]
    assert ad.LoggedDataset(**columns).terminated.sum() == columns["terminated"].sum()


def test_rows_that_do_not_follow_each_other(columns):
    row = middle(columns)
    columns["next_observation"][row] += 0.01
    assert f"{place(columns, row)}next_observation is not the observation of the next row" in error_of(columns)


def test_rounding_of_the_next_observation_is_forgiven(columns):
    columns["next_observation"] = columns["next_observation"] + 1e-7
    assert ad.LoggedDataset(**columns)


@pytest.mark.parametrize("name", ["behaviour_log_prob", "target_log_prob"])
def test_positive_log_probability_of_a_discrete_action(columns, name):
    row = middle(columns)
    columns[name][row] = 0.25
    assert f"{place(columns, row)}{name} is 0.25, above zero" in error_of(columns)


def test_positive_log_density_of_a_continuous_action_is_fine(columns):
    columns["action"] = columns["action"][:, None].astype(float)
    columns["behaviour_log_prob"][:] = 2.0
    assert not ad.LoggedDataset(**columns).is_discrete


def test_negative_discrete_action(columns):
    row = middle(columns)
    columns["action"][row] = -1
    assert f"{place(columns, row)}action is -1" in error_of(columns)


def test_flag_that_is_neither_true_nor_false(columns):
    row = middle(columns)
    columns["terminated"] = columns["terminated"].astype(int)
    columns["terminated"][row] = 2
    assert f"{place(columns, row)}terminated is 2" in error_of(columns)


def test_flags_in_numbers_are_never_used_as_positions(columns):
    """A 0/1 integer array indexes rows where a mask was meant."""
    right = ad.LoggedDataset(**columns)
    as_numbers = columns | {"terminated": columns["terminated"].astype(np.int64)}
    assert ad.LoggedDataset.from_columns(as_numbers).terminated.dtype == bool
    assert ad.LoggedDataset.from_columns(as_numbers).sha256 == right.sha256


def test_empty(columns):
    assert "the log is empty" in error_of({name: values[:0] for name, values in columns.items()})


def test_columns_of_different_lengths(columns):
    columns["reward"] = columns["reward"][:-1]
    assert "columns differ in length" in error_of(columns)


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("episode", lambda v: v.astype(float), "episode must be one integer per row"),
        ("episode", lambda v: v.astype(np.uint64) + np.uint64(2**63), "too large for 64-bit"),
        ("reward", lambda v: v.astype(str), "reward must be one number per row"),
        ("reward", lambda v: np.array(1.0), "reward must have one value for each transition"),
        ("reward", lambda v: 1.0, "reward must have one value for each transition"),
        ("reward", lambda v: v[:, None], "reward must be one number per row"),
        ("reward", lambda v: [[1.0], *v[1:].tolist()], "reward has rows of different shapes"),
        ("terminated", lambda v: v.astype(str), "terminated must be true or false"),
        ("observation", lambda v: v.astype(str), "observation must be one list of numbers per row"),
        ("observation", lambda v: v[:, :0], "empty list"),
        ("action", lambda v: v.astype(str), "action must be one integer per row"),
        ("action", lambda v: np.stack([v, v], axis=1), "action must be one integer per row"),
    ],
)
def test_columns_of_the_wrong_kind(columns, name, values, message):
    columns[name] = values(columns[name])
    assert message in error_of(columns)


def test_everything_that_is_wrong_is_said_at_once_with_its_count(columns):
    columns["reward"][1:4] = np.nan
    columns["action"][0] = -3
    text = error_of(columns)
    assert "action is -3" in text
    assert "reward is nan" in text
    assert "(2 more like it)" in text


@pytest.fixture
def masked_columns(columns):
    columns["action_mask"] = np.ones((len(columns["action"]), 3), bool)
    return columns


def test_a_mask_is_carried_sorted_and_selected(masked_columns):
    mask = masked_columns["action_mask"]
    mask[::2, 2] = False
    log = ad.LoggedDataset.from_arrays(**masked_columns)
    shuffle = np.random.default_rng(0).permutation(len(mask))
    shuffled = {name: values[shuffle] for name, values in masked_columns.items()}
    assert ad.LoggedDataset.from_arrays(**shuffled).sha256 == log.sha256
    np.testing.assert_array_equal(ad.LoggedDataset.from_arrays(**shuffled).action_mask, mask)
    chosen = np.array([3, 0, 3])
    np.testing.assert_array_equal(log.select_episodes(chosen).action_mask, mask[log.rows_of(chosen)])


def test_a_mask_counts_in_the_hash_only_if_there_is_one(masked_columns):
    log = ad.LoggedDataset(**masked_columns)
    without = ad.LoggedDataset(**masked_columns | {"action_mask": None})
    other = masked_columns["action_mask"].copy()
    other[0, 2] = False
    hashes = {log.sha256, without.sha256, ad.LoggedDataset(**masked_columns | {"action_mask": other}).sha256}
    assert len(hashes) == 3
    del masked_columns["action_mask"]
    assert without.sha256 == ad.LoggedDataset(**masked_columns).sha256
    assert without.action_mask is None


def test_a_mask_of_zeros_and_ones_is_one_of_booleans(masked_columns):
    right = ad.LoggedDataset(**masked_columns)
    for kind in (np.int8, np.float64, list):
        as_numbers = (
            masked_columns["action_mask"].tolist() if kind is list else masked_columns["action_mask"].astype(kind)
        )
        assert ad.LoggedDataset.from_columns(masked_columns | {"action_mask": as_numbers}).sha256 == right.sha256


def test_a_mask_with_continuous_actions(masked_columns):
    masked_columns["action"] = masked_columns["action"].astype(float)
    text = error_of(masked_columns)
    assert text.startswith(f"{place(masked_columns, 0)}action_mask is given, but actions are continuous. Remove")
    assert "more like it" not in text


def test_a_mask_with_another_number_of_actions_in_one_row(masked_columns):
    row = middle(masked_columns)
    ragged = masked_columns["action_mask"].tolist()
    ragged[row] = ragged[row][:-1]
    masked_columns["action_mask"] = ragged
    assert f"{place(masked_columns, row)}action_mask has 2 numbers where other rows have 3" in error_of(masked_columns)


def test_a_mask_that_allows_nothing(masked_columns):
    row = middle(masked_columns)
    masked_columns["action_mask"][row] = False
    assert error_of(masked_columns) == (
        f"{place(masked_columns, row)}action_mask allows no action. "
        "Allow the actions that were possible here, or remove the episode."
    )


def test_a_mask_that_forbids_the_logged_action(masked_columns):
    action, mask = masked_columns["action"], masked_columns["action_mask"]
    rows = np.flatnonzero(action == 1)[[2, 4]]
    mask[rows, 1] = False
    assert error_of(masked_columns) == (
        f"{place(masked_columns, rows[0])}action 1 is logged, but action_mask forbids it. "
        "Correct the mask or the action. (1 more like it)"
    )


def test_a_mask_without_the_logged_action(masked_columns):
    row = middle(masked_columns)
    masked_columns["action"][row] = 3
    found = error_of(masked_columns)
    assert (
        found
        == f"{place(masked_columns, row)}action is 3, action_mask has actions 0 to 2. Give it a flag for every action."
    )


@pytest.mark.parametrize("value", [2, -1, np.nan])
def test_a_mask_of_other_numbers(masked_columns, value):
    row = middle(masked_columns)
    masked_columns["action_mask"] = masked_columns["action_mask"].astype(float)
    masked_columns["action_mask"][row, 1] = value
    assert f"{place(masked_columns, row)}action_mask[1] is {float(value)}. It must be true" in error_of(masked_columns)


def test_a_mask_of_another_shape(masked_columns):
    size = len(masked_columns["action"])
    for mask in (np.ones(size, bool), np.ones((size, 3, 1), bool), np.full((size, 3), "yes")):
        assert "action_mask must be one list of true or false per row" in error_of(
            masked_columns | {"action_mask": mask}
        )
