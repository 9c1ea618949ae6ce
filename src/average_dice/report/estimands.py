"""What the numbers are called, by the estimand: the same words in the terminal, on the page and in sentences.

Only with a discount between 0 and 1 are the value and the return two numbers.
"""

from dataclasses import dataclass

from average_dice.problem import Estimand


@dataclass(frozen=True)
class Words:
    """The name of the number, headings of the columns, and sentences.

    - `name`: in sentences; `heading`: of its column, in two lines if long; `return_heading`: None without a column.
    - `title`: of a table of values; `axis`: of a plot; both may contain `{discount}`.
    - `meaning`: continues "0.95 is the estimated …"; `unit`: follows a difference; `definition`: a whole sentence.
    """

    name: str
    heading: str
    return_heading: str | None
    title: str
    axis: str
    meaning: str
    unit: str
    definition: str

    @property
    def column(self) -> str:
        """The heading of the value in one line."""
        return self.heading.replace("\n", " ")

    @property
    def return_column(self) -> str | None:
        """The heading of the return in one line."""
        return None if self.return_heading is None else self.return_heading.replace("\n", " ")


WORDS = {
    Estimand.PER_STEP: Words(
        name="value",
        heading="value\nper step",
        return_heading="return\ndiscounted",
        title="J(π) at discount {discount:g}",
        axis="value J(π), a reward per step",
        meaning="value of the policy, a reward per step, at discount {discount:g}",
        unit=" per step",
        definition=(
            "The value is J(π) = (1 − γ) E[Σ γᵗ r], a reward per step; the return is E[Σ γᵗ r] = value / (1 − γ), the "
            "discounted sum of an episode."
        ),
    ),
    Estimand.TOTAL: Words(
        name="total reward",
        heading="total reward",
        return_heading=None,
        title="Expected total reward of an episode",
        axis="expected total reward of an episode",
        meaning="expected total reward of an episode of the policy",
        unit=" per episode",
        definition="The total reward is E[Σ r], the expected sum of all rewards of an episode, without a discount.",
    ),
    Estimand.ONE_STEP: Words(
        name="reward",
        heading="reward",
        return_heading=None,
        title="Expected reward of one step",
        axis="expected reward of one step",
        meaning="expected reward of one step of the policy",
        unit="",
        definition="The reward is E[r | s₀], what the policy's action in a start state is expected to earn.",
    ),
}


def words_of(estimand: str) -> Words:
    """The words for an estimand, as in the JSON form."""
    return WORDS[Estimand(estimand)]
