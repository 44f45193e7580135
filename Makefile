# Two commands do everything on a fresh machine with Python 3.11 or later:
#   make run     set up, train on the Objects stream, print the table
#   make test    set up, check style and types, run all tests
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: run test lint unit results bench clean

run: $(READY)
	$(BIN)/piaget sweep objects-random --adaptations er --seeds 3 --out results/objects

test: lint unit

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

unit: $(READY)
	$(BIN)/python -m pytest

# The committed tables of docs/results.md: all 14 algorithms, 10 seeds (about 55 minutes on 2 cores).
results: $(READY)
	$(BIN)/piaget sweep objects-random objects-circle --adaptations all --seeds 10 --out results/objects-14

# The table of docs/performance.md; the first time, all steps are compiled.
bench: $(READY)
	$(BIN)/piaget bench --out results/bench.json

# Made once, and again when what is to be installed changes.
$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	touch $(READY)

clean:
	rm -rf $(VENV) results .pytest_cache .mypy_cache .ruff_cache .hypothesis
