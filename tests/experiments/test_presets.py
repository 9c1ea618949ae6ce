"""Presets: their contents, and the errors that name mistakes in them."""

import pytest

from average_dice.errors import SettingError
from average_dice.estimators import RECOMMENDED, REGISTRY
from average_dice.experiments.jobs import AXES, Method
from average_dice.experiments.main import MAIN
from average_dice.experiments.measurements import make
from average_dice.experiments.presets import SHIPPED, load_plan
from average_dice.experiments.registry import EXPERIMENTS
from average_dice.experiments.robustness import ROBUSTNESS
from average_dice.experiments.tuning import TUNING
from average_dice.tasks import TASKS

PRESET = """[main]
tasks = ["CartPole-v1"]
estimators = ["wpdis", "td"]
logs = 3
trained_logs = 2
seeds = 4
every = 5
steps = {td = 10}
"""


def plan_of(tmp_path, text, experiment=MAIN):
    path = tmp_path / "mine.toml"
    path.write_text(text)
    return load_plan(path, experiment)


@pytest.mark.parametrize("experiment", EXPERIMENTS.values(), ids=EXPERIMENTS)
@pytest.mark.parametrize("preset", SHIPPED)
def test_shipped_presets_are_sound(preset, experiment):
    jobs = list(experiment.jobs(load_plan(preset, experiment)))
    assert len({job.key for job in jobs}) == len(jobs)
    for method in {job.methods[0].estimator: job.methods[0] for job in jobs}.values():
        make(method)


def test_the_paper_preset_has_the_sizes_of_the_paper():
    main = load_plan("paper", MAIN)
    assert main.tasks == tuple(TASKS)
    of_the_figure = {"average-dice-paper", "average-dice-released", "cop-td", "best-dice", "sr-dice", "td"}
    assert set(main.steps) == of_the_figure
    assert {"average-reward", RECOMMENDED} < set(main.estimators)
    assert main.trained_logs == 10
    assert main.steps["average-dice-paper"] == 25_000
    assert main.steps["sr-dice"] == 100_000
    tuning = load_plan("paper", TUNING)
    assert len(tuning.ridges) * len(tuning.mass_weights) * len(tuning.learning_rates) == 80
    model = make(Method("average-dice-paper", 25_000, 50)).model
    assert (model.hidden, model.batch_size, model.num_steps) == ((256, 256), 512, 25_000)


def test_robustness_varies_one_thing_at_a_time():
    settings = load_plan("standard", ROBUSTNESS).settings(TASKS["Hopper-v5"])
    assert len(settings) == 15  # 5 + 4 + 4 + 5, the middle once
    middle = settings[2]
    for setting in settings:
        assert sum(getattr(setting, axis) != getattr(middle, axis) for axis in AXES) <= 1


def test_a_file_of_ones_own(tmp_path):
    jobs = list(MAIN.jobs(plan_of(tmp_path, PRESET)))
    assert [(job.log, job.num_seeds, job.methods[0].estimator) for job in jobs] == [
        (0, 1, "wpdis"),
        (0, 4, "td"),
        (1, 1, "wpdis"),
        (1, 4, "td"),
        (2, 1, "wpdis"),
    ]
    assert jobs[1].methods[0].num_steps == 10
    assert make(jobs[1].methods[0]).num_steps == 10


def test_others_are_all_methods_that_train_and_have_no_steps_of_their_own(tmp_path):
    text = PRESET.replace('["wpdis", "td"]', '"all"').replace("{td = 10}", "{td = 10, others = 7}")
    plan = plan_of(tmp_path, text)
    trained = [name for name, entry in REGISTRY.items() if entry.make().trains]
    assert plan.steps == dict.fromkeys(trained, 7) | {"td": 10}


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("CartPole-v1", "CartPole-v9", "unknown task CartPole-v9"),
        ('"wpdis"', '"wpdiss"', "unknown estimator 'wpdiss'"),
        ("seeds = 4", "sedes = 4", "unknown sedes. Known are tasks, estimators"),
        ("seeds = 4\n", "", "seeds missing"),
        ("seeds = 4", "seeds = 0", "seeds must be a whole number above 0"),
        ("seeds = 4", "seeds = true", "seeds must be a whole number above 0"),
        ("{td = 10}", "{others = 0}", "steps of others must be a whole number"),
        ("{td = 10}", "{td = 1.5}", "steps of td must be a whole number"),
        ("{td = 10}", "{wpdis = 10}", "wpdis does not train. Remove its steps"),
        ("{td = 10}", "{td = 10, mwl = 5}", "steps of mwl, which is not among the estimators"),
        ("{td = 10}", "20", "steps must name the methods"),
        ('["wpdis", "td"]', '[["td"]]', "estimators must be names"),
        ('["wpdis", "td"]', '["td", "td"]', "has 'td' twice"),
        ("{td = 10}", "{tdd = 10}", "unknown estimator 'tdd'"),
        ('["CartPole-v1"]', '"CartPole-v1"', "tasks must be a list"),
        ("[main]", "[mian]", r"no section \[main\]"),
        ("[main]", "[main", "not a TOML file"),
    ],
)
def test_mistakes_are_named(tmp_path, old, new, said):
    assert old in PRESET
    with pytest.raises(SettingError, match=said):
        plan_of(tmp_path, PRESET.replace(old, new))


def test_other_mistakes_are_named(tmp_path):
    with pytest.raises(SettingError, match="neither a preset"):
        load_plan("standrad", MAIN)
    robustness = PRESET.replace("[main]", "[robustness]") + 'axes = ["discuont"]\n'
    with pytest.raises(SettingError, match="unknown axis discuont"):
        plan_of(tmp_path, robustness, ROBUSTNESS)
    tuning = '[tuning]\ntasks = "all"\nlogs = 1\nseeds = 1\nsteps = 10\nevery = 5\n'
    with pytest.raises(SettingError, match="ridges must be numbers"):
        plan_of(tmp_path, tuning + "ridges = [-1]\n", TUNING)
    with pytest.raises(SettingError, match="held_out must lie"):
        plan_of(tmp_path, tuning + "held_out = 1.0\n", TUNING)
    with pytest.raises(SettingError, match="learning_rates must be above 0"):
        plan_of(tmp_path, tuning + "learning_rates = [0]\n", TUNING)
    for wrong in ("[inf]", "[true]", '["a"]'):
        with pytest.raises(SettingError, match="ridges must be numbers"):
            plan_of(tmp_path, tuning + f"ridges = {wrong}\n", TUNING)
    with pytest.raises(SettingError, match="steps must be a whole number"):
        plan_of(tmp_path, tuning.replace("steps = 10", "steps = {td = 10}"), TUNING)
    with pytest.raises(SettingError, match=r"no section \[main\]"):
        plan_of(tmp_path, "main = 3")
    with pytest.raises(SettingError, match="nothing to run"):
        plan_of(tmp_path, PRESET.replace('"wpdis", ', "").replace("steps = {td = 10}", ""))
    (tmp_path / "latin.toml").write_bytes("# für\n".encode("latin-1"))
    with pytest.raises(SettingError, match="UTF-8"):
        load_plan(tmp_path / "latin.toml", MAIN)
    (tmp_path / "bom.toml").write_bytes(b"\xef\xbb\xbf" + PRESET.encode())
    assert load_plan(tmp_path / "bom.toml", MAIN).logs == 3
