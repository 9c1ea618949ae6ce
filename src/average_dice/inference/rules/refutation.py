"""Did any attempt to refute the estimate succeed? Only where refuters were asked for."""

from average_dice.inference.rules.base import Evidence, Limits, Rule, at_least


def _number(evidence: Evidence) -> float | None:
    """How many refuters failed."""
    return None if evidence.refutations is None else float(len(evidence.refutations.failed))


def _shows(evidence: Evidence) -> str:
    found = () if evidence.refutations is None else evidence.refutations.failed
    return ", ".join(one.name for one in found) or "none failed"


def _says(evidence: Evidence) -> str:
    found = () if evidence.refutations is None else evidence.refutations.failed
    return "; ".join(f"{one.sentence} (refuter {one.name})" for one in found)


REFUTATION = Rule(
    name="refutation",
    reads=("refutations",),
    description="refuters that failed",
    explanation="Each refuter asks the log a question to which the right answer is known. The answers should be right.",
    definition="Number of refuters that failed, where they were asked for (see [Refutation](refutation.md))",
    measure=_number,
    shows=_shows,
    limits=Limits(
        why="On sound logs a refuter now and then fails by chance, two at once hardly ever: docs/refutation.md",
        weak=at_least(1.0),
        not_supported=at_least(2.0),
    ),
    says=_says,
    remedy="follow up what the refuters say before the estimate is used",
)
