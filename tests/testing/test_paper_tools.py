"""The tools behind docs/paper.md: the study of the released code, and the boundary of the printed method."""

import runpy
from dataclasses import fields
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from average_dice.estimators import AverageDICE
from average_dice.models import ReleasedRegression
from average_dice.policies import GaussianPolicy, with_scaled_variance
from average_dice.testing.exact_mdps import early_termination, sticky_chain
from average_dice.testing.released_limit import released_limit

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "paper.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def boundary():
    return runpy.run_path(str(ROOT / "tools" / "boundary.py"))


@pytest.fixture(scope="module")
def study():
    return runpy.run_path(str(ROOT / "tools" / "released_study.py"))


def stored(tool):
    return pq.read_table(tool["STORE"], schema=tool["SCHEMA"])


def log_ratios(noise, dimensions, shape):
    """log ρ of actions of μ."""
    target = GaussianPolicy(lambda states: np.zeros((len(states), dimensions)), np.linspace(-1, 1, dimensions))
    behaviour = with_scaled_variance(target, noise)
    states = np.zeros((int(np.prod(shape)), 1))
    actions = behaviour.sample(states, generator=np.random.default_rng(0))
    return (target.log_prob(states, actions) - behaviour.log_prob(states, actions)).reshape(shape)


@pytest.mark.parametrize(("noise", "dimensions"), [(0.8, 1), (1.1, 3), (1.4, 6), (2.0, 3), (2.8, 1), (4.0, 2)])
def test_the_second_moment_is_that_of_sampled_actions(boundary, noise, dimensions):
    squares = np.exp(2 * log_ratios(noise, dimensions, (400_000,)))
    error = squares.std() / len(squares) ** 0.5
    assert abs(squares.mean() - boundary["second_moment"](noise, dimensions)) < 4 * error
    assert error < 0.01 * squares.mean()


def test_the_second_moment_is_infinite_for_a_much_narrower_behaviour_policy(boundary):
    assert boundary["second_moment"](0.5) == np.inf
    assert boundary["second_moment"](1.0, 8) == 1.0


def test_the_effective_sample_size_falls_as_the_second_moment_says(boundary):
    """Of many sampled episodes, before the products are so heavy that a sample does not show their second moment."""
    products = np.exp(np.cumsum(log_ratios(1.4, 3, (100_000, 10)), axis=1))
    shares = products.sum(axis=0) ** 2 / (products**2).sum(axis=0) / len(products)
    expected = boundary["second_moment"](1.4, 3) ** -np.arange(1.0, 11)
    np.testing.assert_allclose(shares, expected, rtol=0.05)


def test_five_episodes_are_effective_at_the_collapse(boundary):
    for episodes, moment in ((40, 1.5), (200, 1.01)):
        assert episodes / moment ** boundary["collapse_step"](episodes, moment) == pytest.approx(5)
    assert boundary["collapse_step"](4, 1.5) == 0.0
    assert boundary["collapse_step"](40, 1.0) == np.inf
    assert boundary["steps_that_count"](20, 0.95) == 20
    assert 0.95 ** boundary["steps_that_count"](100, 0.95) == pytest.approx(0.05)


def test_effective_episodes_by_step_keep_the_products_of_terminated_ones(boundary):
    problem = early_termination().problem(30, seed=0)
    data, found = problem.dataset, boundary["effective_by_step"](problem)
    assert data.lengths.min() < data.lengths.max() == len(found)
    for step in (0, 1, int(data.lengths.min()) + 1, len(found) - 1):
        ends = np.minimum(step, data.lengths)
        spans = zip(data.starts, data.starts + ends, strict=True)
        products = np.array([problem.ratio[start:end].prod() for start, end in spans])
        assert found[step] == pytest.approx(products.sum() ** 2 / (products @ products))


def test_the_page_has_the_table_of_the_boundary(boundary):
    rows = stored(boundary).to_pylist()
    assert {(row["task"], row["length"], row["noise"]) for row in rows} == set(boundary["every_setting"]())
    assert boundary["with_table"](PAGE, boundary["settings"](rows)) == PAGE
    assert boundary["FIGURE"].exists()


def test_the_boundary_gives_the_stored_results(boundary):
    row = boundary["rows_of"]("CartPole-v1", 0.3, 50, 2, dict.fromkeys(boundary["DISCOUNTS"], (0.0, 0.0)))[1]
    (same,) = (
        one
        for one in stored(boundary).to_pylist()
        if all(one[name] == row[name] for name in ("task", "noise", "length", "log", "discount"))
    )
    for name in ("episodes", "second_moment", "effective", "value"):
        assert row[name] == pytest.approx(same[name], rel=1e-6)


def test_each_variant_differs_from_the_released_method_in_one_thing(study):
    released = AverageDICE.released()
    for name, method in list(study["variants"]().items())[3:]:
        changed = {one.name for one in fields(AverageDICE) if getattr(method, one.name) != getattr(released, one.name)}
        factors = {"labels", "completion"} if name.startswith("label: ") else {"model"}
        assert changed
        assert changed <= factors, name
        settings = [
            one.name
            for one in fields(ReleasedRegression)
            if getattr(method.model, one.name) != getattr(released.model, one.name)
        ]
        assert len(settings) + (type(method.model) is not ReleasedRegression) == ("model" in changed), name


def test_the_labels_of_the_variants_are_what_their_names_say(study):
    problem = sticky_chain().problem(3, seed=0)
    found = {
        name: method.regression_of(problem).regression.targets
        for name, method in study["variants"]().items()
        if name.startswith("label: ")
    }
    powers = 0.95**problem.dataset.step
    prefix, alone, constant, nothing = found.values()
    np.testing.assert_allclose(prefix, powers * np.exp(problem.log_product))
    np.testing.assert_allclose(alone, powers)
    np.testing.assert_allclose(constant, 1 / (50 * 0.05))
    np.testing.assert_array_equal(nothing, 0)


@pytest.mark.parametrize("case", ["CartPole-v1", "HalfCheetah-v5"])
def test_the_released_labels_have_nearly_all_vanished(study, case):
    """On average over the logs, as the page says; every log is truncated at 100 steps, so the scale is 5."""
    problems = [study["problem_of"](case, log)[0] for log in range(study["LOGS"])]
    labels = [AverageDICE.released().regression_of(problem).regression.targets for problem in problems]
    assert 0.01 <= np.mean([np.mean(one > 0.05) for one in labels]) <= 0.025
    assert 0.045 <= np.mean([5 * one.mean() for one in labels]) <= 0.075


def test_the_page_has_the_table_of_the_study(study):
    store = stored(study)
    runs = set(zip(*(store[name].to_pylist() for name in ("case", "variant", "log")), strict=True))
    assert runs == set(study["every_run"]())
    assert study["with_table"](PAGE, store) == PAGE


def test_errors_of_the_study_are_relative_and_have_the_noise_of_logs(study):
    rows = [{"truth": -2.0, "last_values": [-2.0 * (1 + off), -2.0 * (1 - off)]} for off in (0.1, 0.3)]
    found = study["Error"].of(rows)
    assert found.rmse == pytest.approx(np.sqrt((0.01 + 0.09) / 2))
    assert found.standard_error == pytest.approx(0.04 / (2 * found.rmse))
    assert np.isnan(study["Error"].of([*rows, {"truth": 1.0, "last_values": None}]).rmse)


def test_without_labels_the_pull_alone_gives_the_mass_that_the_page_says(study):
    """A constant f minimises f² + (λ₂/2)(c f − 1)² at c f = λ₂c²/(2 + λ₂c²). On HalfCheetah f is not constant yet."""
    rows = pa.Table.to_pylist(stored(study))
    for case, scale in (("sticky chain", 2.5), ("CartPole-v1", 5.0), ("Hopper-v5", 5.0), (study["AS_RELEASED"], 5.0)):
        expected = 0.5 * scale**2 / (2 + 0.5 * scale**2)
        masses = [row["mass"] for row in rows if (row["case"], row["variant"]) == (case, "label: 0")]
        assert len(masses) == study["LOGS"]
        np.testing.assert_allclose(masses, expected, rtol=0.01)
    assert "0.86" in PAGE


def test_the_page_states_the_limit_of_the_released_label():
    mdp = sticky_chain()
    limit = released_limit(mdp)
    lines = [line for line in PAGE.splitlines() if line.startswith("| sticky chain, ")]
    for line, ratio, value in (
        (lines[0], limit.ratio, limit.value),
        (lines[1], mdp.ratio_to_truncation, mdp.value_to_truncation),
        (lines[2], mdp.ratio, mdp.value),
    ):
        assert line.endswith(f"| {ratio[0]:.4f} | {ratio[1]:.4f} | {value:.4f} |")


def test_what_the_page_says_of_the_study_is_in_the_store(study):
    rows = stored(study).to_pylist()

    def of(case, variant):
        return [row for row in rows if (row["case"], row["variant"]) == (case, variant)]

    released, tasks = study["RELEASED"], study["CASES"][1:]
    errors = {
        (case, name): study["Error"].of(of(case, name)).rmse for case in study["CASES"] for name in study["variants"]()
    }
    for case in tasks:
        assert abs(errors[case, "label: 0"] - errors[case, released]) <= 0.035
        assert 0.915 <= errors[case, "no pull of the mass"] <= 0.945
        assert np.mean([row["variation"] for row in of(case, released)]) <= 0.035
        assert abs(errors[case, "linear output"] - errors[case, released]) <= 0.025
        assert min(study["variants"](), key=lambda name: errors[case, name]) in ("label: γᵗ alone", "average reward")
    for case, ratio in (("sticky chain", 1.5), ("Hopper-v5", 0.56), ("HalfCheetah-v5", 0.73)):
        assert errors[case, released] / errors[case, "average reward"] == pytest.approx(ratio, abs=0.03)
