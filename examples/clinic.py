"""Would another way of dosing save more patients? Two policies, judged by the records of 1,000 patients alone.

    python examples/clinic.py

The patients are simulated (`average_dice.testing.clinic`), so the true answers are known and shown for comparison. For
your own records, make the LoggedDataset from your columns (docs/formats.md); the rest stays the same.
"""

from pathlib import Path

import average_dice as ad
from average_dice.testing.clinic import clinic

DISCOUNT = 1.0  # the value is then the share of discharges minus the share of fatal outcomes


def main(num_patients: int = 1_000, bootstrap: int = 100, folder: Path = Path(".")) -> dict[str, ad.Evaluation]:
    """Evaluates two policies, prints the results, and writes a page for each."""
    simulator = clinic()

    # What a hospital has: signs, doses and outcomes, and how likely the clinician was to give each dose.
    records = simulator.sample(num_patients, seed=1)
    print(f"{records.num_episodes:,} patients, {records.num_transitions:,} decisions.")

    found = {}
    for name in ("cautious", "greedy"):
        # A policy gives the probability of every action for the signs of a patient.
        table = simulator.targets[name]
        policy = simulator.policy(table)

        evaluation = ad.evaluate(records, policy, DISCOUNT, bootstrap=bootstrap)
        print(f"\nThe {name} policy (its true value is {simulator.value(table, DISCOUNT):.3f}):")
        print(evaluation)
        evaluation.to_html(folder / f"clinic_{name}.html")
        found[name] = evaluation
    return found


if __name__ == "__main__":
    main()
