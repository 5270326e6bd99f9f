# Every target sets up what it needs: `make test` on a fresh clone is enough. PYTHON=/path/to/python chooses the Python.
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
BENCH := .venv-bench
PYTEST := $(BIN)/python -m pytest

.DEFAULT_GOAL := help
.PHONY: help setup browser ready check test test-all coverage lint format bench proof sbc verdict mutants report gallery docs release clean

help: ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-9s %s\n", $$1, $$2}'

setup: $(STAMP) ## Create .venv and install the pinned versions

$(STAMP): pyproject.toml constraints.txt .ci/find-python
	@python=$$(PYTHON="$(PYTHON)" .ci/find-python) && echo "Setting up $(VENV) with $$python" && "$$python" -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	@touch $@

browser:
	@.ci/install-chromium

ready: # the environment and the browser, side by side
	@$(MAKE) --no-print-directory --jobs=2 $(STAMP) browser

test: ready ## Run the tests (all but those marked slow)
	$(PYTEST) --numprocesses 2

test-all: ready ## Run all tests, the slow ones too
	$(PYTEST) --numprocesses 2 -m "slow or not slow"

check: lint test ## Lint and tests: what CI runs

coverage: ready ## Measure line and branch coverage of the tests (all but those marked slow)
	$(PYTEST) --numprocesses 2 --cov=bayes_gda --cov-branch --cov-report=term:skip-covered

lint: $(STAMP) ## Check format, style and types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: $(STAMP) ## Format the code and mend what ruff can mend
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# The benchmarks measure against packages that the tests must not see: PyMC takes nutpie by itself where it finds it.
$(BENCH)/.installed: pyproject.toml constraints.txt .ci/find-python
	@python=$$(PYTHON="$(PYTHON)" .ci/find-python) && echo "Setting up $(BENCH) with $$python" && "$$python" -m venv --clear $(BENCH)
	$(BENCH)/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev,bench]'
	@touch $@

bench: $(BENCH)/.installed ## Measure speed against other packages: reports/benchmarks
	PYTHONPATH=tests $(BENCH)/bin/python -m benchmarks

sbc: $(STAMP) ## Simulation-based calibration of every model by every method: reports/proof (resumable)
	PYTHONPATH=tests $(BIN)/python -m proof.sbc

verdict: $(STAMP) ## How often verdicts are wrong, on random regressions with a sampled truth: reports/proof (resumable)
	PYTHONPATH=tests $(BIN)/python -m proof.verdict

proof: sbc ## The same, with coverage, calibration on real data and learning curves (resumable)
	PYTHONPATH=tests $(BIN)/python -m proof.calibration
	PYTHONPATH=tests $(BIN)/python -m proof.page

mutants: $(STAMP) ## Put small faults into the numerical core and see whether a test fails: .mutants (resumable)
	PYTHONPATH=tests $(BIN)/python -m mutants --part 2/2 & PYTHONPATH=tests $(BIN)/python -m mutants --part 1/2; wait
	PYTHONPATH=tests $(BIN)/python -m mutants --page

report: $(STAMP) ## Write the example report, reports/pima/index.html
	$(BIN)/bayes-gda report example:pima --out reports/pima

gallery: $(STAMP) ## Write all example reports, the textbook's figures and their index page
	$(BIN)/python -m bayes_gda.reporting.gallery reports
	$(BIN)/python -m bayes_gda.teaching reports/textbook

# The same environment, and what the pages are built with; the tests do not need it.
$(VENV)/.docs: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev,docs]'
	@touch $@

docs: $(VENV)/.docs ## Build the documentation, docs/_build/html; tutorials and examples are run, links are checked
	$(BIN)/python docs/check_examples.py
	$(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet -b html docs docs/_build/html
	$(BIN)/python docs/check_links.py docs/_build/html
	@echo "Open docs/_build/html/index.html"

# Builds and checks; publishing and tagging are left to people.
release: $(STAMP) ## Build wheel and sdist, check both, install the wheel into a fresh environment and try it
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev,release]'
	rm -rf dist build
	$(BIN)/python .ci/stage-release build/release $(URL)
	$(BIN)/python -m build --no-isolation --outdir dist build/release
	$(BIN)/python -m twine check --strict dist/*
	.ci/check-release $(BIN)/python dist
	@echo "Built and checked; nothing was published:" && ls dist

clean: ## Remove the environment and what tools leave behind
	rm -rf $(VENV) $(BENCH) docs/_build docs/reference/generated docs/jupyter_execute build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .benchmarks
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
