"""The command line, as a person uses it: in a process of its own."""

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from dataclasses import replace
from datetime import date
from pathlib import Path

import jax
import numpy as np
import pyarrow.parquet as pq
import pytest

import average_dice as ad
from average_dice.demo import DEMOS, load_demo
from average_dice.tasks.shipped import truth_record
from average_dice.tasks.task import TASKS
from average_dice.testing.exact_mdps import masked
from processes import started

COMMAND = Path(sys.executable).with_name("average-dice")
PACKAGE = Path(ad.__file__).parent
LOG = PACKAGE / "demo" / "CartPole-v1.parquet"
POLICY = PACKAGE / "tasks" / "shipped" / "CartPole-v1.safetensors"
DEMO = load_demo("CartPole-v1")


def run(*arguments, code=0):
    done = subprocess.run([COMMAND, *map(str, arguments)], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout if code == 0 else done.stderr


def test_help_names_the_commands_and_imports_nothing_heavy():
    text = run("--help")
    assert all(command in text for command in ("demo", "evaluate", "validate", "estimators"))
    script = "import sys, average_dice.cli; print({'jax', 'numpy', 'pyarrow', 'rich'} & set(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert loaded.strip() == "set()"


COMMANDS = [
    "demo",
    "evaluate",
    "report",
    "compare",
    "plan",
    "validate",
    "estimators",
    "tasks",
    "collect",
    "truth",
    "train",
]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(command):
    assert f"average-dice {command}" in run(command, "--help").replace("\n", " ")


@pytest.mark.slow
def test_demo_prints_the_errors_it_made():
    text = run("demo")
    lines = [line for line in text.splitlines() if "average-dice-blend" in line and "│" in line]
    assert len(lines) == 2
    for line, name in zip(lines, DEMOS, strict=True):
        shown = load_demo(name)
        assert f"The truth is {shown.truth:.4f} ± {shown.standard_error:.4f}" in text
        value, interval, error = line.replace("★", "").split("│")[2:5]
        low, high = map(float, interval.split(" to "))
        assert low <= float(value) <= high
        assert float(error) == pytest.approx(float(value) - shown.truth, abs=1e-4)
        assert abs(float(error)) < 0.01


def test_evaluate_and_its_json(tmp_path):
    out = tmp_path / "result.json"
    page, again = tmp_path / "report.html", tmp_path / "again.json"
    same = ("evaluate", LOG, "--policy", POLICY, "--discount", 0.95, "--bootstrap", 2)
    text = run(*same, "--json", out, "--report", page, "--title", "A <new> rule")
    content = json.loads(out.read_text())
    assert f"{content['estimates'][0]['value']:.4f}" in text
    assert content["dataset"]["sha256"] == DEMO.dataset.sha256
    assert content["dataset"]["transitions"] == DEMO.dataset.num_transitions
    assert content["dataset"]["episodes"] == DEMO.dataset.num_episodes
    assert "--bootstrap 2" in content["command"]
    assert (content["title"], content["policy"], content["log"]) == ("A <new> rule", POLICY.stem, LOG.name)
    assert date.fromisoformat(content["date"]) <= date.today()
    assert "<h1>A &lt;new&gt; rule</h1>" in page.read_text()
    run(*same, "--json", again)
    estimates = [json.loads(path.read_text())["estimates"] for path in (out, again)]
    numbers = [[(found["value"], found["lower"], found["upper"]) for found in some] for some in estimates]
    assert numbers[0] == numbers[1]
    remade = tmp_path / "remade.html"
    run("report", out, "--out", remade)
    assert remade.read_text() == page.read_text()


def test_report_of_something_else(tmp_path):
    (tmp_path / "other.json").write_text('{"a": 1}')
    (tmp_path / "broken.json").write_text("{")
    assert "is not the result of" in run("report", tmp_path / "other.json", code=2)
    names = ("discount", "seed", "dataset", "estimates", "recommended", "verdict", "versions")
    (tmp_path / "empty.json").write_text(json.dumps({name: [] for name in names}))
    assert "is not the result of" in run("report", tmp_path / "empty.json", code=2)
    assert "is not a JSON file" in run("report", tmp_path / "broken.json", code=2)
    run("report", tmp_path / "none.json", code=2)
    assert not list(tmp_path.glob("*.html"))


def test_compare(tmp_path):
    small = tmp_path / "log.parquet"
    ad.write_dataset(DEMO.dataset.select_episodes(np.arange(15)), small)
    out = tmp_path / "compared.json"
    common = (small, "--discount", 0.9, "--bootstrap", 2)
    page, remade = tmp_path / "compared.html", tmp_path / "remade.html"
    made = ("--json", out, "--report", page, "--title", "Old or new?")
    text = run("compare", *common, "--policy", POLICY, "--policy", "CartPole-v1", *made)
    assert f"Written to {page}." in text.replace("\n", "")
    assert "<h1>Old or new?</h1>" in page.read_text()
    run("report", out, "--out", remade)
    assert remade.read_text() == page.read_text()
    assert "Differences on the same bootstrap resamples of episodes" in text
    content = json.loads(out.read_text())
    pairs = [(one["policy"], one["other"]) for one in content["differences"]]
    assert pairs == [(str(POLICY), "behaviour"), ("CartPole-v1", "behaviour"), (str(POLICY), "CartPole-v1")]
    assert content["differences"][2]["value"] == content["differences"][2]["upper"] == 0  # the same policy twice
    assert "nowhere" in run("compare", *common, "--policy", "nowhere", code=2)


def test_a_cluster_is_for_logs_in_blocks():
    command = ("evaluate", LOG, "--policy", POLICY, "--discount", "0.9")
    assert "a log in memory is evaluated by this process" in run(*command, "--executor", "ray", code=2)
    assert "unknown executor 'spark'" in run(*command, "--executor", "spark", code=2)
    assert "Add --executor ray" in run(*command, "--address", "127.0.0.1:6379", code=2)


def test_evaluate_from_parts_and_from_target_probabilities(tmp_path):
    log, policy = DEMO.dataset, DEMO.policy
    table = pq.read_table(LOG).append_column("target_log_prob", [policy.log_prob(log.observation, log.action)])
    pq.write_table(table.slice(0, 1234), tmp_path / "a.parquet")
    pq.write_table(table.slice(1234), tmp_path / "b.parquet")
    parts, out = (tmp_path / "a.parquet", tmp_path / "b.parquet"), tmp_path / "r.json"
    run("evaluate", *parts, "--discount", 0.95, "--bootstrap", 0, "--json", out)
    expected = ad.AverageDICE().fit(ad.Problem(log, policy, 0.95), key=jax.random.key(0)).value
    assert json.loads(out.read_text())["estimates"][0]["value"] == expected


def test_validate_describes_a_good_log():
    text = run("validate", LOG)
    assert f"{DEMO.dataset.num_transitions:,}" in text
    assert "The log is valid." in text


def test_validate_counts_allowed_actions(tmp_path):
    log = masked().sample(200, seed=0)
    ad.write_dataset(log, tmp_path / "log.parquet")
    mean = log.action_mask.sum() / log.num_transitions
    assert 2 < mean < 4
    assert f"{mean:.1f} of 4 actions are allowed on average" in run("validate", tmp_path / "log.parquet")
    assert "action_mask" not in run("validate", LOG)


def test_estimators_lists_them_all():
    from average_dice.estimators import REGISTRY

    text = run("estimators")
    assert all(name in text for name in REGISTRY)


def test_a_bad_log_is_named_with_its_rows(tmp_path):
    table = pq.read_table(LOG)
    pq.write_table(table.slice(0, 5), tmp_path / "cut.parquet")
    for arguments in (("validate",), ("evaluate", "--policy", POLICY, "--discount", 0.95)):
        text = run(*arguments, tmp_path / "cut.parquet", code=2)
        assert "episode 0, step 4: the episode ends here but is neither terminated nor truncated" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((LOG, "--policy", POLICY, "--discount", "1.5"), "the discount must lie between 0 and 1"),
        ((LOG, "--policy", POLICY, "--discount", "0.95", "--estimators", "best"), "unknown estimator 'best'"),
        ((LOG, "--policy", POLICY, "--discount", "0.95", "--horizon", "0"), "the horizon must be at least 1 step"),
        ((LOG, "--discount", "0.95"), "give a policy, or a log with a target_log_prob column"),
        ((LOG, "--policy", LOG, "--discount", "0.95"), "not a readable safetensors file"),
        ((LOG, "--policy", "nowhere", "--discount", "0.95"), "neither a policy file nor a task"),
        (("nowhere.parquet", "--policy", POLICY, "--discount", "0.95"), "no such file"),
        ((POLICY, "--policy", POLICY, "--discount", "0.95"), "unknown kind of file"),
        ((LOG, "--policy", POLICY, "--discount", "0.95", "--json", "no/where.json"), "its folder does not exist"),
        ((LOG, "--policy", POLICY, "--discount", "0.95", "--json", ""), "a folder, not a file"),
        ((LOG, "--policy", POLICY, "--discount", "0.95", "--seed", str(2**70)), "the seed must lie between"),
    ],
)
def test_bad_input_is_one_clear_line(arguments, message):
    assert message in run("evaluate", *arguments, code=2)


def test_a_log_that_no_method_can_serve_is_no_success(tmp_path):
    log, out = tmp_path / "log.parquet", tmp_path / "r.json"
    ad.write_dataset(replace(DEMO.dataset.select_episodes(np.arange(5)), behaviour_log_prob=None), log)
    run("evaluate", log, "--policy", POLICY, "--discount", "0.9", "--estimators", "wpdis", "--json", out, code=1)
    assert json.loads(out.read_text())["estimates"][0]["value"] is None


def test_several_rewards_and_groups(tmp_path):
    log, out = tmp_path / "log.parquet", tmp_path / "r.json"
    small = DEMO.dataset.select_episodes(np.arange(10))
    site = np.repeat(np.array(["north", "south"], object)[np.arange(10) % 2], small.lengths)
    ad.write_dataset(replace(small, extra={"cost": 2 * small.reward, "site": site}), log)
    asked = (log, "--policy", POLICY, "--discount", "0.9", "--estimators", "wpdis", "--bootstrap", 2)
    text = run("evaluate", *asked, "--rewards", "reward,cost", "--by", "site", "--json", out)
    content = json.loads(out.read_text())
    once, twice = (one["value"] for one in content["rewards"])
    assert twice == pytest.approx(2 * once, rel=1e-12)
    assert [(one["group"], one["episodes"]) for one in content["groups"]] == [("north", 5), ("south", 5)]
    assert "Groups by site" in text
    assert "Did you mean cost?" in run("evaluate", *asked, "--rewards", "reward,csot", code=2)


@pytest.mark.slow
def test_the_commands_that_a_saved_demo_suggests_work(tmp_path):
    folder = tmp_path / "a demo"
    text = run("demo", "--save", folder)
    for name in DEMOS:
        ends = (".parquet", ".safetensors", ".json", ".html")
        assert all((folder / f"{name}{end}").is_file() for end in ends)
    commands = [line for line in text.splitlines() if line.startswith("  average-dice ")]
    assert len(commands) == 3
    for command in commands:
        run(*shlex.split(command)[1:])
    assert "a file, not a folder" in run("demo", "--save", folder / "Hopper-v5.json", code=2)


@pytest.mark.slow
def test_names_with_brackets_and_terminals_without_greek(tmp_path):
    log = DEMO.dataset
    path = tmp_path / "x[red].parquet"
    ad.write_dataset(replace(log, metadata={"note": "see [/tmp/x]"}), path)
    assert "see [/tmp/x]" in run("validate", path)
    out = tmp_path / "y[red].json"
    text = run("evaluate", path, "--policy", POLICY, "--discount", 0.95, "--bootstrap", 0, "--json", out)
    assert "y[red].json" in text.replace("\n", "")
    ascii_only = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run([COMMAND, "estimators"], capture_output=True, env=ascii_only, check=False)
    assert done.returncode == 0


@pytest.mark.slow
def test_collect_then_evaluate(tmp_path):
    log, again, result = tmp_path / "log.parquet", tmp_path / "again.parquet", tmp_path / "r.json"
    for out in (log, again):
        run("collect", "CartPole-v1", "--policy", POLICY, "--transitions", 300, "--max-steps", 50, "--out", out)
    assert log.read_bytes() == again.read_bytes()
    run("evaluate", log, "--policy", POLICY, "--discount", 0.9, "--bootstrap", 2, "--json", result)
    assert json.loads(result.read_text())["dataset"]["transitions"] >= 300


def test_collect_in_any_gymnasium_environment(tmp_path):
    """CartPole-v0 is no task, and has the observations and actions of CartPole-v1."""
    out = tmp_path / "log.parquet"
    same = ("collect", "CartPole-v0", "--policy", POLICY, "--transitions", 60, "--max-steps", 20, "--out", out)
    assert "transitions in" in run(*same)
    expected = ad.collect("CartPole-v1", DEMO.policy, transitions=60, max_steps=20)
    assert ad.read_dataset(out).sha256 == expected.sha256
    assert "--noise is for tasks" in run(*same, "--noise", 0.3, code=2)
    assert "unknown task CartPole-v0" in run("collect", "CartPole-v0", "--out", out, code=2)
    nowhere = run("collect", "Nowhere-v0", "--policy", POLICY, "--out", out, code=2)
    assert "Gymnasium cannot make it" in nowhere


def test_a_tasks_name_stands_for_its_policy(tmp_path):
    log, result = tmp_path / "log.parquet", tmp_path / "r.json"
    run("collect", "Hopper-v5", "--transitions", 300, "--max-steps", 50, "--out", log)
    run("evaluate", log, "--policy", "Hopper-v5", "--discount", 0.9, "--bootstrap", 2, "--json", result)
    assert json.loads(result.read_text())["estimates"][0]["value"] == pytest.approx(1.47, abs=0.3)


IN_BACKGROUND = ["sh", "-c", 'trap "" INT; exec "$@"', "sh"]  # as a shell starts a job with &: SIGINT is ignored


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize("seconds", [0, 5])
def test_a_signal_ends_a_collection_with_one_line_and_leaves_nothing(tmp_path, number, code, seconds):
    """Also while modules are imported, also where SIGINT was ignored before."""
    command = [COMMAND, "collect", "CartPole-v1", "--transitions", "100000000", "--out", tmp_path / "log.parquet"]
    with started([*IN_BACKGROUND, *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        while not takes_signals(process.pid):
            assert process.poll() is None
            time.sleep(0.01)
        time.sleep(seconds)
        process.send_signal(number)
        _, complaint = process.communicate(timeout=60)
    assert process.returncode == code
    assert len(complaint.splitlines()) == 1
    assert "left no half-written file" in complaint
    assert not list(tmp_path.iterdir())


def takes_signals(pid):
    """Whether the command has come so far as to catch SIGINT; guessed where the system does not say."""
    status = Path(f"/proc/{pid}/status")
    if not status.exists():
        time.sleep(2)
        return True
    (caught,) = (line.split()[1] for line in status.read_text().splitlines() if line.startswith("SigCgt"))
    return bool(int(caught, 16) & 1 << (signal.SIGTERM - 1))  # taken last


def test_truth_and_tasks(tmp_path):
    out = tmp_path / "truth.json"
    run("truth", "Acrobot-v1", "--discount", 0.99, "--episodes", 100, "--json", out)
    (value,) = json.loads(out.read_text())["values"]
    (shipped,) = (row for row in truth_record("Acrobot-v1")["values"] if row["discount"] == 0.99)
    assert value["value"] == pytest.approx(shipped["value"], abs=4 * value["standard_error"])
    text = run("tasks")
    assert all(name in text for name in TASKS)
    assert f"{shipped['value']:.3f}" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("Hopper-v1", "--out", "log.parquet"), "unknown task Hopper-v1"),
        (("CartPole-v1", "--policy", POLICY, "--noise", "1.5", "--out", "log.parquet"), "between 0 and 1"),
        (("CartPole-v1", "--policy", POLICY, "--transitions", "0", "--out", "log.parquet"), "at least one transition"),
        (("CartPole-v1", "--policy", POLICY, "--out", "nowhere/log.parquet"), "its folder does not exist"),
        (("CartPole-v1", "--policy", POLICY, "--out", "log.txt"), "unknown kind of file"),
    ],
)
def test_collections_that_cannot_be(tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    assert message in run("collect", *arguments, code=2)
    assert not list(tmp_path.iterdir())


def test_version():
    assert run("--version").strip() == ad.__version__


def test_a_json_that_cannot_be_written_leaves_the_old_one(tmp_path):
    target = tmp_path / "folder.json"
    target.mkdir()
    run("evaluate", LOG, "--policy", POLICY, "--discount", 0.95, "--json", target, code=2)
    assert list(tmp_path.iterdir()) == [target]
