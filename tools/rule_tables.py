"""Writes the tables of diagnostics and rules in docs/trust.md from `RULES`: `python tools/rule_tables.py`."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from average_dice.files import write_text_whole
from average_dice.inference.rules import RULES, Limit

PAGE = Path(__file__).parents[1] / "docs" / "trust.md"


def tables() -> dict[str, str]:
    """The tables by the name of their markers."""
    return {
        "diagnostics": _table(
            ("diagnostic", "what it is", "good"),
            ((", ".join(f"`{name}`" for name in rule.reads), rule.definition, rule.good) for rule in RULES),
        ),
        "rules": _table(
            ("rule", "what it checks", "weak", "not supported", "why these limits"),
            (
                (
                    f"`{rule.name}`",
                    rule.description,
                    _fault(rule.limits.weak),
                    _fault(rule.limits.not_supported),
                    rule.limits.why,
                )
                for rule in RULES
                if rule.limits is not None
            ),
        ),
    }


def with_tables(text: str) -> str:
    """The page with each table between its markers, `<!-- name -->` and `<!-- end of name -->`."""
    for name, table in tables().items():
        start, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
        before, _, rest = text.partition(start)
        _, _, after = rest.partition(end)
        text = f"{before}{start}{table}{end}{after}"
    return text


def _fault(limit: Limit | None) -> str:
    return "" if limit is None else limit.fault


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [headings, ["---"] * len(headings), *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


if __name__ == "__main__":
    write_text_whole(PAGE, with_tables(PAGE.read_text(encoding="utf-8")))
