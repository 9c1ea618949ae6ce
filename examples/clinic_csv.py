"""From a CSV file with its own column names to a page: would a protocol for doses save more patients, and at what cost?

    python examples/clinic_csv.py

It writes records.csv and rules.json, as a hospital would have them. One command then does the same as the script:

    average-dice evaluate records.csv
        --columns episode=patient_id,time=day,action=dose,reward=outcome,terminated=discharged_or_died
        --observations hr,map,spo2,glucose,diabetic --policy rules.json --discount 1 --estimate-behaviour
        --rewards outcome,cost --by site --title "A protocol for doses" --report clinic_csv.html

With which probability clinicians chose a dose is not recorded, so it is estimated from the records. The patients are
simulated (`average_dice.testing.clinic`): the true answers are known, and printed beside the estimates.
"""

import csv
import json
from pathlib import Path

import numpy as np

import average_dice as ad
from average_dice.testing.clinic import SEDATIVE, VASOPRESSOR, VITAL_SIGNS, clinic

COLUMNS = {
    "episode": "patient_id",
    "time": "day",
    "action": "dose",
    "reward": "outcome",  # 1 at a discharge, −1 at a death, 0 on all other days
    "terminated": "discharged_or_died",
}
SIGNS = ["hr", "map", "spo2", "glucose", "diabetic"]
DOSES = [f"vaso{vasopressor}/sed{sedative}" for vasopressor, sedative in zip(VASOPRESSOR, SEDATIVE, strict=True)]
COST = 2.0 + 0.3 * VASOPRESSOR + 0.1 * SEDATIVE  # of a day, by dose
SITES = ("north", "south", "university")

# More vasopressor the lower the blood pressure: either of two doses. A little sedative if the heart is fast.
RULES = {
    "rules": [
        {"if": {"map": [None, 60], "hr": [100, None]}, "then": {"vaso2/sed1": 0.5, "vaso3/sed1": 0.5}},
        {"if": {"map": [None, 60]}, "then": {"vaso2/sed0": 0.5, "vaso3/sed0": 0.5}},
        {"if": {"map": [60, 80], "hr": [100, None]}, "then": {"vaso1/sed1": 0.5, "vaso2/sed1": 0.5}},
        {"if": {"map": [60, 80]}, "then": {"vaso1/sed0": 0.5, "vaso2/sed0": 0.5}},
        {"if": {"hr": [100, None]}, "then": "vaso0/sed1"},
    ],
    "otherwise": "vaso0/sed0",
}


def main(folder: Path = Path("."), num_patients: int = 300, bootstrap: int = 20) -> ad.Evaluation:
    """Writes the records and the rules, evaluates the rules, and writes the page."""
    write_records(folder / "records.csv", num_patients)
    (folder / "rules.json").write_text(json.dumps(RULES, indent=1), encoding="utf-8")

    records = ad.read_dataset(
        folder / "records.csv", columns=COLUMNS, observations=SIGNS, extra=["outcome", "cost", "site"]
    )
    evaluation = ad.evaluate(
        records,
        folder / "rules.json",
        discount=1.0,  # the value is then the share of discharges minus the share of deaths
        estimate_behaviour=True,
        rewards=["outcome", "cost"],
        by="site",
        bootstrap=bootstrap,
        title="A protocol for doses",
        policy_name="rules.json",
        log_name="records.csv",
    )
    evaluation.to_html(folder / "clinic_csv.html")

    print(evaluation)
    print("\nThe truth, which only a simulator knows:")
    truth = true_values(records)
    for name, answer in {**evaluation.rewards, **evaluation.groups}.items():
        print(f"{name:>10}: {truth[name]:6.3f}, estimated {answer.value:6.3f}")
    return evaluation


def write_records(path: Path, num_patients: int, seed: int = 1) -> None:
    """One row for each patient and day, with names and texts as they come out of a hospital's system."""
    stays = clinic().sample(num_patients, seed)
    generator = np.random.default_rng(seed)
    sites = [generator.choice(SITES, p=chances) for chances in chance_of_site(stays.observation[stays.starts])]
    with path.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["patient_id", "site", "day", *SIGNS, "dose", "cost", "outcome", "discharged_or_died"])
        for row in range(stays.num_transitions):
            patient, action = stays.episode[row], stays.action[row]
            *signs, diabetic = stays.observation[row]
            rows.writerow(
                [
                    f"P-{patient:05d}",
                    sites[patient],
                    stays.step[row] + 1,
                    *(f"{sign:.0f}" for sign in signs),
                    "yes" if diabetic else "no",
                    DOSES[action],
                    f"{COST[action]:.1f}",
                    f"{stays.reward[row]:.0f}",
                    "yes" if stays.terminated[row] else "no",
                ]
            )


def chance_of_site(admitted: np.ndarray) -> np.ndarray:
    """The university hospital gets most patients with very low blood pressure: [patient, site]."""
    is_low = admitted[:, [SIGNS.index("map")]] < 60
    return np.where(is_low, (0.2, 0.2, 0.6), (0.4, 0.4, 0.2))


def true_values(records: ad.LoggedDataset) -> dict[str, float]:
    """The exact value of the rules by each reward, and by outcome at each site."""
    simulator, rules = clinic(), ad.as_policy(RULES, records)
    # Every state of the simulator, shown as in the records: diabetic is 0 for no and 1 for yes.
    table = np.zeros((simulator.num_states, len(DOSES)))  # π(a|s)
    for action, dose in enumerate(records.names.actions):
        table[:, DOSES.index(dose)] = np.exp(rules.log_prob(VITAL_SIGNS.table, np.full(len(table), action)))
    outcome = simulator.state_values(table, discount=1.0)
    moves = np.einsum("sa,sat->st", table, simulator.transition)
    cost = np.linalg.solve(np.eye(len(table)) - moves, table @ COST)
    at_site = simulator.start[:, None] * chance_of_site(VITAL_SIGNS.table)
    by_site = outcome @ at_site / at_site.sum(axis=0)
    return {
        "outcome": simulator.start @ outcome,
        "cost": simulator.start @ cost,
        **dict(zip(SITES, by_site, strict=True)),
    }


if __name__ == "__main__":
    main()
