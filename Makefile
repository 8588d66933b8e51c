# Two commands for a machine that has Python 3.11 to 3.13, make and pip's package index:
#   make results   set up .venv, run the default study and write its report
#   make test      set up .venv and run every test that this machine can run
# make results STUDY=config/mine.yaml runs another study; make smoke a small one.

STUDY ?= config/config.yaml
CORES ?= all
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
  $$p -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' 2> /dev/null \
  && { echo $$p; break; }; done)
BIN := .venv/bin
# The study's own results folder.
RESULTS = $(shell $(BIN)/python -c 'import sys, yaml; \
  print(yaml.safe_load(open(sys.argv[1])).get("results", "results"))' $(STUDY))

.PHONY: results smoke test lint benchmark requirements

results: .venv/run.stamp
	$(BIN)/snakemake --cores $(CORES) --configfile $(STUDY)
	$(BIN)/snakemake --configfile $(STUDY) --report "$(RESULTS)/report.html"

smoke:
	$(MAKE) results STUDY=config/smoke.yaml

test: .venv/test.stamp
	$(BIN)/python -m pytest -n auto --dist loadfile -ra --durations=15

benchmark: .venv/run.stamp
	$(BIN)/python tests/benchmark_job_cost.py

lint: .venv/test.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/snakefmt --check workflow
	$(BIN)/snakemake --lint

.venv/run.stamp: envs/requirements.txt
	@test -n "$(PYTHON)" || { echo "error: no Python 3.11 to 3.13 found; name one: make PYTHON=..."; exit 1; }
	@echo "setting up .venv: about two minutes"
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r $<
	@touch $@

.venv/test.stamp: envs/requirements-dev.txt .venv/run.stamp
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r $<
	@touch $@

# Pin again: needs uv on PATH.
requirements:
	cd envs && for name in requirements requirements-dev; do \
	  uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	    --no-annotate --no-header $$name.in -o $$name.txt; done
