"""Sphinx: MyST pages and the API from docstrings. The build fails if a public name has no docstring."""

import inspect
import pkgutil
import sys
from collections.abc import Iterator
from functools import cached_property
from importlib import import_module
from types import FunctionType, ModuleType
from typing import Any

from sphinx.errors import ConfigError

import average_dice
from average_dice import Estimator

project = "Average-DICE"
author = "The Average-DICE founders"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.viewcode"]
html_theme = "furo"
html_title = "Average-DICE"
exclude_patterns = ["_build"]
myst_heading_anchors = 3
default_role = "code"
autodoc_typehints = "none"
autodoc_member_order = "bysource"
autodoc_inherit_docstrings = False
autodoc_default_options = {"members": True, "exclude-members": "__init__"}

METHODS = (FunctionType, staticmethod, classmethod, property, cached_property)


def public_modules() -> Iterator[ModuleType]:
    """Every module without an underscore in its path that can be imported without an extra."""
    yield average_dice
    for found in pkgutil.walk_packages(average_dice.__path__, "average_dice."):
        if "._" not in found.name and found.name != "average_dice.tasks.ppo":  # which needs PyTorch
            yield import_module(found.name)


def undocumented(module: ModuleType) -> Iterator[str]:
    """The module itself, and its public functions, classes and methods, if they have no docstring.

    A method may take its docstring from a class that it derives from.
    """
    if not module.__doc__:
        yield module.__name__
    for name, value in vars(module).items():
        if name.startswith("_") or getattr(value, "__module__", None) != module.__name__:
            continue
        path = f"{module.__name__}.{name}"
        if inspect.isfunction(value) and not value.__doc__:
            yield path
        if inspect.isclass(value):
            own = vars(value).get("__doc__")
            if not own or own.startswith(f"{name}("):  # what dataclass writes is no docstring
                yield path
            for method, function in vars(value).items():
                bases = (vars(base).get(method) for base in value.__mro__)
                if (
                    not method.startswith("_")
                    and isinstance(function, METHODS)
                    and not any(one.__doc__ for one in bases if one)
                ):
                    yield f"{path}.{method}"


def check_docstrings(app: Any = None) -> None:
    """Raises with the names of all that is public and has no docstring."""
    if missing := [name for module in public_modules() for name in undocumented(module)]:
        raise ConfigError(f"no docstring: {', '.join(missing)}. Add one line to each, or an underscore to its name.")


def adapt(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Docstrings as reStructuredText: an estimator has the equations of its module, and these are literal blocks."""
    if what == "class" and issubclass(obj, Estimator):
        lines += inspect.cleandoc(sys.modules[obj.__module__].__doc__ or "").splitlines()
    adapted: list[str] = []
    for line in lines:
        if line.startswith("    ") and adapted and not adapted[-1]:
            adapted += ["::", ""]
        adapted.append(line if line.startswith("    ") else line.replace("|", "\\|"))  # the bar of π(a|s)
    lines[:] = adapted


def setup(app: Any) -> None:
    """Called by Sphinx."""
    app.connect("builder-inited", check_docstrings)
    app.connect("autodoc-process-docstring", adapt)
