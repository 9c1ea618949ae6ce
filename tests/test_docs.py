"""The documentation: tables from the registry, a guide whose code runs, and no public name without a docstring."""

import re
import runpy
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

import average_dice as ad
from average_dice.estimators import REGISTRY, Entry
from average_dice.testing.cases import default_case

ROOT = Path(__file__).parents[1]
API = (ROOT / "docs" / "api.md").read_text()
GUIDE = (ROOT / "docs" / "add_an_estimator.md").read_text()
NOT_EXPORTED = {"inference", "experiments"}  # their names are in their modules
EXPORTING = [name for name in ad._MODULES if name not in NOT_EXPORTED] + ["inference.rules", "testing.misleading"]


@pytest.fixture(scope="module")
def tables():
    return runpy.run_path(str(ROOT / "tools" / "estimator_tables.py"))


@pytest.fixture(scope="module")
def conf():
    return runpy.run_path(str(ROOT / "docs" / "conf.py"))


@pytest.fixture(scope="module")
def guide():
    """The names that the code of the guide defines."""
    names = {"__name__": "guide"}
    for block in re.findall(r"```python\n(.*?)```", GUIDE, flags=re.DOTALL):
        exec(block, names)
    return names


def test_the_tables_of_estimators_are_those_of_the_registry(tables):
    for page, table in tables["PAGES"].items():
        text = page.read_text()
        assert text == tables["with_table"](text, table()), f"{page.name} differs from the registry: run `make tables`."


def test_an_estimator_that_is_added_changes_the_tables(tables, guide, monkeypatch):
    (entry,) = guide["entry"].values()
    monkeypatch.setitem(REGISTRY, "made-up", entry)
    for page, table in tables["PAGES"].items():
        assert "| `made-up` |" in table()
        assert page.read_text() != tables["with_table"](page.read_text(), table())


def test_every_estimator_has_a_description_of_its_own(tables):
    found = [tables["description"](name) for name in REGISTRY]
    assert all(found)
    assert len(set(found)) == len(found)


def test_the_guide_runs(guide):
    method, problem, mdp = guide["ControlledIS"](), guide["problem"], guide["mdp"]
    assert set(guide["evaluation"].estimates) == {"mine", "fqe"}
    assert guide["evaluation"].estimates["mine"].interval is not None
    plain = ad.estimators.ImportanceSampling.per_decision().fit(problem, key=guide["jax"].random.key(0))
    without = guide["ControlledIS"](strength=0.0).fit(problem, key=guide["jax"].random.key(0))
    assert without.value == pytest.approx(plain.value, rel=1e-12)
    entry = guide["entry"]["controlled-is"]
    assert isinstance(entry, Entry)
    assert default_case(entry).method == method
    assert default_case(entry).estimates == "truncated"
    assert guide["first"].history.value[-1] == guide["first"].value
    assert abs(guide["first"].value - mdp.value_to_truncation) < 0.05
    assert guide["log"].sha256 == guide["data"].sha256


def test_the_trained_method_of_the_guide_refits_to_resamples(guide):
    problem, key = guide["problem"], guide["jax"].random.key(0)
    resamples = [guide["Resample"].of(problem, guide["np"].arange(20)), guide["Resample"].everything(problem)]
    few, whole = guide["StartValueNetwork"](num_steps=50).prepare(problem, key=key).refit(resamples)
    assert whole.value == pytest.approx(guide["StartValueNetwork"](num_steps=50).fit(problem, key=key).value, rel=1e-3)
    assert few.value != whole.value


def test_everything_public_has_a_docstring(conf):
    conf["check_docstrings"]()


def test_a_public_name_without_a_docstring_is_found(conf):
    module = ModuleType("made_up", "A module.")
    source = '''
from dataclasses import dataclass
from average_dice import Estimator
def documented():
    """Something."""
def undocumented(): pass
def _private(): pass
@dataclass
class Record:
    number: int
class Mine(Estimator):
    """A method."""
    def prepare(self, problem, *, key): pass
    @property
    def other(self): pass
'''
    exec(source, vars(module) | {"__name__": "made_up"}, names := {})
    vars(module).update(names)
    assert set(conf["undocumented"](module)) == {"made_up.undocumented", "made_up.Record", "made_up.Mine.other"}


@pytest.mark.parametrize("path", ["", *(f".{name}" for name in EXPORTING)])
def test_the_api_page_has_every_public_name(path):
    module = import_module(f"average_dice{path}")
    public = getattr(module, "__all__", None) or [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__
    ]
    documented = set(re.findall(r"^\.\. [a-z:]+:: average_dice\.(\S+)$", API, flags=re.MULTILINE))
    names = {name for name in public if not isinstance(getattr(module, name), ModuleType)}
    short = f"{path}.".removeprefix(".")
    missing = {name for name in names if name not in documented and short + name not in documented}
    assert not missing, f"docs/api.md lacks {', '.join(sorted(missing))} of {module.__name__}."


@pytest.mark.parametrize("name", ["comparing", "planning"])
def test_the_code_of_the_page_runs(name, tmp_path, monkeypatch):
    page = (ROOT / "docs" / f"{name}.md").read_text()
    monkeypatch.chdir(tmp_path)
    names = {"__name__": name}
    for block in re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL):
        exec(block, names)
    assert len(list(tmp_path.glob("*.html"))) == 1
