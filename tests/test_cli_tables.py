"""Tables on the command line: CSV and Parquet with the user's own columns, convert, and what is printed."""

import gzip
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import average_dice as ad
from average_dice.data.names import Names
from average_dice.data.plausibility import doubts

CSV = """patient_id,date,age,bp,ward,dose,outcome,discharged,prob,cost
p2,2024-01-01,40,120.5,south,none,0,no,0.5,4
p1,2024-01-03,50,,north,high,1,yes,1,3
p1,2024-01-01,50,118,south,low,0.25,no,0.25,1
p2,2024-01-02,40,121,north,high,0.5,yes,0.5,5
p1,2024-01-02,50,119,south,none,0.125,no,0.25,2
"""
PAIRS = "episode=patient_id,time=date,action=dose,reward=outcome,terminated=discharged,behaviour_prob=prob"
MAPPING = ("--columns", PAIRS, "--observations", "age,bp,ward", "--impute", "median")
COLUMNS = dict(pair.split("=") for pair in PAIRS.split(","))
ROLES = {"observations": ["age", "bp", "ward"], "impute": "median"}


def run(*arguments: object, code: int = 0) -> str:
    """In a process of its own, with lines that are not wrapped."""
    done = subprocess.run(
        [sys.executable, "-m", "average_dice.cli", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env=os.environ | {"COLUMNS": "300"},
    )
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout if code == 0 else done.stderr


@pytest.fixture
def visits(tmp_path: Path) -> Path:
    path = tmp_path / "visits.csv"
    path.write_text(CSV)
    return path


def read(*paths: Path, **changes: object) -> ad.LoggedDataset:
    return ad.read_dataset(*paths, **{"columns": COLUMNS} | ROLES | changes)


def test_convert_shows_what_it_understood(visits: Path, tmp_path: Path) -> None:
    out = tmp_path / "log.parquet"
    text = run("convert", visits, *MAPPING, "--extra", "cost", "--out", out)
    lines = [[cell.strip() for cell in line.split("│")[1:-1]] for line in text.splitlines() if "│" in line]
    assert ["observation 2", "ward", "categorical", "2: north, south", "south"] in lines
    assert ["observation 3", "bp_missing", "indicator", "1 true", "0"] in lines
    assert ["action", "dose", "discrete", "3: high, low, none", "none"] in lines
    assert ["step", "date", "dates", "2024-01-01 to 2024-01-03", "2024-01-01"] in lines
    assert "Note: missing values are imputed by the median (bp: 1 by 119.75). New observations: bp_missing." in text
    assert f"5 transitions in 2 episodes written to {out}." in text
    log = ad.read_dataset(out, extra=["cost"])
    assert log.observation[:, 1].tolist() == [120.5, 121, 118, 119, 119.75]
    assert log.extra["cost"].tolist() == [4, 5, 1, 2, 3]
    assert log.extra["episode_name"].tolist() == ["p2", "p2", "p1", "p1", "p1"]
    assert log.names == Names(("age", "bp", "ward", "bp_missing"), ("high", "low", "none"), {2: ("north", "south")})
    assert log.sha256 == read(visits).sha256
    shown = run("validate", out)
    assert "Note: missing values are imputed" in shown
    assert "metadata: notes" not in shown
    assert log.sha256[:32] in run("validate", visits, *MAPPING)


def test_evaluate_reads_tables_and_prints_the_notes(visits: Path, tmp_path: Path) -> None:
    """The last row of p1 is truncated here and has no action: it is not used."""
    visits.write_text(CSV.replace("high,1,yes", ",,no"))
    out = tmp_path / "result.json"
    mapping = ("--columns", f"{PAIRS},target_prob=prob", "--observations", "age,ward", "--actions", "none,low,high")
    text = run("evaluate", visits, *mapping, "--discount", 0.9, "--bootstrap", 0, "--json", out, "--estimators", "pdis")
    note = "no flag on the last row of 1 of 2 episodes: this counts as truncated, that is, only the recording stopped"
    assert f"Note: {note}." in text
    content = json.loads(out.read_text())
    assert content["dataset"]["transitions"] == 4
    assert content["dataset"]["notes"][0] == note
    expected = 0.1 * np.mean([0 + 0.9 * 0.5, 0.25 + 0.9 * 0.125])
    assert next(one["value"] for one in content["estimates"]) == pytest.approx(expected)


def test_the_same_rows_in_every_file_are_the_same_log(visits: Path, tmp_path: Path) -> None:
    expected = read(visits).sha256
    frame = pd.read_csv(visits)
    assert ad.from_dataframe(frame, **COLUMNS, **ROLES).sha256 == expected
    wide, packed, other = tmp_path / "wide.parquet", tmp_path / "visits.csv.gz", tmp_path / "visits.tsv"
    frame.to_parquet(wide)
    packed.write_bytes(gzip.compress(CSV.encode()))
    other.write_text("\ufeff" + CSV.replace(",", "\t"))
    semicolons = tmp_path / "semicolons.csv"
    semicolons.write_text(CSV.replace(",", ";"))
    for path in (wide, packed, other, semicolons):
        assert read(path).sha256 == expected, path


def test_parts_folders_and_patterns_are_joined(visits: Path, tmp_path: Path) -> None:
    header, *rows = CSV.splitlines()
    folder = tmp_path / "parts" / "inner"
    folder.mkdir(parents=True)
    for place, part in enumerate((rows[:2], rows[2:])):
        (folder.parent / ("a.csv" if place == 0 else "inner/b.csv")).write_text("\n".join([header, *part]))
    expected = read(visits).sha256
    assert read(folder.parent).sha256 == expected
    assert read(folder.parent / "a.csv", folder / "b.csv").sha256 == expected
    assert read(folder.parent / "**" / "*.csv").sha256 == expected
    (folder / "b.csv").write_text("\n".join([header, *rows[2:]]).replace("bp", "pressure"))
    with pytest.raises(ad.DatasetError, match=r"parts: b\.csv: no column 'bp'"):
        read(folder.parent)
    (folder / "b.csv").write_text("\n".join([header, *rows[2:]]).replace("0.25,no", "lots,no"))
    with pytest.raises(ad.DatasetError, match=r"outcome is numbers in a\.csv and text in b\.csv|integers in a\.csv"):
        read(folder.parent)
    with pytest.raises(ad.DatasetError, match=r"no file has such a name"):
        read(tmp_path / "*.tsv")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ad.DatasetError, match=r"no \.parquet, \.npz or \.csv file in this folder"):
        read(tmp_path / "empty")


def test_names_equal_to_ours_need_no_mapping(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("episode,step,observation,action,reward,terminated\n5,1,2.5,0,1,true\n5,0,1.5,1,0,false\n")
    log = ad.read_dataset(path)
    assert log.observation.tolist() == [[1.5], [2.5]]
    assert (log.episode.tolist(), log.action.tolist(), log.terminated.tolist()) == ([5, 5], [1, 0], [False, True])
    path.write_text("episode,x,next_x,action,reward\n5,1.5,2.5,1,0\n5,2.5,7.5,1,0\n")
    log = ad.read_dataset(path, observations=["x"], columns={"terminated": "false"})
    assert log.next_observation.tolist() == [[2.5], [7.5]]
    assert log.truncated.tolist() == [False, True]


def test_several_actions_and_constants_in_the_mapping(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("episode,x,a,b,reward\n5,1.5,1,2.5,0\n6,2.5,2,7.5,0\n")
    log = ad.read_dataset(path, observations=["x"], columns={"terminated": "true", "action": "a+b"})
    assert log.action.tolist() == [[1, 2.5], [2, 7.5]]
    assert log.terminated.all()
    path.write_text("x,action,reward\n1.5,1,0\n2.5,0,1\n")
    assert ad.read_dataset(path, observations=["x"], columns={"episode": "none"}).is_one_step


def test_a_foreign_file_gets_a_command_to_start_from(visits: Path) -> None:
    text = run("validate", visits, code=2)
    assert "no column for episode, action, reward, observations. Its columns are patient_id, date, age" in text
    example = text.partition("for example: ")[2].partition(" (in Python")[0].split()
    assert example[1] == "episode=patient_id,time=date,action=dose,reward=outcome,terminated=discharged"
    assert example[3] == "age,bp,ward,cost"
    assert "The log is valid" in run("validate", visits, *example, "--impute", "median")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--columns", "reward"), "--columns takes pairs such as reward=outcome"),
        (("--columns", "reward=a,reward=b"), "--columns maps reward twice"),
        (("--columns", "rewrd=outcome"), "columns maps 'rewrd', which is no column of a log. Did you mean reward?"),
        (("--columns", "episode=patient"), "no column 'patient'. Did you mean patient_id?"),
        (("--columns", PAIRS + "x", "--observations", "age"), "no column 'probx'. Did you mean prob?"),
        (("--columns", PAIRS, "--observations", "age,bp"), "bp: 1 missing (the first at episode p1, step 2)"),
        (("--columns", PAIRS, "--observations", "age", "--impute", "mean"), "impute is 'mean'"),
        (("--columns", PAIRS, "--observations", "age", "--categorical", "agee"), "Did you mean age?"),
    ],
)
def test_wrong_options_are_explained(visits: Path, options: tuple[str, ...], words: str) -> None:
    assert words in run("validate", visits, *options, code=2)


# Logs of our own format.


def test_names_declare_categorical_columns_of_our_own_files(visits: Path, tmp_path: Path) -> None:
    path = tmp_path / "log.parquet"
    ad.write_dataset(read(visits, observations=["age", "cost"], categorical=None), path)
    assert ad.read_dataset(path, categorical=["cost"]).categorical == (1,)
    assert ad.read_dataset(path, categorical=["1"]).categorical == (1,)
    with pytest.raises(ad.DatasetError, match=r"categorical names 'costs', .* Did you mean cost\?"):
        ad.read_dataset(path, categorical=["costs"])


def test_another_reward_of_our_own_file_keeps_its_names(visits: Path, tmp_path: Path) -> None:
    path = tmp_path / "log.parquet"
    log = read(visits, extra=["cost"])
    ad.write_dataset(log, path)
    other = ad.read_dataset(path, columns={"reward": "cost"})
    assert other.reward.tolist() == [4, 5, 1, 2, 3]
    assert other.names == log.names
    assert other.categorical == log.categorical
    assert np.array_equal(other.observation, log.observation)


def test_advice_uses_the_names_of_columns() -> None:
    number = 60
    columns = {
        "episode": np.arange(number),
        "step": np.zeros(number, int),
        "observation": np.column_stack([np.linspace(0, 1, number), np.arange(number) % 6]),
        "action": np.arange(number) % 2,
        "reward": np.arange(number) / 10,
        "next_observation": np.zeros((number, 2)),
        "terminated": np.ones(number, bool),
        "truncated": np.zeros(number, bool),
    }
    log = ad.LoggedDataset.from_columns(columns, names=Names(("age", "ward")))
    assert list(doubts(log)) == [
        "observation column ward holds only integers (6 different values). If they are codes, declare it: "
        "--categorical ward"
    ]
    reward = columns["reward"].copy()
    reward[7] = -999
    found = list(doubts(ad.LoggedDataset.from_columns(columns | {"reward": reward}, categorical=[1])))
    assert found == [
        "the reward at episode 7, step 0 is -999, and no other is beyond ±5.9. The value depends on this row: check it"
    ]
    floats = columns["action"].astype(float)
    (found_action,) = doubts(ad.LoggedDataset.from_columns(columns | {"action": floats}, categorical=[1]))
    assert "actions are continuous, but all are whole numbers (2 different)" in found_action
    single = {name: values[:1] for name, values in columns.items()}
    assert "there is only one episode" in next(doubts(ad.LoggedDataset.from_columns(single)))


# Files that are broken, or made to do harm.


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"\n\n\n", "no first line with names"),
        (b"1,2,3\n4,5,6\n", "holds no names of columns, but numbers"),
        (b"\xff\xfe,reward\n1,2\n", "first line is not text in UTF-8"),
        (CSV.encode().replace(b"north", b"\xff\xfe"), "column ward is not text in UTF-8"),
        (CSV.encode() + b"1,2\n", "not a readable CSV file"),
        (CSV.encode().replace(b"p2,2024", b'"p2,2024', 1), "not a readable CSV file"),
        (CSV.encode().replace(b"p2,2024", b'"p2,2024'), "patient_id has a line break in the value 'p2,2024-01-01"),
        (b"," * 20_000 + b"\n1\n", "20,001 columns, more than 10,000"),
        (b"a" * 2**21, "more than a million characters"),
        (CSV.encode().replace(b"cost", b"age"), "column age occurs more than once"),
        (CSV.splitlines()[0].encode() + b"\n", "the table has no rows"),
    ],
    ids=lambda one: one if isinstance(one, str) else "",
)
def test_broken_files_end_in_our_errors(tmp_path: Path, content: bytes, words: str) -> None:
    for name, stored in (("log.csv", content), ("log.csv.gz", gzip.compress(content))):
        (tmp_path / name).write_bytes(stored)
        with pytest.raises(ad.DatasetError, match=words):
            read(tmp_path / name)


def test_large_files_stop_at_the_limit_of_memory(visits: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AVERAGE_DICE_MEMORY", "1MiB")
    bomb = tmp_path / "bomb.csv.gz"
    bomb.write_bytes(gzip.compress(CSV.encode() + b"\n" * 2**20))
    assert bomb.stat().st_size < 2**15
    with pytest.raises(ad.NotEnoughMemory, match=r"bomb\.csv\.gz: reading what it holds needs"):
        read(bomb)
    frame = pd.DataFrame({"patient_id": np.zeros(100_000, int), "outcome": 0.0, "age": 1, "dose": 1})
    frame.to_parquet(tmp_path / "bomb.parquet")
    with pytest.raises(ad.NotEnoughMemory, match=r"bomb\.parquet: reading it needs"):
        ad.read_dataset(
            tmp_path / "bomb.parquet",
            columns={"episode": "patient_id", "reward": "outcome", "action": "dose", "terminated": True},
            observations=["age"],
        )


def test_not_gzip_and_not_parquet_are_refused(tmp_path: Path) -> None:
    for name in ("log.csv.gz", "log.parquet"):
        (tmp_path / name).write_bytes(b"not what the name says")
        with pytest.raises(ad.DatasetError, match=r"not a readable (CSV|Parquet) file"):
            read(tmp_path / name)
    np.savez(tmp_path / "log.npz", reward=np.zeros(3))
    with pytest.raises(ad.DatasetError, match=r"columns of a \.npz file cannot be mapped"):
        read(tmp_path / "log.npz")
    nested = pa.table({"patient_id": [1], "outcome": [1.0], "dose": [1], "age": [{"a": 1}]})
    pq.write_table(nested, tmp_path / "nested.parquet")
    with pytest.raises(ad.DatasetError, match="cannot be an observation"):
        ad.read_dataset(
            tmp_path / "nested.parquet",
            columns={"episode": "patient_id", "reward": "outcome", "action": "dose"},
            observations=["age"],
        )


# The page of the documentation.


def test_the_page_shows_what_happens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (Path(__file__).parents[1] / "docs" / "your_log.md").read_text()
    table, commands, code = (
        re.findall(rf"```{kind}\n(.*?)```", page, re.DOTALL)[0] for kind in ("text", "sh", "python")
    )
    monkeypatch.chdir(tmp_path)
    Path("visits.csv").write_text(table)
    shown, valid = (run(*shlex.split(line)[1:]) for line in commands.splitlines())
    printed = [[cell.strip() for cell in line.split("│")[1:-1]] for line in shown.splitlines() if "│" in line]
    section = page.partition("| column | yours |")[2].partition("\n\n")[0]
    assert printed == [[cell.strip() for cell in line.split("|")[1:-1]] for line in section.splitlines()[2:]]
    assert "The log is valid." in valid
    names: dict[str, Any] = {}
    exec(code, names)
    assert names["log"].sha256 == names["same"].sha256 == ad.read_dataset("log.parquet").sha256
    assert names["log"].names.actions == ("high", "low", "none")
    assert [one["yours"] for one in names["log"].metadata["columns"]] == [line[1] for line in printed]
