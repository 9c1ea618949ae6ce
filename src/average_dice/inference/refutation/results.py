"""What a refuter finds: passed, failed or not applicable, with a number, a limit and one sentence."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

Status = Literal["passed", "failed", "not applicable"]
PASSED: Status = "passed"
FAILED: Status = "failed"
NOT_APPLICABLE: Status = "not applicable"
MARKS = {PASSED: "✓", FAILED: "✗", NOT_APPLICABLE: "·"}


@dataclass(frozen=True)
class Refutation:
    """The result of one refuter.

    - `asks`: what it tests, as a question. `sentence`: the answer, or why there is none.
    - `number` in `unit`, which fails at `limit` and above; None if it is not applicable.
    """

    name: str
    asks: str
    status: Status
    number: float | None
    limit: float
    unit: str
    sentence: str


@dataclass(frozen=True)
class Refutations:
    """All refuters on one log, policy and method. `print` it, or look at `failed`."""

    estimator: str
    found: tuple[Refutation, ...]

    @property
    def failed(self) -> tuple[Refutation, ...]:
        """Those that failed."""
        return tuple(one for one in self.found if one.status == FAILED)

    def __iter__(self) -> Iterator[Refutation]:
        return iter(self.found)

    def __getitem__(self, name: str) -> Refutation:
        return next(one for one in self.found if one.name == name)

    def to_dict(self) -> list[dict[str, Any]]:
        """The JSON form: a list, one entry for each refuter."""
        return [{**vars(one), "mark": MARKS[one.status]} for one in self.found]

    def __str__(self) -> str:
        lines = [f"{MARKS[one.status]} {one.name}: {one.sentence}" for one in self.found]
        tried = sum(one.status != NOT_APPLICABLE for one in self.found)
        return "\n".join([f"{len(self.failed)} of {tried} refuters failed, for {self.estimator}", *lines])
