"""What is declared, what is pinned, and what the package holds."""

import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def pins(*names):
    """The pinned versions of requirement files, by canonical name."""
    lines = [line for name in names for line in (ROOT / "requirements" / name).read_text().splitlines()]
    pinned = [Requirement(line) for line in lines if line and not line.startswith(("#", "-r"))]
    return {canonicalize_name(one.name): next(iter(one.specifier)).version for one in pinned}


GROUPS = {
    "the core": (PROJECT["dependencies"], ("core.txt",)),
    "simulate": (PROJECT["optional-dependencies"]["simulate"], ("core.txt", "dev.txt")),
    "experiments": (PROJECT["optional-dependencies"]["experiments"], ("core.txt", "dev.txt")),
    "hdf5": (PROJECT["optional-dependencies"]["hdf5"], ("dev.txt",)),
    "minari": (PROJECT["optional-dependencies"]["minari"], ("dev.txt", "adapters.txt")),
    "train": (PROJECT["optional-dependencies"]["train"], ("core.txt", "dev.txt", "train.txt")),
    "estimate": (PROJECT["optional-dependencies"]["estimate"], ("core.txt", "dev.txt")),
    "large": (PROJECT["optional-dependencies"]["large"], ("dev.txt",)),
    "ray": (PROJECT["optional-dependencies"]["ray"], ("core.txt", "dev.txt", "ray.txt")),
}


@pytest.mark.parametrize("group", GROUPS)
def test_everything_declared_is_pinned_within_its_range(group):
    declared, files = GROUPS[group]
    pinned = pins(*files)
    for one in map(Requirement, declared):
        name = canonicalize_name(one.name)
        assert name == "average-dice" or pinned[name] in one.specifier, name


def test_every_extra_is_looked_at():
    assert set(GROUPS) == {"the core", *PROJECT["optional-dependencies"]}
