"""The tools that make pages from the exact MDPs and the cases."""

import runpy
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from average_dice.testing.cases import CLOSED_FORMS
from average_dice.testing.exact_mdps import ALL

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def coverage():
    return runpy.run_path(str(ROOT / "tools" / "interval_coverage.py"))


@pytest.fixture(scope="module")
def store(coverage):
    return pq.read_table(coverage["STORE"], schema=coverage["SCHEMA"])


def test_coverage_runs_a_method_that_has_no_results_and_only_it(coverage, store):
    """Adding an estimator must not run the others again, nor leave a hole in the page."""
    without = store.filter(pc.not_equal(store["estimator"], "wdr"))
    left = [task for task in coverage["unfinished"](without) if "wdr" in task[2]]
    before = {task[:2]: task[2] for task in coverage["unfinished"](store)}
    assert len(left) == len(ALL) * coverage["NUM_LOGS"]
    assert all(set(names) == {"wdr", *before.get((which, seed), ())} for which, seed, names in left)
    lines = coverage["page"](without).splitlines()
    assert lines == [line for line in coverage["page"](store).splitlines() if not line.startswith("| `wdr`")]


def test_coverage_gives_the_stored_results(coverage, store):
    (row,) = coverage["results_of"]((1, 3, ("pdis",)))
    same = pc.and_(pc.equal(store["mdp"], ALL[1].name), pc.equal(store["estimator"], "pdis"))
    (stored,) = store.filter(pc.and_(same, pc.equal(store["log"], 3))).to_pylist()
    for name in ("value", "lower", "upper"):
        assert row[name] == pytest.approx(stored[name], rel=1e-6)


def test_the_page_of_exact_errors_has_the_text_of_its_tool():
    tool = runpy.run_path(str(ROOT / "tools" / "exact_errors.py"))
    assert tool["PAGE"].read_text().startswith(tool["HEAD"] + "| estimator | ")
    error = tool["error"](CLOSED_FORMS["pdis"].method, [(ALL[1].problem(500, 0), ALL[1].value)])
    assert float(error) < 0.1


@pytest.mark.parametrize("name", ["simultaneous_coverage", "planning"])
def test_tables_of_decisions_are_those_of_their_stores(name):
    """The page has the table of the stored results, a result is what the tool computes, and no log is run twice."""
    tool = runpy.run_path(str(ROOT / "tools" / f"{name}.py"))
    store = pq.read_table(tool["STORE"], schema=tool["SCHEMA"])
    text = tool["PAGE"].read_text()
    assert tool["with_table"](text, tool["table"](store)) == text
    stored = next(row for row in store.to_pylist() if row["estimator"] == "average-dice-tabular" and row["log"] == 3)
    mdps = tool.get("MDPS", ALL)
    which = next(place for place, mdp in enumerate(mdps) if mdp.name == stored["mdp"])
    row = tool["results_of"]((which, 3, "average-dice-tabular"))
    for column, expected in stored.items():
        if isinstance(expected, float | list):
            assert row[column] == pytest.approx(expected, rel=1e-4, abs=1e-6)
    assert not any(task[1] < 3 for task in tool["unfinished"](store, ["average-dice-tabular"], 5))
    assert len(list(tool["unfinished"](store.slice(0, 0), ["fqe"], 2))) == 2 * len(mdps)
