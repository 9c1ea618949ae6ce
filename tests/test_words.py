"""Words of our own do not come back: the code, its messages and its help use the words of the field."""

import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from average_dice.cli.commands import app

ROOT = Path(__file__).parents[1]
SOURCES = sorted(path for path in (ROOT / "src").rglob("*") if path.suffix in (".py", ".html", ".toml"))
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


class Word(NamedTuple):
    """A pattern, what to write instead, and a text that the pattern must find."""

    pattern: str
    instead: str
    example: str


WORDS = (
    Word(r"\bcuts?\b|_cut\b", "truncation", "rewards beyond the cut"),
    Word(r"\b(dead|died|dies|deaths?|alive)\b", "terminated", "episodes that died"),
    Word(
        r"--(trained-)?draws\b|\b(bootstrap|trained)[ _]draws?\b|\bdraws? of (the )?episodes\b|\bclass Draw\b",
        "bootstrap resamples",
        "100 bootstrap draws",
    ),
    Word(r"\bslow cop(y|ies)\b", "target network", "its slow copy"),
    Word(r"\bnum_looks\b|\b(each|every|last|two|next) looks?\b", "checkpoint", "between two looks"),
    Word(r"\bsurpris(e|es|ed|ing)\b", "TD error", "the surprise of a row"),
    Word(r"\b(down|up)hill\b", "update step", "one step downhill"),
    Word(r"\bperceptrons?\b", "MLP", "a multilayer perceptron"),
    Word(r"\b(un)?watched\b", "censored or uncensored", "the share still watched"),
    Word(r"\bstands? (in )?for\b", "is, means or replaces", "what stands for the rest"),
    Word(r"\bleft standing\b", "remains", "what is left standing"),
    Word(r"\b(told|kept) apart\b|\btells? (\w+ ){1,4}apart\b", "no significant difference", "not to be told apart"),
    Word(r"\bfinds? (no )?fault\b", "all checks passed", "no rule finds fault"),
    Word(r"\bfor want of\b", "out of, for lack of", "for want of memory"),
    Word(r"\bmend(s|ed|ing)?\b", "correct", "Mend the rows"),
    Word(r"\b(nobody|whoever)\b", "the user, or the passive voice", "whoever runs it"),
    Word(r"\b(is|are|be) there (twice|(\w+ )?times)\b", "occurs twice, is repeated", "the row is there twice"),
    Word(r"\bof one's own\b", "your own", "a file of one's own"),
    Word(r"\bgives? up\b", "stops, fails", "the method gives up"),
    Word(r"\bso many\b", "this many, or the name of the number", "after so many steps"),
    Word(r"\bseed of everything\b", "random seed", "The seed of everything random."),
)

# Precise texts that are right although a pattern finds them.
ALLOWED = (
    r"deaths-as-truncations(-blurred)?",  # names of misleading logs, which stored results contain
    r"(every|each) (episode|column) is there \w+ times",  # words of docs/misleading.md, for these logs
)


def words_of_our_own(text: str) -> list[str]:
    """What is wrong, where, and what to write instead."""
    for allowed in ALLOWED:
        text = re.sub(allowed, "", text)
    found = []
    for number, line in enumerate(text.splitlines(), start=1):
        for word in WORDS:
            if match := re.search(word.pattern, line, re.IGNORECASE):
                found.append(f"line {number}: {match[0]!r}. Write: {word.instead}.")
    return found


@pytest.mark.parametrize("word", WORDS, ids=lambda word: word.instead)
def test_each_pattern_finds_its_example(word):
    assert words_of_our_own(word.example)


@pytest.mark.parametrize(
    "text",
    [
        "execute the shortcut",
        "Draws the figures of an analysis.",
        "actions drawn from π, num_draws of them",
        "surprisal = -log_prob",
        "look at `recommended_estimate.value`",
        "the standard deviation, for example",
    ],
)
def test_words_of_the_field_are_not_found(text):
    assert not words_of_our_own(text)


@pytest.mark.parametrize("path", [*SOURCES, *DOCUMENTS], ids=lambda path: str(path.relative_to(ROOT)))
def test_files_use_the_words_of_the_field(path):
    assert not words_of_our_own(path.read_text(encoding="utf-8"))


EVERY_HELP = """
from typer.testing import CliRunner
from average_dice.cli.commands import app
for name in (None, *(command.callback.__name__ for command in app.registered_commands)):
    print(CliRunner().invoke(app, [*([name] if name else []), "--help"], catch_exceptions=False).output)
"""


def test_help_uses_the_words_of_the_field():
    """In a process of its own: typer calls the commands' functions in ways that the type checks of tests refuse."""
    done = subprocess.run([sys.executable, "-c", EVERY_HELP], capture_output=True, text=True, check=True)
    assert all(f" {command.callback.__name__} [OPTIONS]" in done.stdout for command in app.registered_commands)
    assert not words_of_our_own(done.stdout)


@pytest.mark.parametrize("command", app.registered_commands, ids=lambda command: command.callback.__name__)
def test_help_starts_with_one_sentence_and_has_an_example(command):
    first, _, rest = command.callback.__doc__.partition("\n\n")
    assert re.fullmatch(r"[A-Z][a-z]+s [^\n]+\.", first)
    assert f"Example: `average-dice {command.callback.__name__}" in rest
