"""What can go wrong, as types. Every message says what was wrong, where, and what to do about it."""


class AverageDiceError(Exception):
    """The base of every error that this library raises on purpose."""


class DatasetError(AverageDiceError, ValueError):
    """A log that cannot be used as it is.

    ``problems`` holds one sentence for each thing that is wrong; the message is all of them.
    """

    def __init__(self, *problems: str) -> None:
        self.problems = problems
        super().__init__("\n".join(problems))


class PolicyError(AverageDiceError, ValueError):
    """A policy, or a policy file, that cannot be used as it is or does not fit the log."""


class SettingError(AverageDiceError, ValueError):
    """A setting outside its range, or a name that nothing answers to."""


class NotApplicable(AverageDiceError):
    """A method needs something that this problem does not have; the message says what and why."""
