"""Notes: what a method assumed or what went wrong, as a code for programs and a sentence for people.

Programs compare codes and never search the text.
"""

from dataclasses import dataclass
from enum import StrEnum


class NoteCode(StrEnum):
    """What a note is about. The codes are stored in JSON files and result stores, so they do not change."""

    NOT_APPLICABLE = "not-applicable"  # the method needs something that the log or the policy lacks
    NO_INTERVAL = "no-interval"  # why there is a value without an interval
    BEHAVIOUR_VALUE = "behaviour-value"  # the value is that of the behaviour policy
    OTHER_SCALE = "other-scale"  # a number that must not be compared with values
    VALUE_RULE = "value-rule"  # how the value follows from the ratio
    TRUNCATION_IGNORED = "truncation-ignored"  # rewards after truncation are ignored
    TRUNCATION_HELD = "truncation-held"  # the weight after truncation is put on the last steps
    TRUNCATION_BY_CRITIC = "truncation-by-critic"  # learnt values replace the rewards after truncation
    TRUNCATION_STAYS = "truncation-stays"  # the weight after truncation stays at the last state
    MASS_OFF = "mass-off"  # the ratio sums to something far from 1
    LARGEST_RIDGE = "largest-ridge"  # cross-validation chose the largest ridge
    SHORT_TRAINING = "short-training"  # too few update steps for the target network
    NO_POLICY = "no-policy"  # only importance ratios were used, because there is no policy object
    TABLES = "tables"  # states repeat, so tables were used, too
    LOOKS_CATEGORICAL = "looks-categorical"  # an observation column may hold codes that are not declared
    SMOOTHED = "smoothed"  # the value is that of a smoothed policy, not of the deterministic one
    LESS_MEMORY = "less-memory"  # something was reduced to stay below the limit of memory
    BEHAVIOUR_ESTIMATED = "behaviour-estimated"  # how the probabilities of the logged actions were estimated
    BEHAVIOUR_FIXED = "behaviour-fixed"  # an interval that does not include the error of estimated probabilities
    POLICY_REMARK = "policy-remark"  # what the policy names and the log does not have
    IN_BLOCKS = "in-blocks"  # the log was read in blocks; what comes from a sample of its episodes
    UNSETTLED = "unsettled"  # learnt values at the bounds of the rewards did not converge: resamples may be wrong
    NO_RATIOS = "no-ratios"  # only learnt values were used, because there are no importance ratios


@dataclass(frozen=True)
class Note:
    """A code and a plain sentence without a full stop."""

    code: NoteCode
    text: str

    def __str__(self) -> str:
        return self.text
