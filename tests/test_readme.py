"""What the README shows runs, and gives the numbers that it says."""

import json
import re
import runpy
import shlex
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pandas
import pyarrow.parquet as pq
import pytest
from sklearn.linear_model import LogisticRegression

import average_dice as ad
from average_dice.demo import DEMOS, load_demo
from average_dice.experiments.ablation import ABLATION
from average_dice.experiments.claims import judge_claims
from average_dice.experiments.main import MAIN
from average_dice.experiments.summaries import RELATIVE_FLOOR, error_at_the_end, grouped, rmse, tasks_of
from average_dice.experiments.trust import TRUST, by_verdict
from average_dice.experiments.tuning import PUBLISHED, TUNING, chosen

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
MUJOCO = ("Hopper", "HalfCheetah", "Walker2d", "Ant")


RULES = {
    "rules": [{"if": {"ward": "icu"}, "then": {"treat": 0.8, "wait": 0.2}}],
    "otherwise": {"treat": 0.3, "wait": 0.7},
}


@pytest.fixture(scope="module")
def visits() -> pandas.DataFrame:
    """Three visits of each of sixty patients. Treatment helps in the ICU."""
    generator = np.random.default_rng(0)
    number = 180
    ward = generator.choice(["icu", "er"], number)
    treated = generator.random(number) < 0.5
    last = np.arange(number) % 3 == 2
    return pandas.DataFrame(
        {
            "patient_id": [f"p{one // 3}" for one in range(number)],
            "day": np.arange(number) % 3,
            "age": generator.integers(20, 90, number),
            "bp": generator.normal(120, 15, number),
            "ward": ward,
            "drug": np.where(treated, "treat", "wait"),
            "outcome": (treated & (ward == "icu")) + generator.normal(0, 0.3, number),
            "discharged": last,
        }
    )


def test_the_python_runs(visits, tmp_path, monkeypatch):
    features = visits[["age", "bp"]]
    classifier = LogisticRegression().fit(features, visits["drug"])
    models = {
        name: ad.GaussianPolicy(lambda rows: rows[:, :1], np.array([width]))
        for name, width in {"old_model": 0.5, "new_model": 0.2}.items()
    }
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"visits": visits, "classifier": classifier, **models}
    blocks = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    for block in blocks:
        exec(block.replace("episodes=100", "episodes=4").replace("discount=1.0,", "discount=1.0, bootstrap=4,"), names)
    assert (tmp_path / "report.html").exists()
    assert names["evaluation"].value is not None
    assert names["log"].num_episodes == 4


def test_the_command_makes_a_page_of_a_table(visits, tmp_path):
    visits.to_csv(tmp_path / "visits.csv", index=False)
    (tmp_path / "rules.json").write_text(json.dumps(RULES))
    command = next(one for one in re.findall(r"```sh\n(.*?)```", README, flags=re.DOTALL) if "visits.csv" in one)
    words = shlex.split(command.replace("\\\n", " "))
    assert words[0] == "average-dice"
    found = subprocess.run(
        [sys.executable, "-m", "average_dice.cli", *words[1:], "--bootstrap", "2"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 0, found.stderr
    assert "if nothing unobserved drove the actions" in " ".join(found.stdout.split())
    assert "<h1>" in (tmp_path / "report.html").read_text()


def test_the_numbers_are_those_of_the_demo():
    # | estimator | value | error | value | error |
    pattern = r"^\| ([a-z-]+)(?: ★)? \| ([0-9.]+) \| ([−+0-9.]+|–) \| ([0-9.]+) \| ([−+0-9.]+|–) \|"
    table = re.findall(pattern, README, flags=re.MULTILINE)
    for column, name in enumerate(DEMOS):
        demo = load_demo(name)
        found = ad.evaluate(demo.dataset, demo.policy, demo.discount, bootstrap=0).estimates
        assert f"{demo.truth:.4f} ± {demo.standard_error:.4f}" in README
        rows = {row[0]: row[1 + 2 * column : 3 + 2 * column] for row in table}
        assert set(rows) == set(found)
        for estimator, (value, error) in rows.items():
            assert float(value) == pytest.approx(found[estimator].value, abs=6e-5)
            other_scale = ad.NoteCode.OTHER_SCALE in {note.code for note in found[estimator].notes}
            assert (error == "–") == other_scale
            if not other_scale:
                assert float(error.replace("−", "-")) == pytest.approx(found[estimator].value - demo.truth, abs=6e-5)


def test_every_link_leads_somewhere():
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]:
        for link in re.findall(r"\]\((?!http)([^)#]+)", page.read_text()):
            assert (page.parent / link).exists(), (page, link)


def test_the_page_of_the_recommended_estimator_shows_what_was_computed():
    page = (ROOT / "docs" / "recommended.md").read_text()
    table = (ROOT / "results" / "standard" / "comparison.md").read_text()
    assert f"<!-- comparison -->\n{table}<!-- end of comparison -->\n" in page
    steps = page.partition("<!-- steps -->\n")[2].partition("<!-- end of steps -->")[0]
    tool = runpy.run_path(str(ROOT / "tools" / "steps.py"))
    assert re.findall(r"^\| ([^|]+) \| \d", steps, flags=re.MULTILINE) == list(tool["STEPS"])
    lines = [line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("| ")]
    rows = {line[0]: dict(zip(lines[0], line, strict=True)) for line in lines[2:]}
    dr, fqe, text = rows["average-dice-dr"], rows["fqe"], " ".join(README.split())
    assert f"{dr['ratio']} times ({dr['95 %']}) that of the next best" in text
    assert f"{fqe['ratio']} times that of fitted Q evaluation" in text
    assert f"{rows['wpdis']['ratio']} times that of self-normalised importance sampling" in text
    assert f"{rows['average-dice-paper']['ratio']} times that of the paper's network" in text
    assert f"the first two ratios are {dr['MuJoCo']} and {fqe['MuJoCo']}" in text
    assert f"they are {dr['unseen tasks']} and {fqe['unseen tasks']}" in text


def test_the_page_on_coverage_shows_what_was_computed():
    tool = runpy.run_path(str(ROOT / "tools" / "interval_coverage.py"))
    store = pq.read_table(tool["STORE"])
    assert tool["page"](store) == (ROOT / "docs" / "coverage.md").read_text()
    recommended = [line for line in tool["page"](store).splitlines() if line.startswith("| `average-dice-blend` |")]
    shares = [float(share) for share in re.findall(r"([\d.]+) \([+-]", recommended[0])]
    assert f"contain it in {min(shares):.0f} to {max(shares):.0f} % of a thousand logs" in " ".join(README.split())


def test_the_page_on_trust_shows_what_was_computed():
    page = (ROOT / "docs" / "trust.md").read_text()
    table = (ROOT / "results" / "standard" / "trust.md").read_text()
    assert f"<!-- trust -->\n{table}<!-- end of trust -->\n" in page
    lines = json.loads((ROOT / "results" / "standard" / "trust_table.json").read_text())
    by_today = by_verdict(TRUST.results(ROOT / "results" / "standard"))  # by the rules as they are now
    assert lines == [asdict(line) for line in by_today]
    supported, *others = everywhere = [line for line in lines if line["tasks"] == "all tasks"]
    contained = [f"{100 * line['contained']:.0f} %" for line in everywhere]
    errors = [f"{100 * line['median_error']:.2g} %" for line in everywhere]
    text = " ".join(README.split())
    assert "{} of the supported cases, {} of the weak and {} of those not supported".format(*contained) in text
    assert "the median error is {}, {} and {} of J".format(*errors) in text
    assert supported["verdict"] == "supported"
    assert all(line["contained"] < supported["contained"] for line in others)
    assert all(line["median_error"] > supported["median_error"] for line in others)


def test_the_claims_and_choices_shown_are_those_that_the_results_say():
    standard = ROOT / "results" / "standard"
    page = (ROOT / "docs" / "benchmark.md").read_text()
    found = json.loads((standard / "claims.json").read_text())
    assert found == [asdict(claim) for claim in judge_claims(standard)]  # by the rules as they are now
    assert f"<!-- claims -->\n{(standard / 'claims.md').read_text()}<!-- end of claims -->" in page
    lines = ["| claim of the paper | here it | explanation |", "| --- | --- | --- |"]
    lines += [f"| {one['claim']} | {one['verdict']} | {one['explanation']} |" for one in found]
    assert "<!-- claims -->\n" + "\n".join(lines) + "\n<!-- end of claims -->" in README
    assert f"<!-- tuning -->\n{(standard / 'tuning.md').read_text()}<!-- end of tuning -->" in page
    rows = ["| " + " | ".join(line) + " |" for line in chosen(TUNING.results(standard))]
    assert (standard / "tuning.md").read_text().splitlines()[2:] == rows


def test_what_is_said_of_tuning_is_in_the_store():
    rows = TUNING.results(ROOT / "results" / "standard")
    for row in rows:
        row["held_out_loss"] = json.loads(row["diagnostics"])["held_out_loss"]
    cells = grouped(rows, lambda row: row["options"])

    def mean_log(runs, measure):
        return np.mean([np.log(measure(of_task)) for of_task in grouped(runs, lambda row: row["task"]).values()])

    errors = {name: mean_log(runs, error_at_the_end) for name, runs in cells.items()}
    losses = [mean_log(runs, lambda one: np.mean([row["held_out_loss"] for row in one])) for runs in cells.values()]
    (published,) = (
        name
        for name, options in ((name, json.loads(name)) for name in cells)
        if (options["ridge"], options["mass_weight"], options["learning_rate"]) == PUBLISHED
    )
    rank = 1 + sorted(errors, key=errors.__getitem__).index(published)
    correlation = np.corrcoef(*(np.argsort(np.argsort(one)) for one in (list(errors.values()), losses)))[0, 1]
    page = (ROOT / "docs" / "benchmark.md").read_text()
    assert f"<!-- rank -->{rank}th of {len(cells)}<!-- end -->" in page
    assert f"<!-- correlation -->{correlation:.2f}<!-- end -->".replace("-0", "−0") in page


def test_the_main_comparison_is_as_the_readme_says():
    """Each method that trains on its three logs, against our error on all ten."""
    rows = MAIN.results(ROOT / "results" / "standard")
    cells = grouped(rows, lambda row: (row["estimator"], row["task"]))

    def error(estimator, task):
        return max(rmse(cells[estimator, task]), RELATIVE_FLOOR * abs(cells[estimator, task][0]["truth"]))

    trained = {row["estimator"] for row in rows if row["curve_step"]}
    ratios = {
        name: {task: error("average-dice-blend", task) / error(name, task) for task in tasks_of(rows)}
        for name in trained
    }
    mean = {name: np.exp(np.mean(np.log(list(of_task.values())))) for name, of_task in ratios.items()}
    said = (
        f"{mean['best-dice']:.2g} times that of BestDICE, {mean['td']:.2g} times that of deep TD and "
        f"{mean['average-dice-paper']:.2g} times that of the paper's method"
    )
    assert f"<!-- main -->{said}<!-- end -->" in README
    assert {(name, task) for name in trained for task, ratio in ratios[name].items() if ratio > 1} == {
        ("mwl", "Acrobot-v1"),
        ("td", "Acrobot-v1"),
        ("gradient-dice", "Ant-v5"),
        ("best-dice", "Ant-v5"),
        ("gen-dice", "Ant-v5"),
        ("dual-dice", "HalfCheetah-v5"),
    }
    on_half_cheetah = {
        row["estimator"]: error("average-dice-blend", "HalfCheetah-v5") / error(row["estimator"], "HalfCheetah-v5")
        for row in rows
        if row["task"] == "HalfCheetah-v5" and row["estimator"] not in trained
    }
    assert {name for name, ratio in on_half_cheetah.items() if ratio > 1} == {"average-dice-dr"}


def test_the_page_on_the_experiments_says_what_the_labels_and_the_store_say():
    page = (ROOT / "docs" / "benchmark.md").read_text()
    shares = {}
    for name in DEMOS:
        demo = load_demo(name)
        problem = ad.Problem(demo.dataset, demo.policy, 0.95)
        label = np.exp(problem.log_product + demo.dataset.step * np.log(0.95))
        late = np.sort(label[demo.dataset.step >= 20])[::-1]
        shares[name] = late[: len(late) // 100].sum() / late.sum()
    assert [f"{share:.0%}" for share in shares.values()] == ["100%", "96%"]
    assert "96 % of their sum in the embedded log of Hopper, and all of it in that of CartPole" in " ".join(
        page.split()
    )
    rows = ABLATION.results(ROOT / "results" / "standard")
    rows = [row for row in rows if row["task"] != "MountainCarContinuous-v0"]  # where J is nearly 0

    def medians(measure, mass_weight):
        """Over the runs of each task, of the value over J in the second half of training."""
        found = {}
        for task in tasks_of(rows):
            of_task = (row for row in rows if row["task"] == task)
            runs = [row for row in of_task if json.loads(row["options"])["mass_weight"] == mass_weight]
            curves = [np.array(run["curve_value"]) / run["truth"] for run in runs]
            found[task.split("-v")[0]] = np.median([measure(curve[len(curve) // 2 :]) for curve in curves])
        return found

    with_it, without = medians(np.mean, 0.5), medians(np.mean, 0.0)
    (first, value), *others = ((task, value) for task, value in with_it.items() if task in MUJOCO)
    shown = ", ".join([f"{value:.2f} times J on {first}", *(f"{value:.2f} {task}" for task, value in others)])
    assert f"<!-- with -->{shown}<!-- end -->" in page
    shown = ", ".join(f"{without[task]:.2f}" for task in MUJOCO)
    assert f"<!-- without -->{shown}<!-- end -->" in page
    shown = f"{with_it['CartPole']:.2f} and {without['CartPole']:.2f}"
    assert f"<!-- cart-pole -->{shown}<!-- end -->" in page
    swings = 100 * np.array(list(medians(np.std, 0.5).values()))
    assert f"<!-- swing -->{swings.min():.0f} to {swings.max():.0f} %<!-- end -->" in page
