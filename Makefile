# `make demo` and `make test` set everything up by themselves: Python 3.11+, pip and make suffice.
PYTHON ?= python3
BIN := .venv/bin
RUN := $(BIN)/python -m
JOBS ?= 2

.PHONY: help demo test check lint types audit mutants campaign bench clean

help:
	@echo "make demo      a private release from start to finish, in ./dpublish-demo"
	@echo "make test      run the tests"
	@echo "make check     lint, types and tests, as continuous integration does"
	@echo "make audit     the slow statistical audits"
	@echo "make mutants   break the privacy of the code in many ways, one at a time: tests must fail"
	@echo "make campaign  20 minutes of kills, faults, races, hostile folders and fuzzed inputs"
	@echo "make bench     the speed benchmarks"

demo: .venv/runtime
	$(BIN)/dpublish demo dpublish-demo --fresh

test: .venv/development
	$(RUN) pytest -n $(JOBS) -m "not audit"

lint: .venv/development
	$(RUN) ruff check .
	$(RUN) ruff format --check .

types: .venv/development
	$(RUN) mypy

check: lint types test

audit: .venv/development
	$(RUN) pytest -n $(JOBS) -m audit

mutants: .venv/development
	PYTHONPATH=tests $(RUN) mutants --jobs $(JOBS)

campaign: .venv/development
	PYTHONPATH=tests $(RUN) campaign.run

bench: .venv/development
	for script in benchmarks/speed/*.py; do $(BIN)/python $$script || exit 1; done

.venv/runtime: requirements.txt pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "dpublish needs Python 3.11 or newer; set PYTHON=/path/to/python3")'
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(RUN) pip install --quiet --disable-pip-version-check -r requirements.txt
	$(RUN) pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	touch $@

.venv/development: requirements-dev.txt .venv/runtime
	$(RUN) pip install --quiet --disable-pip-version-check -r requirements-dev.txt
	touch $@

clean:
	rm -rf .venv dpublish-demo build .mypy_cache .pytest_cache .ruff_cache .hypothesis
