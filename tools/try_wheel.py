"""Builds the sdist and the wheel, installs the wheel into empty environments outside the checkout, and tests it there.

python tools/try_wheel.py                           this Python, pinned versions
python tools/try_wheel.py --pythons all --newest    every Python here, pinned and newest versions
python tools/try_wheel.py --pythons all --newest --tests    and the tests of estimators and data on each
"""

import argparse
import os
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from pathlib import Path
from shutil import which

ROOT = Path(__file__).parents[1]
SUPPORTED = ("3.11", "3.12", "3.13")
TEST_TOOLS = ("pytest", "pytest-xdist", "hypothesis", "beartype")
TESTS = ("tests/estimators", "tests/data")


def run(*command: str | Path, cwd: Path = ROOT, **variables: str) -> str:
    """Runs a command without the Python settings of this environment. Exits if it fails."""
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run(
        command, cwd=cwd, env=environment | variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    if done.returncode:
        sys.exit(f"{done.stdout}\nfailed: {' '.join(map(str, command))}")
    return done.stdout


def build(folder: Path) -> Path:
    """The wheel. It must contain every tracked file of the package, and equal the wheel built from the sdist."""
    run(sys.executable, "-m", "hatchling", "build", "--directory", folder / "direct")
    (wheel,) = (folder / "direct").glob("*.whl")
    (sdist,) = (folder / "direct").glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder / "unpacked", filter="data")
    (source,) = (folder / "unpacked").iterdir()
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "--directory", folder / "again", cwd=source)
    (again,) = (folder / "again").glob("*.whl")
    held, held_again = (set(zipfile.ZipFile(path).namelist()) for path in (wheel, again))
    if held != held_again:
        sys.exit(f"the wheel built from the sdist differs in these files: {sorted(held ^ held_again)}")
    tracked = run("git", "ls-files", "src/average_dice").split()
    if missing := [name for name in tracked if name.removeprefix("src/") not in held]:
        sys.exit(f"not in the wheel: {missing}")
    return wheel


def find_pythons() -> dict[str, Path]:
    """Working interpreters by version, also those of pyenv that are not on the path."""
    found = {}
    for version in SUPPORTED:
        named = which(f"python{version}")
        of_pyenv = sorted((Path.home() / ".pyenv" / "versions").glob(f"{version}.*/bin/python"))
        for candidate in [*([Path(named)] if named else []), *of_pyenv]:
            if subprocess.run([candidate, "-c", "import venv"], capture_output=True, check=False).returncode == 0:
                found[version] = candidate
                break
    return found


def install(python: Path, wheel: Path, folder: Path, newest: bool, extras: tuple[str, ...] = ()) -> Path:
    """Makes an environment with the wheel, its dependencies and `extras`. Returns its Python."""
    run(python, "-m", "venv", folder)
    pins = () if newest else ("--constraint", ROOT / "requirements" / "dev.txt")
    inside = folder / "bin" / "python"
    run(inside, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *pins, wheel, *extras)
    return inside


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pythons", choices=["this", "all"], default="this")
    parser.add_argument("--newest", action="store_true", help="also test with the newest allowed versions")
    parser.add_argument("--tests", action="store_true", help="also run the tests of estimators and data")
    options = parser.parse_args()
    pythons = find_pythons() if options.pythons == "all" else {"this": Path(sys.executable)}
    if absent := [version for version in SUPPORTED if version not in pythons and options.pythons == "all"]:
        print(f"not on this machine: Python {', '.join(absent)}")
    with tempfile.TemporaryDirectory(prefix="average-dice-") as name:
        folder = Path(name)
        wheel = build(folder)
        for version, python in pythons.items():
            for newest in (False, True) if options.newest else (False,):
                start = time.monotonic()
                place = folder / f"{version}-{'newest' if newest else 'pinned'}"
                place.mkdir()
                inside = install(python, wheel, place / "env", newest)
                shown = run(inside, ROOT / "tools" / "try_installed.py", cwd=place)
                jax = run(inside, "-c", "import jax, numpy; print('jax', jax.__version__, 'numpy', numpy.__version__)")
                print(f"{place.name}: works, {time.monotonic() - start:.0f} s, {jax.strip()}", flush=True)
                if len(pythons) == 1:
                    print(shown)
                if options.tests:
                    inside = install(python, wheel, place / "tests", newest, TEST_TOOLS)
                    limits = {"NPROC": "1", "OPENBLAS_NUM_THREADS": "1"}
                    arguments = ("-m", "pytest", "-q", "-n", "2", "-m", "not slow", *TESTS)
                    print(place.name, run(inside, *arguments, **limits).strip().splitlines()[-1], flush=True)


if __name__ == "__main__":
    main()
