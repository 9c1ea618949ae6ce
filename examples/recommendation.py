"""Which of two new policies would get more clicks? Judged by a log of recommendations with their probabilities.

    python examples/recommendation.py

It writes clicks.csv: one row for each recommendation, with the user's features, one of eighty items, the probability
with which the old policy chose it, and whether it was clicked. Two models are trained on an older log and evaluated on
this one. (A file of the Open Bandit Dataset needs no names of columns: `ad.from_open_bandit("men.csv")`.)

The users are simulated, so the true click rates are known, and printed beside the estimates.
"""

from collections.abc import Callable
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.special import expit, softmax
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder

import average_dice as ad

FEATURES = {
    "age": ["18-29", "30-49", "50+"],
    "device": ["desktop", "phone", "tablet"],
    "membership": ["gold", "new", "regular"],
    "region": ["east", "north", "south", "west"],
}
KINDS = ["bag", "jacket", "shirt", "shoe"]
ITEMS = [f"{kind}-{number:02d}" for kind in KINDS for number in range(20)]

# The simulated shop: every kind of user, what is known of items, how likely each click is, and the old policy.
USERS = pd.DataFrame(list(product(*FEATURES.values())), columns=list(FEATURES))
ENCODER = OneHotEncoder(sparse_output=False).fit(USERS)
_shop = np.random.default_rng(0)
ITEM_FEATURES = np.column_stack([np.repeat(np.eye(len(KINDS)), 20, axis=0), _shop.uniform(-1, 1, len(ITEMS))])  # price
TASTE = _shop.normal(size=(ENCODER.transform(USERS).shape[1], ITEM_FEATURES.shape[1]))
LIKES = ENCODER.transform(USERS) @ TASTE @ ITEM_FEATURES.T + 0.3 * _shop.normal(size=len(ITEMS))  # [user, item]
CLICKS = expit(0.6 * LIKES - 4.2)
OLD_POLICY = softmax(0.3 * LIKES + 0.5 * _shop.normal(size=LIKES.shape), axis=1)


def main(folder: Path = Path("."), num_rows: int = 10_000, bootstrap: int = 100) -> ad.Comparison:
    """Trains two models on an older log, evaluates them on a new one, and writes the page."""
    older = recommendations(num_rows, seed=1)
    recommendations(num_rows, seed=2).to_csv(folder / "clicks.csv", index=False)

    # Every row is an episode of its own: one recommendation does not change the next.
    frame = pd.read_csv(folder / "clicks.csv")
    names = {"episode": None, "action": "item", "reward": "click", "behaviour_prob": "propensity"}
    log = ad.from_dataframe(frame, **names, observations=list(FEATURES), actions=ITEMS, action_features=ITEM_FEATURES)

    policies = {
        "clicked before": clicked_before(older),  # a scikit-learn classifier
        "click model": ad.as_policy(click_model(older), log, frame=True),  # a function
    }
    comparison = ad.compare(
        log, policies, 1.0, bootstrap=bootstrap, title="Which recommendations?", log_name="clicks.csv"
    )
    comparison.to_html(folder / "recommendation.html")

    print(comparison)
    print("\nTrue click rates, which only a simulator knows:")
    print(f"{'old policy':>15}: {(OLD_POLICY * CLICKS).sum(axis=1).mean():.4f}")
    for name, evaluation in comparison.evaluations.items():
        print(f"{name:>15}: {true_click_rate(policies[name], log):.4f}, estimated {evaluation.value:.4f}")
    return comparison


def recommendations(num_rows: int, seed: int) -> pd.DataFrame:
    """A log of the old policy, as a shop would have it."""
    generator = np.random.default_rng(seed)
    user = generator.integers(len(USERS), size=num_rows)
    item = (generator.random((num_rows, 1)) > OLD_POLICY[user].cumsum(axis=1)).sum(axis=1).clip(max=len(ITEMS) - 1)
    seen = {
        "item": np.array(ITEMS)[item],
        "propensity": OLD_POLICY[user, item],
        "click": (generator.random(num_rows) < CLICKS[user, item]).astype(int),
    }
    return USERS.iloc[user].reset_index(drop=True).assign(**seen)


def clicked_before(older: pd.DataFrame) -> Pipeline:
    """A classifier: which item did users like this one click? Its probabilities are the policy."""
    clicked = older[older["click"] == 1]
    model = make_pipeline(OneHotEncoder(), LogisticRegression(C=0.1, max_iter=500))
    return model.fit(clicked[list(FEATURES)], clicked["item"])


def click_model(older: pd.DataFrame) -> Callable[[pd.DataFrame], np.ndarray]:
    """A model of clicks by features of users and items. The policy prefers items with a high score."""
    shown = ITEM_FEATURES[pd.Index(ITEMS).get_indexer(older["item"])]
    users = ENCODER.transform(older[list(FEATURES)])
    pairs = (users[:, :, None] * shown[:, None, :]).reshape(len(older), -1)
    model = LogisticRegression(C=0.1, max_iter=500).fit(pairs, older["click"])
    weights = model.coef_.reshape(users.shape[1], -1)  # [feature of users, feature of items]

    def policy(frame: pd.DataFrame) -> np.ndarray:
        """The probability of each item for each row."""
        return softmax(1.5 * ENCODER.transform(frame) @ weights @ ITEM_FEATURES.T, axis=1)

    return policy


def true_click_rate(policy: object, log: ad.LoggedDataset) -> float:
    """The mean over every kind of user; all are equally frequent."""
    codes = np.array(list(product(*(range(len(values)) for values in FEATURES.values()))), float)  # as in the log
    generator = np.random.default_rng(0)  # not used for discrete actions
    items, weights = ad.as_policy(policy, log).weighted_actions(codes, num_draws=1, generator=generator)
    return float((weights * np.take_along_axis(CLICKS, items, axis=1)).sum(axis=1).mean())


if __name__ == "__main__":
    main()
