"""Continuous actions: π acts in the tail of μ, on a narrow ridge of the reward, or drives the state away."""

from average_dice.testing.misleading.linear_gaussian import Between, GaussianActions, Linear, LinearGaussianMDP, Square
from average_dice.testing.misleading.log import MisleadingLog, from_process

LOGS = (
    MisleadingLog(
        "far-in-the-tail",
        "π acts two standard deviations away from μ, where the reward drops",
        from_process(
            LinearGaussianMDP(
                GaussianActions(2.0, 0.0, 0.5),
                GaussianActions(0.0),
                of_action=(Linear(1.0), Between(-8.0, 2.5)),
                push=0.0,
            ),
            200,
        ),
    ),
    MisleadingLog(
        "nearly-deterministic",
        "π hardly varies, on a narrow ridge of the reward",
        from_process(
            LinearGaussianMDP(
                GaussianActions(0.55, 0.0, 0.02),
                GaussianActions(0.0),
                of_action=(Between(5.0, 0.5, 0.6),),
                push=0.0,
            ),
            200,
        ),
    ),
    MisleadingLog(
        "narrow-ridge",
        "a ridge of the reward is narrower than any smooth critic, and likelier under π than under μ",
        from_process(
            LinearGaussianMDP(
                GaussianActions(0.5, 0.0, 0.3),
                GaussianActions(0.0, 0.0, 0.6),
                of_action=(Between(5.0, 0.45, 0.55),),
            ),
            200,
        ),
    ),
    MisleadingLog(
        "slow-drift",
        "actions overlap well, but step by step π reaches states that μ never visits, where the reward drops",
        from_process(
            LinearGaussianMDP(
                GaussianActions(0.35, 0.0, 0.5),
                GaussianActions(0.0, 0.0, 0.5),
                of_state=(Linear(1.0), Between(-10.0, 1.6)),
                keep=0.9,
                push=0.6,
                noise=0.05,
                start=(0.0, 0.1),
            ),
            200,
        ),
    ),
    MisleadingLog(
        "unstable-loop",
        "π makes the state grow, μ does not; the cost is the square of the state",
        from_process(
            LinearGaussianMDP(
                GaussianActions(0.0, 0.4, 0.3),
                GaussianActions(0.0, 0.0, 0.3),
                of_state=(Square(-1.0),),
                keep=0.85,
                push=0.45,
                noise=0.1,
            ),
            200,
        ),
    ),
    MisleadingLog(
        "rare-cliff",
        "the reward drops in states that μ hardly ever visits and π sometimes does",
        from_process(
            LinearGaussianMDP(
                GaussianActions(0.3, 0.0, 0.5),
                GaussianActions(0.0, 0.0, 0.5),
                of_state=(Between(-50.0, 1.0),),
                keep=0.8,
                push=0.3,
                noise=0.1,
                start=(0.0, 0.1),
            ),
            100,
        ),
    ),
)
