# Each target creates the virtual environment that it needs.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install --disable-pip-version-check --no-warn-script-location

.PHONY: test-nightly growth peers simultaneous-coverage planning boundary released-study fuzz clinic estimated-behaviour misleading refutation demo test test-wheel test-pythons try-pythons test-training test-adapters test-benchmark test-browser check bench docs exact-errors steps tables coverage screenshots clean help

help:            ## list the targets
	@grep -hE '^[a-z-]+: .*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/'

demo: $(VENV)/core            ## run the recommended estimator on the embedded logs
	$(BIN)/average-dice demo

test: $(VENV)/dev            ## run the tests, two at a time with one thread each
	NPROC=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadgroup -m "not slow"

test-training: $(VENV)/train            ## run the tests of training target policies, with PyTorch
	$(BIN)/python -m pytest tests/tasks/test_ppo.py

test-adapters: $(VENV)/adapters            ## run the tests with data sets and policies of other libraries, as Minari
	$(BIN)/python -m pytest tests/adapters

test-benchmark: $(VENV)/ray            ## run the slow tests and those of whole experiments, with Ray
	NPROC=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 -m "slow and not nightly" tests/data tests/estimators tests/inference tests/experiments/test_trust.py tests/test_resampling.py tests/test_misleading.py tests/test_memory.py tests/test_cli.py tests/test_planning.py tests/test_passes.py
	$(BIN)/python -m pytest tests/experiments/test_ray.py tests/test_ray_cluster.py tests/experiments/test_smoke.py tests/experiments/test_executors.py

test-nightly: $(VENV)/dev            ## run the slow tests that are left out of .ci/run
	NPROC=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 -m nightly tests/data tests/estimators tests/test_planning.py

test-browser: $(VENV)/browser            ## test the report in Chromium, which must be installed, with Playwright
	REQUIRE_BROWSER=1 $(BIN)/python -m pytest tests/report/test_browser.py

test-wheel: $(VENV)/core            ## build the wheel, and test it in an empty environment outside this folder
	$(BIN)/python tools/try_wheel.py

try-pythons: $(VENV)/core            ## test-wheel on every installed Python, with pinned and with newest versions
	$(BIN)/python tools/try_wheel.py --pythons all --newest

test-pythons: $(VENV)/core            ## try-pythons, with the tests of estimators and data on each (up to an hour)
	$(BIN)/python tools/try_wheel.py --pythons all --newest --tests

check: $(VENV)/dev            ## check style, types, imports and declared dependencies
	$(BIN)/deptry src
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/train            ## measure speed as ratios to peers in the same run, with PyTorch
	$(BIN)/python speed/training_and_closed_form.py
	$(BIN)/python speed/closed_forms.py
	$(BIN)/python speed/against_pytorch.py
	$(BIN)/python speed/main_slice.py
	$(BIN)/python speed/collection.py
	$(BIN)/python speed/bootstrap.py
	$(BIN)/python speed/actions.py
	$(BIN)/python speed/start_up.py

growth: $(VENV)/dev            ## measure time and memory up to 4 million rows, for docs/speed.md (hours; continues after an interruption)
	NPROC=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python speed/growth.py

peers: $(VENV)/train            ## measure time and errors of other libraries, those that are installed (half an hour)
	NPROC=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python speed/peers.py

docs: $(VENV)/dev            ## build the documentation into docs/_build
	$(BIN)/python -m sphinx -W -q -b html docs docs/_build

exact-errors: $(VENV)/dev            ## compute docs/exact_errors.md (minutes)
	$(BIN)/python tools/exact_errors.py

screenshots: $(VENV)/browser            ## make the screenshots of the report for the documentation
	$(BIN)/python tools/screenshots.py

coverage: $(VENV)/dev            ## compute docs/coverage.md (an hour and a half; continues after an interruption)
	$(BIN)/python tools/interval_coverage.py

simultaneous-coverage: $(VENV)/dev            ## compute the table of docs/comparing.md (an hour; continues after an interruption)
	$(BIN)/python tools/simultaneous_coverage.py

planning: $(VENV)/dev            ## compute the table of docs/planning.md (minutes; continues after an interruption)
	$(BIN)/python tools/planning.py

misleading: $(VENV)/dev            ## compute docs/misleading.md (half an hour; continues after an interruption)
	$(BIN)/python tools/misleading.py

refutation: $(VENV)/dev            ## compute docs/refutation.md (an hour; continues after an interruption)
	$(BIN)/python tools/refutation.py

clinic: $(VENV)/dev            ## compute docs/clinic.md (hours; continues after an interruption)
	$(BIN)/python tools/clinic.py

fuzz: $(VENV)/dev            ## feed 10,000 random and mutated files to every reader (minutes)
	$(BIN)/python tools/fuzz.py

estimated-behaviour: $(VENV)/dev            ## compute the tables of docs/estimated_behaviour.md (hours; continues after an interruption)
	$(BIN)/python tools/estimated_behaviour.py

released-study: $(VENV)/dev            ## compute the first table of docs/paper.md (a quarter of an hour; continues after an interruption)
	$(BIN)/python tools/released_study.py

boundary: $(VENV)/dev            ## compute the figure and the second table of docs/paper.md (minutes; continues after an interruption)
	$(BIN)/python tools/boundary.py

steps: $(VENV)/dev            ## compute the table of docs/recommended.md (minutes)
	$(BIN)/python tools/steps.py

tables: $(VENV)/dev            ## write the tables of estimators and rules in README.md and docs
	$(BIN)/python tools/estimator_tables.py
	$(BIN)/python tools/rule_tables.py

clean:            ## remove the virtual environment and the built documentation
	rm -rf $(VENV) docs/_build

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Python 3.11 or newer is needed. Run make PYTHON=python3.12, for example."; exit 1; }
	@echo "Creating a virtual environment in $(VENV) …"
	$(PYTHON) -m venv $(VENV)

$(VENV)/core: $(VENV)/bin/python requirements/core.txt pyproject.toml
	@echo "Installing the dependencies into $(VENV) (once; about a minute) …"
	$(INSTALL) -r requirements/core.txt
	$(INSTALL) --quiet --no-deps --no-build-isolation --editable .
	@touch $@

$(VENV)/dev: $(VENV)/core requirements/dev.txt
	@echo "Installing the development tools into $(VENV) (once; about a minute) …"
	$(INSTALL) -r requirements/dev.txt
	@touch $@

$(VENV)/train: $(VENV)/dev requirements/train.txt
	@echo "Installing PyTorch and Stable-Baselines3 …"
	$(INSTALL) -r requirements/train.txt
	@touch $@

$(VENV)/adapters: $(VENV)/train requirements/adapters.txt requirements/d3rlpy.txt
	@echo "Installing Minari, flax and d3rlpy …"
	$(INSTALL) -r requirements/adapters.txt
	$(INSTALL) --no-deps -r requirements/d3rlpy.txt
	@touch $@

$(VENV)/browser: $(VENV)/dev requirements/browser.txt
	@echo "Installing Playwright …"
	$(INSTALL) -r requirements/browser.txt
	@touch $@

$(VENV)/ray: $(VENV)/dev requirements/ray.txt
	@echo "Installing Ray …"
	$(INSTALL) -r requirements/ray.txt
	@touch $@
