# Every target sets up what it needs; the second run is fast.
.DEFAULT_GOAL := help
SHELL := bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: help demo test check docs docs-links reference control-plane helm cert-manager e2e e2e-again e2e-long record install-quick install-check install-long bench clean

help: ## show this list
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-16s %s\n", $$1, $$2}'

# setuptools warns of folders named as the package beside an editable one: here that folder is the package.
INSTALL_HERE = PYTHONWARNINGS='ignore:Editable installation' $(BIN)/pip install --quiet --disable-pip-version-check --editable

# Installed in editable mode: the tests import the package, never the working directory by accident.
$(VENV)/.installed: setup.cfg pyproject.toml
	@command -v $(PYTHON) >/dev/null || { echo "make: $(PYTHON) not found; Python >= 3.11 is needed (PYTHON=...)"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "make: Python >= 3.11 is needed, $(PYTHON) is older (PYTHON=...)"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --upgrade 'pip>=24'
	$(INSTALL_HERE) '.[dev]'
	@touch $@

demo: $(VENV)/.installed ## replay the incident on the embedded cluster, without and with the webhook
	@$(BIN)/tidb-ha-webhook demo

# Measured apart: hundred thousands of decisions, and slow under a tracer.
UNTRACED = tests/simulation tests/core/test_placement_exhaustive.py $(wildcard tests/core/test_*_properties.py)

test: $(VENV)/.installed ## run the tests (without a control plane)
	@# Four at a time on two cores: servers' tests wait more than they work.
	@$(BIN)/pytest -q -n 4 --dist loadfile --ignore=tests/e2e $(UNTRACED:%=--ignore=%) \
		--cov --cov-report=term --cov-fail-under=95
	@$(BIN)/pytest -q -n 2 --dist loadfile $(UNTRACED)

check: $(VENV)/.installed ## lint, type-check and check the import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

$(VENV)/.docs: $(VENV)/.installed
	$(INSTALL_HERE) '.[docs]'
	@touch $@

SPHINX = $(BIN)/sphinx-build -q -W --keep-going -n -c docs -d build/doctrees

docs: $(VENV)/.docs reference ## build the documentation into build/docs; a link that leads nowhere fails
	@$(SPHINX) -b html . build/docs
	@echo "build/docs/docs/index.html"

docs-links: $(VENV)/.docs ## ask the pages elsewhere that the documentation links to (needs a network)
	@$(SPHINX) -b linkcheck . build/links

reference: $(VENV)/.installed ## make docs/configuration.md from settings, commands and chart values
	@PYTHONPATH=tests $(BIN)/python -m documentation.reference

control-plane: ## build etcd, Kubernetes, kwok from Go modules for the end-to-end tests (6-15 min cold, then nothing)
	@tests/e2e/control_plane/build.sh

# Two control planes beside each other: the scenarios wait more than they work. Helm tells what the chart allows.
E2E := $(BIN)/pytest -q -n 2 --dist worksteal tests/e2e --ignore=tests/e2e/install

e2e: $(VENV)/.installed control-plane helm ## run the end-to-end tests on a real control plane, at least 5 rounds of each
	@$(E2E)

e2e-long: $(VENV)/.installed control-plane helm ## the same with the promised number of rounds (hours); the counts are at the end
	@E2E_ROUNDS=stated $(E2E)

record: $(VENV)/.installed control-plane ## record anew what a real API server sends to the webhook (tests/reviews)
	@PYTHONPATH=tests $(BIN)/python -m e2e.record

# Real time on a shared machine: what failed is looked at once more, alone. What fails again has failed.
e2e-again: $(VENV)/.installed control-plane helm ## run the end-to-end tests that failed last once more
	@$(E2E) -n 0 --last-failed --last-failed-no-failures none

helm: ## build Helm 3 and Helm 4 from Go modules (3 min cold, then nothing)
	@tests/e2e/control_plane/build.sh helm

INSTALL := tests/e2e/install
QUICK := $(addprefix $(INSTALL)/,test_floor.py test_install.py test_rendering.py \
	test_certificates.py::test_a_ca_is_changed_under_load_without_a_failed_call \
	test_upgrades.py::test_two_upgrades_fail_no_call_and_keep_the_bundle)

install-quick: $(VENV)/.installed control-plane helm ## install the chart by both Helms; a scenario of each kind
	@$(BIN)/pytest -q $(QUICK)

cert-manager: ## build cert-manager from Go modules (3 min cold, then nothing)
	@$(INSTALL)/cert_manager/build.sh

install-check: $(VENV)/.installed control-plane helm cert-manager ## install the chart by both Helms; every scenario, with a transcript
	@$(BIN)/pytest -q -s $(INSTALL)

install-long: $(VENV)/.installed control-plane helm cert-manager ## the same with the promised number of rounds; the counts are at the end
	@E2E_ROUNDS=stated $(BIN)/pytest -q -s $(INSTALL)

bench: $(VENV)/.installed control-plane ## print timings, as ratios within one run (PARTS="sets calls" for some of it)
	@PYTHONPATH=tests $(BIN)/python -m bench $(PARTS)

clean: ## remove what the targets above made
	rm -rf $(VENV) .cache .coverage* .hypothesis .mypy_cache .ruff_cache .pytest_cache *.egg-info build dist
