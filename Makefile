# Two commands for a machine that has Python 3.11 to 3.13, make and pip's package index:
#   make results   set up .venv, run the default study and write its report
#   make test      set up .venv and run every test that this machine can run
# make results STUDY=config/mine.yaml runs another study; make smoke a small one.
# make slurm readies .venv to submit to Slurm (config/cluster.md); make test-slurm tests that on this machine.
# make benchmark measures what a job costs, then the engine beside what else could be called.

STUDY ?= config/config.yaml
CORES ?= all
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
  $$p -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' 2> /dev/null \
  && { echo $$p; break; }; done)
BIN := .venv/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-compile
COMPILE := $(BIN)/python -m compileall -q -j 0 .venv/lib > /dev/null || true  # pip takes one core
SNAKEMAKE := $(BIN)/python -m snakemake
export STUDY

.PHONY: results smoke test test-slurm slurm lint benchmark requirements pins

results: .venv/run.stamp
	@test -f "$$STUDY" || { echo "error: STUDY=$$STUDY: there is no such file"; exit 1; }
	@folder=$$($(BIN)/python workflow/study.py "$$STUDY") \
	&& $(SNAKEMAKE) --cores $(CORES) --configfile "$$STUDY" \
	&& $(SNAKEMAKE) --configfile "$$STUDY" --report "$$folder/report.html"

smoke:
	$(MAKE) results STUDY=config/smoke.yaml

test: .venv/test.stamp
	$(BIN)/python -m pytest -n auto --dist loadfile --no-loadscope-reorder -m "not cluster" -ra --durations=15
	@echo "left out: the tests on a Slurm cluster, which install one; make test-slurm runs them"

# Needs root; installs Debian's Slurm where there is none. Where there can be none, it says why, and
# is content; a Slurm that is installed and does not start is a failure.
test-slurm: .venv/test.stamp
	$(BIN)/python tests/slurm_cluster.py sinfo || test $$? = 77
	$(BIN)/python -m pytest -x -ra --durations=10 -m cluster tests/test_slurm.py

slurm: .venv/slurm.stamp

benchmark: .venv/test.stamp
	$(BIN)/python tests/benchmark_job_cost.py
	$(SNAKEMAKE) --cores $(CORES) benchmark --configfile "$$STUDY"

lint: .venv/test.stamp
	$(BIN)/python -m ruff check .
	$(BIN)/python -m ruff format --check .
	$(BIN)/snakefmt --check workflow
	$(SNAKEMAKE) --lint

.venv/run.stamp: envs/requirements.txt
	@test -n "$(PYTHON)" || { echo "error: no Python 3.11 to 3.13 found; name one: make PYTHON=..."; exit 1; }
	@echo "setting up .venv: about a minute"
	$(PYTHON) -m venv .venv
	@$(INSTALL) -r $< || { echo "error: pip could not install $<; is its index reachable?"; exit 1; }
	@$(COMPILE)
	@touch $@

# Without dependencies: the plugin asks for a newer numpy, for a report that nothing here asks for.
.venv/slurm.stamp: envs/slurm.txt .venv/run.stamp
	@$(INSTALL) --no-deps -r $< || { echo "error: pip could not install $<; is its index reachable?"; exit 1; }
	@$(COMPILE)
	@touch $@

.venv/test.stamp: envs/requirements-dev.txt envs/wheels.txt .venv/slurm.stamp
	@$(INSTALL) -r envs/wheels.txt -r $< || { echo "error: pip could not install $<; is its index reachable?"; exit 1; }
	@$(COMPILE)
	@touch $@

# Pin again: needs uv on PATH.
requirements:
	cd envs && for name in requirements wheels requirements-dev; do \
	  uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	    --no-annotate --no-header $$name.in -o $$name.txt || exit 1; done && \
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	  --no-annotate --no-header --override requirements.in slurm.in -o slurm.txt

# Pin the conda environments again: needs conda-forge, or RECORDS=, a folder of its repodata.
pins: .venv/run.stamp
	$(BIN)/python envs/deployment/pin.py $(if $(RECORDS),--records "$(RECORDS)")
