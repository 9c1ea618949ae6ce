"""Messages that new users met: each says what to do."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import average_dice as ad
from average_dice.data.understood import size_of
from average_dice.errors import DatasetError, PolicyError, SettingError
from average_dice.policies import as_policy
from named_log import named_log

LINES = ["pid,day,x1,x2,Ward,dose,out,end"] + [
    f"{patient},{day},{patient},{day},{'ns'[patient % 2]},{dose},{day},{'yes' if day else 'no'}"
    for patient in range(4)
    for day, dose in enumerate(("low", "high"))
]
COLUMNS = "episode=pid,time=day,action=dose,reward=out,terminated=end"
RULES = {"rules": [], "otherwise": {"low": 0.5, "mid": 0.5}}


def run(*arguments, code=0):
    command = [sys.executable, "-m", "average_dice.cli", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr if code else done.stdout


@pytest.fixture
def converted(tmp_path):
    (tmp_path / "visits.csv").write_text("\n".join(LINES) + "\n")
    path = tmp_path / "log.parquet"
    run("convert", tmp_path / "visits.csv", "--columns", COLUMNS, "--observations", "x1,x2", "--out", path)
    return path


def thirty_columns(observations):
    return (observations @ np.ones(30) > 0).astype(int)


def wide_log(width):
    seen = np.random.default_rng(0).normal(size=(20, width))
    rows = np.arange(20)
    return ad.LoggedDataset.from_arrays(
        episode=rows,
        step=0 * rows,
        observation=seen,
        action=rows % 2,
        reward=np.ones(20),
        next_observation=seen,
        terminated=np.ones(20, bool),
    )


def test_a_function_that_expects_other_columns():
    as_policy(thirty_columns, wide_log(30))
    with pytest.raises(PolicyError) as caught:
        as_policy(thirty_columns, wide_log(29))
    text = str(caught.value)
    assert "thirty_columns fails on the observations of the log (ValueError in test_helpful_messages.py, line" in text
    assert "The log gives it 29 columns: column 0, column 1" in text
    assert "and 21 more" in text


def test_a_classifier_that_expects_other_columns():
    model = LogisticRegression().fit(np.random.default_rng(0).normal(size=(20, 3)), np.arange(20) % 2)
    with pytest.raises(PolicyError, match=r"LogisticRegression fails .* The log gives it 2 columns: age, ward"):
        as_policy(model, replace(named_log(), names=replace(named_log().names, actions=())))


def test_a_column_that_was_not_kept(converted):
    for option in ("--by", "--rewards"):
        found = run("evaluate", converted, "--policy", "uniform", "--discount", "0.9", option, "Ward", code=2)
        assert "average-dice convert … --extra Ward" in found
    with pytest.raises(SettingError, match="convert … --extra 'my ward'"):
        ad.evaluate(ad.read_dataset(converted), RULES | {"otherwise": "low"}, 0.9, by="my ward", bootstrap=0)


def test_the_discount_is_checked_before_the_log_is_read():
    for command in ("evaluate", "compare", "sensitivity", "distribution"):
        found = run(command, "no-such-file.parquet", "--policy", "uniform", "--discount", "1.9", code=2)
        assert found.startswith("error: the discount must lie between 0 and 1, not 1.9")


def test_factors_are_shown_without_brackets(converted):
    data = ad.read_dataset(converted)
    with pytest.raises(SettingError, match=r"at least 1, not 0\.5, 2\."):
        ad.sensitivity(data, None, 0.9, [0.5, 2])


def test_one_episode_says_what_to_do(converted):
    one = ad.read_dataset(converted).select_episodes(np.array([0]))
    with pytest.raises(SettingError, match="Log more, or check the column of episodes"):
        ad.estimate_behaviour(one)
    found = ad.evaluate(one, {"rules": [], "otherwise": "low"}, 0.9, estimators="fqe", bootstrap=4)
    assert "check the column of episodes" in str(found.estimates["fqe"].notes)
    assert "2 transitions in 1 episode ·" in str(found)


def test_sizes_are_singular_or_plural():
    assert size_of(1, 1) == "1 transition in 1 episode"
    assert size_of(2_000, 10, "logged transition") == "2,000 logged transitions in 10 episodes"


def test_actions_of_a_converted_log_can_be_named_in_another_order(converted):
    """Which the message about an unknown action suggests."""
    log = ad.read_dataset(converted)
    with pytest.raises(PolicyError, match="--actions high,low,mid"):
        as_policy(RULES, log)
    again = ad.read_dataset(converted, actions=["mid", "low", "high"])
    assert again.names.actions == ("mid", "low", "high")
    np.testing.assert_array_equal(np.array(again.names.actions)[again.action], np.array(log.names.actions)[log.action])
    assert again.names.observations == log.names.observations
    as_policy(RULES, again)
    with pytest.raises(DatasetError, match="the action 'high', which is not among"):
        ad.read_dataset(converted, actions=["low", "mid"])


def test_masks_follow_the_order_of_the_actions(converted, tmp_path):
    log = ad.read_dataset(converted)
    mask = np.ones((log.num_transitions, 2), bool)
    mask[log.action == 0, 1] = False
    path = tmp_path / "masked.parquet"
    ad.write_dataset(replace(log, action_mask=mask), path)
    again = ad.read_dataset(path, actions=["low", "high"])
    np.testing.assert_array_equal(again.action_mask, mask[:, ::-1])
    with pytest.raises(DatasetError, match="but not for mid"):
        ad.read_dataset(path, actions=["low", "mid", "high"])
