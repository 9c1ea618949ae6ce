"""Tests the installed package: every public name, the shipped data, and the main commands.

Run it with the Python of an environment that has only the package and its declared dependencies, from a folder outside
the checkout. It writes into the current folder.
"""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import average_dice as ad

COMMAND = Path(sys.executable).with_name("average-dice")
EXTRAS = ("gymnasium", "envpool", "stable_baselines3", "torch", "ray", "matplotlib", "sphinx", "pytest")


def run(*arguments: str, code: int = 0) -> str:
    print("$ average-dice", *arguments, flush=True)
    done = subprocess.run([COMMAND, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != code:
        sys.exit(f"{done.stdout}\nexit code {done.returncode}, expected {code}")
    return done.stdout


def main() -> None:
    package = Path(ad.__file__).parent
    print(f"average-dice {ad.__version__} on Python {sys.version.split()[0]}", flush=True)
    assert "site-packages" in package.parts, f"this is not an installed package: {package}"
    present = [name for name in EXTRAS if find_spec(name)]
    assert not present, f"the environment must have only the declared dependencies, but also has {present}"
    for name in ad.__all__:
        getattr(ad, name)

    from average_dice.demo import DEMOS, load_demo
    from average_dice.experiments.presets import load_plan
    from average_dice.experiments.registry import EXPERIMENTS
    from average_dice.tasks import TASKS, target_policy, training_record, truth_record

    for task in TASKS:
        for record in (target_policy, training_record, truth_record):
            assert record(task) is not None, task
    for experiment in EXPERIMENTS.values():
        for preset in ("smoke", "standard", "paper"):
            load_plan(preset, experiment)
    for name in DEMOS:
        load_demo(name)

    print(run("demo"))
    log, policy = str(package / "demo" / "CartPole-v1.parquet"), "CartPole-v1"
    run("validate", log)
    common = ("evaluate", log, "--policy", policy, "--discount", "0.95", "--bootstrap", "5")
    run(*common, "--json", "result.json", "--report", "page.html")
    run("report", "result.json", "--out", "again.html")
    assert Path("page.html").read_text(encoding="utf-8") == Path("again.html").read_text(encoding="utf-8")
    run("estimators")
    run("tasks")
    assert "average-dice[experiments]" in run("benchmark", "main", "--preset", "smoke", "--out", "results", code=2)
    print("Everything works as installed.")


if __name__ == "__main__":
    main()
