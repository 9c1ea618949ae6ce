"""Names with spaces and commas, in options and in suggested commands."""

import shlex
import subprocess
import sys

import pytest

import average_dice as ad
from average_dice.errors import DatasetError, SettingError
from average_dice.listing import as_option, join_names, split_names

NAMES = ["a, b", "c", 'the "old" one', "two words", "it's"]


def test_names_survive_the_option_and_the_shell():
    assert split_names(join_names(NAMES)) == NAMES
    (word,) = shlex.split(as_option(NAMES))
    assert split_names(word) == NAMES


@pytest.mark.parametrize(
    ("text", "names"),
    [("a,b", ["a", "b"]), (" a , b ", ["a", "b"]), ('"a, b", c', ["a, b", "c"]), ("a,,b", ["a", "", "b"]), ("", [""])],
)
def test_names_are_separated_by_commas(text, names):
    assert split_names(text) == names


@pytest.mark.parametrize("text", ['"a, b', '"a" b,c', "a\nb"])
def test_a_quote_that_is_not_closed_is_refused(text):
    with pytest.raises(SettingError, match="in quotes"):
        split_names(text)


@pytest.fixture
def table(tmp_path):
    """A file whose names have spaces and commas."""
    lines = ['patient id,"dose, mg","net, total","age, years",blood pressure,"site, city"']
    for patient in range(4):
        lines += [f"{patient},low,1.5,{40 + patient},120,here", f"{patient},high,0.5,{41 + patient},121,here"]
    path = tmp_path / "my visits.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def run(*arguments):
    command = [sys.executable, "-m", "average_dice.cli", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


COLUMNS = 'episode=patient id,"action=dose, mg","reward=net, total",terminated=true'


def test_every_option_takes_names_with_commas(table, tmp_path):
    out = tmp_path / "log.parquet"
    observed = ["--observations", '"age, years",blood pressure', "--categorical", '"age, years"']
    found = run("convert", table, "--columns", COLUMNS, *observed, "--extra", '"site, city"', "--out", out)
    assert found.returncode == 0, found.stderr
    log = ad.read_dataset(out, extra=["site, city"])
    assert log.names.observations == ("age, years", "blood pressure")
    assert tuple(log.categorical) == (0,)
    assert "site, city" in log.extra
    read = ad.read_dataset(
        table,
        columns={"episode": "patient id", "action": "dose, mg", "reward": "blood pressure", "terminated": True},
        observations=["age, years"],
        extra=["net, total"],
    )
    policy = {"rules": [], "otherwise": {"low": 0.5, "high": 0.5}}
    found = ad.evaluate(read, policy, 0.9, rewards='"net, total",reward', estimators="fqe", bootstrap=0)
    assert list(found.rewards) == ["net, total", "reward"]


def test_a_quote_inside_of_a_pair_is_explained(table, tmp_path):
    columns = 'episode=patient id,reward="net, total"'
    found = run("convert", table, "--columns", columns, "--out", tmp_path / "log.parquet")
    assert found.returncode == 2
    assert '"reward=net, total"' in found.stderr


def test_the_suggested_options_can_be_copied_to_a_shell(table):
    with pytest.raises(DatasetError) as caught:
        ad.read_dataset(table)
    text = str(caught.value)
    words = shlex.split(text[text.index("--columns") : text.index(" (in Python")])
    columns, observations = words[1], words[3]
    assert "episode=patient id" in split_names(columns)
    assert "action=dose, mg" in split_names(columns)
    assert {"age, years", "blood pressure"} <= set(split_names(observations))
