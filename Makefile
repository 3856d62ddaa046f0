# Each target makes its own virtual environment first: with uv where it is present, else with venv and pip.
SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help demo test soak lint fix proto bench lock clean peers

BIN := .venv/bin
STAMP := .venv/.stamp
PYTHON := $(shell for p in python3.11 python3.12 python3.13 python3.14 python3; do \
	command -v $$p >/dev/null 2>&1 && $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
WORKERS ?= 2

help: ## what there is
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):[^#]*## /\1\t/' | expand -t 10

$(STAMP): pyproject.toml requirements.lock
	@[ -n "$(PYTHON)" ] || { echo "Counterfoil needs Python 3.11 or later, and none was found: install it first" >&2; exit 1; }
	@echo "making .venv with $(PYTHON) …"
	@if command -v uv >/dev/null 2>&1; then \
		uv venv -q --allow-existing --python $(PYTHON) .venv && \
		uv pip install -q --python $(BIN)/python -r requirements.lock && \
		uv pip install -q --python $(BIN)/python --no-deps -e .; \
	else \
		$(PYTHON) -m venv .venv && \
		$(BIN)/python -m pip install -q --disable-pip-version-check -r requirements.lock && \
		$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps -e .; \
	fi
	@touch $@

demo: $(STAMP) ## a scripted session, offline: reads, an edit, an approval, a rejected turn
	@$(BIN)/counterfoil demo

test: $(STAMP) peers ## the whole test suite
	@$(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal

soak: $(STAMP) peers ## the long form of the crash, fuzz and property tests
	@COUNTERFOIL_SOAK=1 $(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal --timeout 3600

peers: $(STAMP) # independent programs that the tests talk to, where node and a browser are present
	@if ! command -v npm >/dev/null 2>&1; then \
		echo "node is not installed: the tests against independent peers are skipped"; \
	elif ! [ tests/peers/node_modules/.package-lock.json -nt tests/peers/package-lock.json ]; then \
		echo "installing the peers of tests/peers …"; \
		(cd tests/peers && npm ci --silent --no-audit --no-fund && touch node_modules/.package-lock.json) || \
		echo "npm ci failed: the tests against independent peers are skipped"; \
	fi
	@if ! command -v chromium >/dev/null 2>&1; then \
		echo "chromium is not installed: the tests of pages in a browser are skipped"; \
	elif ! $(BIN)/python -c 'import playwright' 2>/dev/null; then \
		echo "installing what drives the browser …"; \
		$(BIN)/python -m pip install -q --disable-pip-version-check 'playwright>=1.49' || \
		echo "it can't be installed: the tests of pages in a browser are skipped"; \
	fi

lint: $(STAMP) ## ruff, mypy --strict, import-linter
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check -q .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

proto: $(STAMP) ## make src/counterfoil/api/v1 from proto/
	@$(BIN)/python scripts/generate_proto.py

fix: $(STAMP) ## let ruff mend what it can
	@$(BIN)/ruff check --fix -q . ; $(BIN)/ruff format -q .

bench: $(STAMP) ## every benchmark, side by side in one run
	@for script in appends shell turns scrollback terminal; do $(BIN)/python benchmarks/$$script.py || exit 1; done

lock: ## renew requirements.lock from pyproject.toml
	@rm -rf .venv/lock && $(PYTHON) -m venv .venv/lock && .venv/lock/bin/python -m pip install -q '.[dev]'
	@{ echo "# Made by 'make lock' from pyproject.toml"; \
	   .venv/lock/bin/python -m pip freeze --exclude counterfoil --exclude pip --exclude setuptools; } > requirements.lock
	@rm -rf .venv/lock

clean: ## remove what the targets made
	@rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache tests/peers/node_modules
