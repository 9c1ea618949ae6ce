"""Remedies that several rules share. A verdict gives each of them once."""

MORE_EPISODES = "log more episodes"
LONGER_EPISODES = "log longer episodes, or choose a smaller discount"
CLOSER_POLICY = "evaluate a policy closer to the logged behaviour, or log data with a policy closer to this one"
CHECK_PROBABILITIES = "check behaviour_log_prob and the policy: both must refer to the logged, unclipped action"
BETTER_ESTIMATES = "log behaviour_log_prob, or estimate it from more episodes, or with all that the actions depended on"
ERRORS_UNKNOWN = (
    f"{BETTER_ESTIMATES}. How much errors of the estimates add is not known here: they are too large, or the estimates "
    "come with the log (then estimate them in the same run: --estimate-behaviour, ad.estimate_behaviour)"
)
