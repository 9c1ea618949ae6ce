"""Sphinx: MyST pages and the API from docstrings."""

from typing import Any

project = "Average-DICE"
author = "The Average-DICE founders"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.viewcode"]
html_theme = "furo"
html_title = "Average-DICE"
exclude_patterns = ["_build"]
myst_heading_anchors = 3
autodoc_typehints = "none"
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True, "exclude-members": "__init__"}


def escape_bars(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """The bar of π(a|s) is no substitution."""
    lines[:] = [line.replace("|", "\\|") if not line.startswith("    ") else line for line in lines]


def setup(app: Any) -> None:
    app.connect("autodoc-process-docstring", escape_bars)
