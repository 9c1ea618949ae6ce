"""One job: its rows have the values that the library gives on the same log."""

import jax
import numpy as np
import pytest

import average_dice as ad
from average_dice.errors import SettingError
from average_dice.estimators import REGISTRY, DeepTD
from average_dice.experiments import measurements
from average_dice.experiments.jobs import Method
from average_dice.experiments.main import MAIN, MainPlan
from average_dice.experiments.measurements import _described, make, run
from average_dice.experiments.tuning import TUNING, TuningPlan
from average_dice.labels import plain
from average_dice.models import MLPRegression, RatioModel, Regression, Table
from average_dice.models.held_out import HeldOut
from average_dice.notes import Note, NoteCode
from average_dice.tasks import collect, fastest_envs, find_task, target_policy, true_value


def test_rows_are_what_the_library_says_of_the_same_log():
    plan = MainPlan(("CartPole-v1",), ("wpdis", "mwl", "td"), 1, 1, 2, 3, {"td": 6})
    closed, trained = MAIN.jobs(plan)
    log = collect(
        find_task("CartPole-v1"),
        target_policy("CartPole-v1"),
        num_transitions=4000,
        max_steps=100,
        noise=0.3,
        seed=0,
        make_envs=fastest_envs(),
    )
    problem = ad.Problem(log, target_policy("CartPole-v1"), 0.95)
    (row,) = run(closed)  # mwl trains and has no steps: left out
    assert row["value"] == REGISTRY["wpdis"].make().fit(problem, key=jax.random.key(0)).value
    assert (row["truth"], row["truth_standard_error"]) == true_value("CartPole-v1", 0.95)
    rows = run(trained)
    assert [row["seed"] for row in rows] == [0, 1]
    assert rows[0]["value"] != rows[1]["value"]
    keys = [jax.random.fold_in(jax.random.key(seed), 0) for seed in (0, 1)]
    fits = DeepTD(num_steps=6, num_checkpoints=2).fit_seeds(problem, keys=keys)
    assert [row["value"] for row in rows] == [fit.value for fit in fits]
    assert rows[0]["curve_step"] == [0, 3, 6]
    assert rows[0]["curve_value"] == fits[0].history.value.tolist()


def test_a_method_that_does_not_apply_is_a_row_with_the_reason():
    plan = TuningPlan(("CartPole-v1",), 1, 1, 2, 2, (0.0,), (0.5,), (1e30,))
    (row,) = run(next(TUNING.jobs(plan)))
    assert row.get("value") is None
    assert row["notes"].startswith("not applicable: ")
    assert row["note_codes"] == [NoteCode.NOT_APPLICABLE]


def test_notes_are_stored_as_texts_and_codes():
    notes = (Note(NoteCode.VALUE_RULE, "value not normalised"), Note(NoteCode.SHORT_TRAINING, "trained for 5 steps"))
    stored = measurements._stored_notes(notes)
    assert stored == {
        "notes": "value not normalised; trained for 5 steps",
        "note_codes": ["value-rule", "short-training"],
    }


def test_fingerprints_depend_on_settings_and_not_on_where_code_is():
    assert _described(plain) == "plain"
    assert _described(DeepTD(num_steps=7)) == ["DeepTD", {**_described(DeepTD())[1], "num_steps": 7}]
    assert "average_dice" not in str([_described(entry.make()) for entry in REGISTRY.values()])


def test_the_training_length_and_options_reach_the_method():
    assert make(Method("sr-dice", 100, 3)).encoder_steps == 30
    assert make(Method("best-dice", 100, 3)).num_steps == 100
    assert make(Method("average-dice-neural", 100, 3)).model.num_steps == 100
    options = {"ridge": 0.1, "mass_weight": 2.0, "learning_rate": 1e-3, "held_out": 0.25}
    found = make(Method("average-dice-paper", 100, 3, options)).model
    assert found.share == 0.25
    assert (found.model.ridge, found.model.mass_weight, found.model.learning_rate) == (0.1, 2.0, 1e-3)
    with pytest.raises(SettingError, match="DeepTD has no option ridge"):
        make(Method("td", 100, 3, {"ridge": 0.1}))
    with pytest.raises(SettingError, match="wpdis: ridge can only be set with a training length"):
        make(Method("wpdis", options={"ridge": 0.1}))


def test_no_truth_at_that_discount_is_an_error():
    with pytest.raises(SettingError, match="no true value"):
        true_value("CartPole-v1", 0.5)


def test_a_held_out_loss_is_that_of_episodes_never_trained_on():
    """Labels are 1, and 3 in held-out episodes: the loss is ½ (1 − 3)² = 2, and less for a model trained on them."""
    generator = np.random.default_rng(0)
    episode = np.repeat(np.arange(100), 10)
    inputs = generator.normal(size=(1000, 1))
    held_out = episode % 5 == 4
    targets = np.where(held_out, 3.0, 1.0)
    regression = Regression(inputs, targets, np.ones(1000), 1.0, episode)
    model = MLPRegression(
        hidden=(16,), ridge=0.0, mass_weight=0.0, learning_rate=1e-2, num_steps=500, num_checkpoints=1
    )
    fitted = HeldOut(model).fit(regression, key=jax.random.key(0), value_of=np.mean)
    assert fitted.diagnostics["held_out_loss"] == pytest.approx(2.0, rel=0.02)
    assert fitted.rows.shape == (1000,)
    assert fitted.rows.mean() == pytest.approx(1.0, abs=0.01)
    assert fitted.history.value[-1] == pytest.approx(fitted.rows[~held_out].mean())  # by the episodes kept


@pytest.mark.parametrize("share", [0.1, 0.2, 0.22, 0.4, 0.5])
def test_the_share_held_out_is_the_one_asked_for(share):
    seen = []

    class Spy(RatioModel):
        def fit(self, regression, *, key, value_of):
            seen.append(regression.episode)
            return Table().fit(regression, key=key, value_of=value_of)

    rows = np.ones(1000)
    regression = Regression(np.zeros((1000, 1)), rows, rows, 1.0, np.arange(1000))
    HeldOut(Spy(), share).fit(regression, key=jax.random.key(0), value_of=np.mean)
    assert len(seen[0]) == pytest.approx(1000 * (1 - share), abs=1)


def test_a_seed_that_fails_does_not_take_the_others_with_it(monkeypatch):
    class OneFails(DeepTD):
        def train(self, problem, *, keys, resamples=None):
            if any((jax.random.key_data(key) == jax.random.key_data(bad)).all() for key in keys):
                raise ad.NotApplicable("training diverged")
            return super().train(problem, keys=keys, resamples=resamples)

    bad = jax.random.fold_in(jax.random.key(1), 0)
    monkeypatch.setattr(measurements, "make", lambda method: OneFails(num_steps=6, num_checkpoints=2))
    *_, job = MAIN.jobs(MainPlan(("CartPole-v1",), ("td",), 1, 1, 3, 3, {"td": 6}))
    values = [row.get("value") for row in run(job)]
    assert [value is None for value in values] == [False, True, False]
