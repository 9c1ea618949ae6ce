"""What a policy says about itself and the log, such as categories that it names and the log does not have."""

from typing import Any


def remarks_of(policy: Any) -> tuple[str, ...]:
    """Sentences without a full stop; none for most policies."""
    seen = getattr(policy, "policy", policy)  # a policy that does not see the step holds the one that does
    return tuple(getattr(getattr(seen, "logits", None), "notes", ()))
