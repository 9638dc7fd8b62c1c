# Everything a developer does with this project, one line each: `make` prints the list.
# Needs python3 (3.11 or newer) with its venv module, and make; the rest is installed into .venv/.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

# A room is a top-level folder with an __init__.py, installed as volcano_py.<room> (see setup.py).
ROOMS := $(filter-out tests benchmarks examples docs,$(patsubst %/__init__.py,%,$(wildcard */__init__.py)))
PACKAGES := $(foreach room,$(ROOMS),-p volcano_py.$(room)) -p tests $(if $(wildcard benchmarks/*/*.py),-p benchmarks)

.PHONY: help setup shim controlplane lock test test-long lint format typecheck contracts crds manifest demo playground bench bench-e2e bench-shim test-gpu clean

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(STAMP) ## make .venv/ with every locked dependency and volcano-py itself; the quota library where there is a C compiler
	@if command -v $(or $(SHIM_CC),gcc) >/dev/null; then $(MAKE) shim; \
	  else echo "no C compiler ($(or $(SHIM_CC),gcc)): the quota library is not built" >&2; fi

# The room list is part of the stamp: a new top-level room needs a new editable install.
$(STAMP): requirements.lock pyproject.toml setup.py $(wildcard */__init__.py)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "volcano-py needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version). Try: make $(MAKECMDGOALS) PYTHON=python3.11" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null \
	  || { echo "python3 has no venv module. On Debian or Ubuntu: apt-get install python3-venv" >&2; exit 1; }
	@echo "setting up $(VENV)/, a minute or less" >&2
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --requirement requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

shim: ## the quota library, build/shim/libvgpu.so (needs gcc or another C compiler: SHIM_CC=clang)
	@command -v $(or $(SHIM_CC),gcc) >/dev/null \
	  || { echo "no C compiler ($(or $(SHIM_CC),gcc)): the quota library is not built. On Debian or Ubuntu: apt-get install gcc libc6-dev" >&2; exit 1; }
	@mkdir -p build/shim
	@$(if $(shell command -v flock),flock build/shim/.making) $(MAKE) -s -f shim/lib/shim.mk SHIM_PYTHON=$(PYTHON) SANITIZE=$(SANITIZE)

controlplane: ## etcd and a real kube-apiserver for the tests, in a cache folder
	@tests/controlplane/build.sh

lock: ## resolve pyproject.toml anew and write requirements.lock
	@scratch=$$(mktemp -d); trap 'rm -rf "$$scratch"' EXIT; \
	  $(PYTHON) -m venv "$$scratch"; \
	  "$$scratch/bin/python" -m pip install --quiet --disable-pip-version-check --upgrade pip; \
	  "$$scratch/bin/python" -m pip install --quiet --disable-pip-version-check --editable '.[dev,agent]'; \
	  "$$scratch/bin/python" -m pip freeze --all --exclude-editable --exclude pip \
	    | sed "s/^nvidia-cuda-runtime.*/&;sys_platform=='linux'/" > requirements.lock

WORKERS ?= 2

test: setup shim controlplane lint typecheck contracts ## lint, types, import contracts, and the fast tests
	@$(BIN)/python -m pytest -q -n $(WORKERS) --dist loadgroup

test-long: setup shim controlplane ## the tests marked `long`
	@$(BIN)/python -m pytest -q -m long

lint: setup ## ruff: rules and formatting
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --quiet --check . || { echo "not formatted: run 'make format'" >&2; exit 1; }

format: setup ## let ruff rewrite what it can
	@$(BIN)/ruff check --quiet --fix . || true
	@$(BIN)/ruff format --quiet .

typecheck: setup ## mypy --strict over every room and the tests
	@$(BIN)/mypy $(PACKAGES)

contracts: setup ## who may import whom
	@$(BIN)/lint-imports --no-logo

crds: setup ## write the CRD YAML from the models
	@$(BIN)/python -m volcano_py.crds.generate

manifest: setup ## write deploy/install.yaml and agent.yaml from their parts
	@$(BIN)/python -m volcano_py.deploy.generate

demo: setup ## a minute on a cluster without machines: a gang, shared cards, a borrow, a reclaim
	@$(BIN)/volcano-py demo

PLAYGROUND ?= build/playground

playground: setup ## such a cluster for kubectl, kept in build/playground, until Ctrl-C
	@$(BIN)/volcano-py playground --nodes 2 --gpus 4 --data $(PLAYGROUND)

bench: setup ## every benchmark shape, as a table and build/bench.json
	@$(BIN)/volcano-py bench --all

bench-e2e: setup controlplane ## binds, start and latency on a real kube-apiserver, and build/bench-e2e.json
	@$(BIN)/python -m benchmarks.e2e

SECONDS_EACH ?= 60

bench-shim: setup shim ## what the quota library costs per call, and 64 processes at once: build/bench-shim.json
	@$(BIN)/python -m benchmarks.shim --seconds $(SECONDS_EACH)

test-gpu: setup shim ## the quota library on a real card, with PyTorch where it is installed; skips elsewhere
	@$(BIN)/python -m pytest -q -rs tests/gpu

clean: ## remove what the other targets made
	@rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
