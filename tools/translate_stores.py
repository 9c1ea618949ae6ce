"""Translates the result stores of an earlier commit to today's names, keys and format. No number changes.

    python tools/translate_stores.py [COMMIT]

Takes each store of results/standard as it was at the commit, renames what was renamed since, and gives every row the
key that its task, method, options, setting and log have in today's plan. Then reads the written file again and checks
that no row is lost and that every number is the same to the last digit. It does not read the stores of the working
tree, so it can run again after the next renaming.
"""

import json
import re
import subprocess
import sys
import tempfile
from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from average_dice.experiments.base import Experiment
from average_dice.experiments.jobs import Row
from average_dice.experiments.registry import EXPERIMENTS
from average_dice.experiments.store import ORDER, SCHEMA, Store
from average_dice.files import write_text_whole, written_whole
from average_dice.notes import NoteCode

ROOT = Path(__file__).parents[1]
FOLDER = "results/standard"
BEFORE = "8f70c1e"  # the last commit with stores of format 1

OPTIONS = {"draws": "bootstrap"}  # and the same fields of plans
DIAGNOSTICS = {"beyond_cut": "beyond_truncation"}
NOTES: tuple[tuple[str, NoteCode | None, str], ...] = (  # old text, code, text of today
    (r"not applicable, because (.*)", NoteCode.NOT_APPLICABLE, r"not applicable: \1"),
    (
        r"the behaviour policy's, not the target's",
        NoteCode.BEHAVIOUR_VALUE,
        "the value of the behaviour policy, not of the target policy",
    ),
    (r"(value flow-normalised|value not normalised)", NoteCode.VALUE_RULE, r"\1"),
    (
        r"nothing stands for what lies beyond the cut",
        NoteCode.TRUNCATION_IGNORED,
        "rewards after truncation are ignored",
    ),
    (r"labels stop at the cut", NoteCode.TRUNCATION_IGNORED, "labels end at the truncation"),
    (
        r"mass beyond the cut held on the last steps",
        NoteCode.TRUNCATION_HELD,
        "weight after truncation put on the last steps",
    ),
    (
        r"beyond the cut the critics stand for the rest",
        NoteCode.TRUNCATION_BY_CRITIC,
        "learnt values replace the rewards after truncation",
    ),
    (
        r"what crosses the cut by its trace stays where it was cut",
        NoteCode.TRUNCATION_STAYS,
        "the traces' weight after truncation stays at the last state",
    ),
    (
        r"the mass found is (\S+) where 1 is right: check both log-probabilities",
        NoteCode.MASS_OFF,
        r"the mass found is \1 instead of 1: check both log-probabilities",
    ),
    (
        r"the largest ridge was chosen: states hardly tell the products apart",
        NoteCode.LARGEST_RIDGE,
        "cross-validation chose the largest ridge: states hardly explain the products of ratios",
    ),
    (
        r"trained for (\S+) steps: its slow copy would need about (\S+) at this discount",
        NoteCode.SHORT_TRAINING,
        r"trained for \1 steps: its target network needs about \2 at this discount",
    ),
    # Methods no longer write this note: the diagnostics have the number, as `effective_episodes`.
    (r"few episodes carry the ratios: effectively \S+ of \S+", None, ""),
)
UNCHANGED = ("value", "truth", "truth_standard_error", "seconds", "curve_step", "curve_value", "curve_loss", "versions")


def at_commit(commit: str, path: str) -> bytes:
    """A file as it was at the commit."""
    return subprocess.run(["git", "show", f"{commit}:{path}"], cwd=ROOT, capture_output=True, check=True).stdout


def identity(row: Row) -> tuple[Any, ...]:
    """The run that a row belongs to, in today's names, without the seed."""
    options = {OPTIONS.get(name, name): value for name, value in json.loads(row["options"]).items()}
    setting = (row["discount"], row["transitions"], row["max_steps"], row["noise"])
    return row["task"], row["estimator"], json.dumps(options, sort_keys=True), setting, row["log"]


def keys_now(experiment: Experiment[Any], plan: Any) -> dict[tuple[Any, ...], str]:
    """The key of each identity in the current code."""
    found = {}
    for job in experiment.jobs(plan):
        setting = (job.setting.discount, job.setting.transitions, job.setting.max_steps, job.setting.noise)
        for one in job.each():
            (method,) = one.methods
            options = json.dumps(dict(method.options), sort_keys=True)
            found[job.task, method.estimator, options, setting, job.log] = one.key
    assert len(set(found.values())) == len(found)
    return found


def translated_notes(row: Row) -> tuple[list[str], list[str]]:
    """Texts and codes of today."""
    texts, codes = [], []
    for note in filter(None, (row["notes"] or "").split("; ")):
        code, text = translated_note(note)
        if code is None:
            number = json.loads(row["diagnostics"])["effective_episodes"]
            assert f"effectively {number:.1f} of " in note, row
        else:
            texts.append(text)
            codes.append(str(code))
    return texts, codes


def translated_note(note: str) -> tuple[NoteCode | None, str]:
    for old, code, new in NOTES:
        if match := re.fullmatch(old, note):
            return code, match.expand(new)
    sys.exit(f"unknown note {note!r}. Add it to NOTES.")


def translated(row: Row, keys: dict[tuple[Any, ...], str], configs: dict[str, str]) -> Row:
    """The row with the key and the names of today. Rows of plans that have grown since keep the hash of their plan."""
    texts, codes = translated_notes(row)
    return {
        **row,
        "unit": keys[identity(row)],
        "options": identity(row)[2],
        "notes": "; ".join(texts),
        "note_codes": codes,
        "diagnostics": renamed_diagnostics(row["diagnostics"]),
        "config": configs.get(row["config"], row["config"]),
    }


def renamed_diagnostics(text: str | None) -> str | None:
    """Renames in the text itself: no number is read and written again."""
    for old, new in DIAGNOSTICS.items():
        text = text and text.replace(f'"{old}": ', f'"{new}": ')
    return text


def check(before: list[Row], after: pa.Table, keys: dict[tuple[Any, ...], str]) -> None:
    """No row is lost or repeated, and all numbers are the same: `repr` differs for different floats."""
    found = {(row["unit"], row["seed"]): row for row in after.to_pylist()}
    assert len(found) == len(after) == len(before)
    assert {unit for unit, _ in found} == set(keys.values())
    for old in before:
        new = found[keys[identity(old)], old["seed"]]
        assert identity(new) == identity(old)
        for name in UNCHANGED:
            assert repr(new[name]) == repr(old[name]), (name, old)
        assert renamed_diagnostics(old["diagnostics"]) == new["diagnostics"]
        assert numbers(old["diagnostics"]) == numbers(new["diagnostics"]), old


def numbers(text: str | None) -> list[str]:
    """All numbers in a JSON text, as they are written there."""
    found: list[str] = []
    json.loads(text or "null", parse_float=found.append, parse_int=found.append, parse_constant=found.append)
    return found


def translate(experiment: Experiment[Any], commit: str) -> int:
    """Writes the store of one experiment and returns the number of its rows."""
    manifest = json.loads(at_commit(commit, f"{FOLDER}/{experiment.name}.json"))
    content = {OPTIONS.get(name, name): value for name, value in manifest["plan"].items()}
    plan = experiment.read_plan(content)
    before = pq.read_table(BytesIO(at_commit(commit, f"{FOLDER}/{experiment.name}.parquet"))).to_pylist()
    keys = keys_now(experiment, plan)
    with tempfile.TemporaryDirectory() as folder:
        store = experiment.store(Path(folder), plan, manifest["versions"])
        rows = [translated(row, keys, {manifest["config"]: store.config}) for row in before]
        write(store, pa.Table.from_pylist(rows, schema=SCHEMA).sort_by(ORDER))
    check(before, pq.read_table(ROOT / FOLDER / f"{experiment.name}.parquet", schema=SCHEMA), keys)
    return len(before)


def write(store: Store, rows: pa.Table) -> None:
    """Moves the manifest and writes the rows, in results/standard."""
    write_text_whole(ROOT / FOLDER / store.manifest.name, store.manifest.read_text(encoding="utf-8"))
    with written_whole(ROOT / FOLDER / store.gathered.name) as temporary:
        pq.write_table(rows, temporary, compression="zstd")


def main(commit: str = BEFORE) -> None:
    for experiment in EXPERIMENTS.values():
        count = translate(experiment, commit)
        print(f"{experiment.name}: {count:,} rows, every number as at {commit}")


if __name__ == "__main__":
    main(*sys.argv[1:])
