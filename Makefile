# The two commands are `make demo` and `make test`; each sets up what it needs. Nothing outside the checkout is
# written but the caches of pip and uv. KEEP=1 leaves the demo running; PYTHON names an interpreter.

SHELL := /bin/sh
.DEFAULT_GOAL := help
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: help install demo test check bench bench-detect bench-peers bench-boundary docs fmt clean test-crash test-clients test-memory-servers test-sdks test-captures test-leaks test-reload

help:
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1	\2/p' $(MAKEFILE_LIST)

install: $(STAMP) ## the environment only: .venv with .venv/bin/egress

$(STAMP): requirements.lock pyproject.toml tools/setup.sh tools/find-python.sh
	sh tools/setup.sh $(VENV)
	@touch $@

demo: $(STAMP) ## an agent's requests, end to end on this machine; KEEP=1 leaves it running
	$(BIN)/egress demo $(if $(KEEP),--keep)

test: $(STAMP) ## every test that needs no special machine
	$(BIN)/python -m pytest --ignore=tests/clients --ignore=tests/sdks --ignore=tests/memory_servers --ignore=tests/leaks -m "not slow" $(PYTEST_ARGS)

check: $(STAMP) ## format, lint, types, import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(STAMP) ## what a request costs
	$(BIN)/python -m bench

bench-detect: $(STAMP) ## detection alone: speed, peers, start, crafted text, findings on benign traffic
	$(BIN)/python -m bench detect

bench-peers: $(STAMP) ## install the scanners that `make bench-detect` measures beside the gateway, each by itself
	$(BIN)/python -m bench.peers

bench-boundary: $(STAMP) ## whose text is it, on open packages that are fetched for it
	$(BIN)/python -m bench.packages
	$(BIN)/python -m bench boundary

docs: $(STAMP) ## write the tables of the documentation
	$(BIN)/python tools/docs_tables.py

fmt: $(STAMP) ## format and fix what can be fixed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

CRASH := tests/integration/test_sabotage.py tests/integration/proxy/test_fail_closed.py tests/unit/workers \
	tests/unit/store/test_sqlite.py

test-crash: $(STAMP) ## 300 kills of a gateway under load; then what kills, hangs and sabotages, ten times over
	CRASH_KILLS=300 $(BIN)/python -m pytest -q tests/integration/test_crash.py \
		tests/integration/test_crash_workers.py tests/integration/test_environment.py \
		$(PYTEST_ARGS)
	for round in 1 2 3 4 5 6 7 8 9 10; do $(BIN)/python -m pytest -q $(CRASH) $(PYTEST_ARGS) || exit 1; done

test-reload: $(STAMP) ## 200 reloads during traffic: valid, invalid, truncated, wrongly signed
	RELOADS=200 $(BIN)/python -m pytest -q tests/integration/test_operation.py -k reloads_under_traffic $(PYTEST_ARGS)

test-memory-servers: $(STAMP) ## an MCP memory server, installed and run for real between two projects
	$(BIN)/python -m pytest tests/memory_servers $(PYTEST_ARGS)

test-clients: $(STAMP) ## tests with agents that must be installed first
	$(BIN)/python -m pytest tests/clients $(PYTEST_ARGS)

test-sdks: $(STAMP) ## the official SDKs that must be installed first; EGRESS_SDKS=short for one way each
	$(BIN)/python -m pytest tests/sdks $(PYTEST_ARGS)

test-captures: $(STAMP) ## a secret in each place of each recorded request, under each coding, in turn
	$(BIN)/python -m pytest -q -m slow --timeout 900 tests/unit/classify/test_captures.py $(PYTEST_ARGS)

test-leaks: $(STAMP) ## pii-leak-benchmark through the gateway; EGRESS_LEAKS=short for one cut of each value
	$(BIN)/python -m pytest tests/leaks $(PYTEST_ARGS)

clean: ## everything that can be made again, the environment included
	rm -rf $(VENV) .demo build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .coverage
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
