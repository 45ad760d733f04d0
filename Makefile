# `make demo` and `make test` set everything up by themselves: Python 3.11+, pip and make suffice.
PYTHON ?= python3
BIN := .venv/bin
RUN := $(BIN)/python -m
JOBS ?= 2
# Tests of one group, such as those of Spark, share a cluster and so run in one worker.
# Workers of the tests share the cores; threads of linear algebra within each would fight for them.
test audit coverage mutants campaign: export OPENBLAS_NUM_THREADS = 1
test audit coverage mutants campaign: export OMP_NUM_THREADS = 1

PINNED := requirements.txt requirements-dev.txt requirements-docs.txt requirements-s3.txt requirements-release.txt

# Where the pages on research documents go.
PAGES ?= docs/reproduce

.PHONY: help demo test check lint types docs site audit coverage mutants campaign bench peers reproduce pins sbom deps-audit s3-server dist package changelog clean

help:
	@echo "make demo      a private release from start to finish, in ./dpublish-demo"
	@echo "make test      run the tests"
	@echo "make check     lint, types and tests, as continuous integration does"
	@echo "make docs      run the examples of all pages, then build the site"
	@echo "make site      build the documentation, in ./site; open site/index.html"
	@echo "make audit     the slow statistical audits, and generated cases with fresh seeds"
	@echo "make coverage  the tests, and which lines of src they run"
	@echo "make mutants   break the privacy of the code in many ways, one at a time: tests must fail"
	@echo "make campaign  20 minutes of kills, faults, races, hostile folders and fuzzed inputs"
	@echo "make bench     the speed benchmarks, but for 100 million rows (benchmarks/speed/large.py)"
	@echo "make peers     install other packages, and compare them on public tables (over an hour)"
	@echo "make reproduce every figure and table of the research documents, short, with pages"
	@echo "make pins      write the hashes of all pinned files into the requirements files"
	@echo "make dist      build the wheel and the source archive, in ./dist"
	@echo "make package   check them, and install the wheel on every Python that is there"
	@echo "make changelog assemble CHANGELOG.md from changelog.d for this version"
	@echo "make sbom      the software bill of materials, in sbom.json"
	@echo "make s3-server  the S3-compatible server that tests of object stores start"
	@echo "make deps-audit  look the pins up among known vulnerabilities (needs the network)"

demo: .venv/runtime
	$(BIN)/dpublish demo dpublish-demo --fresh

test: .venv/development .venv/docs
	$(RUN) pytest -n $(JOBS) --dist loadgroup -m "not audit"

lint: .venv/development
	$(RUN) ruff check .
	$(RUN) ruff format --check .
	$(BIN)/codespell
	$(BIN)/python tools/check_prose.py

types: .venv/development
	$(RUN) mypy

check: lint types test

docs: .venv/development .venv/docs
	$(RUN) pytest -n $(JOBS) --dist loadgroup tests/docs tests/test_links.py tests/test_notebooks.py
	$(MAKE) site

# A warning, such as a link that leads nowhere, is an error.  NO_MKDOCS_2_WARNING: the theme is silent about its own future.
site: .venv/docs
	NO_MKDOCS_2_WARNING=1 $(RUN) mkdocs build --strict
	@echo "site/index.html"

audit: .venv/development
	$(RUN) pytest -n $(JOBS) -m audit
	HYPOTHESIS_PROFILE=fresh $(RUN) pytest -n $(JOBS) -m "hypothesis and not audit"

coverage: .venv/development
	$(RUN) pytest -n $(JOBS) --dist loadgroup -m "not audit" --cov=dpublish --cov-report=term:skip-covered

mutants: .venv/development
	PYTHONPATH=tests $(RUN) mutants --jobs $(JOBS)

campaign: .venv/development
	PYTHONPATH=tests $(RUN) campaign.run

bench: .venv/development
	for script in $(filter-out benchmarks/speed/large.py,$(wildcard benchmarks/speed/*.py)); do PYTHONPATH=tests $(BIN)/python $$script || exit 1; done

# In environments of their own: peers need other versions than we pin, and of each other.
PEERS := $(patsubst benchmarks/peers/requirements-%.txt,.venv-peers/%/ready,$(wildcard benchmarks/peers/requirements-*.txt))
peers: .venv/development $(PEERS)
	$(BIN)/python benchmarks/peers/compare.py

.venv-peers/%/ready: benchmarks/peers/requirements-%.txt
	test -x .venv-peers/$*/bin/python || $(PYTHON) -m venv .venv-peers/$*
	.venv-peers/$*/bin/python -m pip install --quiet --disable-pip-version-check -r $< && touch $@ \
		|| { rm -rf .venv-peers/$*; echo "$* cannot be installed and is left out" >&2; }

# Tables that are not part of the package are looked for in the folder that DPUBLISH_DATA names.
reproduce: .venv/runtime
	$(BIN)/dpublish experiment all --jobs $(JOBS) --pages $(PAGES) -o results/reproduce

pins: .venv/runtime
	$(BIN)/python tools/pin_hashes.py $(PINNED)

# The version stands in pyproject.toml alone.
dist: .venv-release/ready
	rm -rf dist build
	.venv-release/bin/python -m build --no-isolation --outdir dist . > dist.log 2>&1 || { cat dist.log; exit 1; }
	rm dist.log
	.venv-release/bin/python -m twine check --strict dist/*

# PYTHONS are tried as far as they are on this machine; each installs what the package needs anew.
PYTHONS ?= python3.11 python3.12 python3.13 python3.14
package: dist
	.venv-release/bin/python tools/check_package.py dist/*.whl --lowest --python $(PYTHONS)

changelog: .venv-release/ready
	.venv-release/bin/python -m towncrier build --yes --version $$(.venv-release/bin/python tools/check_package.py --version)

.venv-release/ready: requirements-release.txt
	test -x .venv-release/bin/python || $(PYTHON) -m venv .venv-release
	.venv-release/bin/python -m pip install --quiet --disable-pip-version-check -r requirements-release.txt
	touch $@

sbom: .venv/runtime
	$(BIN)/python tools/sbom.py requirements.txt > sbom.json.partial
	mv sbom.json.partial sbom.json

# In an environment of its own: the auditor is no dependency of ours.
deps-audit: .venv/runtime
	test -x .venv-audit/bin/pip-audit || { $(PYTHON) -m venv .venv-audit && .venv-audit/bin/python -m pip install --quiet --disable-pip-version-check pip-audit; } \
		|| { rm -rf .venv-audit; echo "pip-audit cannot be installed; is there a network?" >&2; exit 1; }
	$(BIN)/python tools/audit_pins.py .venv-audit/bin/pip-audit $(PINNED)

# In an environment of its own: it needs other versions than we pin.
s3-server: .venv-s3/ready

.venv-s3/ready: requirements-s3.txt
	test -x .venv-s3/bin/python || $(PYTHON) -m venv .venv-s3
	.venv-s3/bin/python -m pip install --quiet --disable-pip-version-check -r requirements-s3.txt
	touch $@

.venv/runtime: requirements.txt pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "dpublish needs Python 3.11 or newer; set PYTHON=/path/to/python3")'
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(RUN) pip install --quiet --disable-pip-version-check -r requirements.txt
	$(RUN) pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	touch $@

.venv/development: requirements-dev.txt .venv/runtime
	$(RUN) pip install --quiet --disable-pip-version-check -r requirements-dev.txt
	touch $@

.venv/docs: requirements-docs.txt .venv/runtime
	$(RUN) pip install --quiet --disable-pip-version-check -r requirements-docs.txt
	touch $@

clean:
	rm -rf site dist .venv .venv-audit .venv-peers .venv-release .venv-s3 sbom.json dpublish-demo build .mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage
