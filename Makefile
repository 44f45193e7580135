# Two commands do everything on a fresh machine with Python 3.11 or later:
#   make run     set up, train on the Objects stream, and make a report of it
#   make test    set up, check style and types, run all tests (of the page, with Debian's Chromium)
# And make docs builds the documentation, which it runs, as docs/_build/html/index.html.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: run test lint js unit browser docs results bench soak fuzz compat package clean

run: $(READY)
	$(BIN)/piaget sweep objects-random --adaptations er --seeds 3 --out results/objects
	$(BIN)/piaget report results/objects

test: lint unit

lint: $(READY) js
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# The scripts of the report's page, by TypeScript's checker, against the types of its data.
js:
	@if command -v npm >/dev/null; then \
	  cd tools/js && { [ node_modules/.package-lock.json -nt package-lock.json ] || npm ci --silent; } && npm run --silent check; \
	else echo "Without npm, the scripts of the report's page are not checked."; fi

# Two workers, one a core (tests/conftest.py says which tests stay together).
WORKERS ?= 2
unit: $(READY) browser
	$(BIN)/python -m pytest -n $(WORKERS) --durations=15

# For the tests of the report's page, which are skipped without it.
browser:
	@if ! command -v chromium >/dev/null || ! command -v chromedriver >/dev/null; then \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    apt-get update -qq && \
	    apt-get install -y -qq --no-install-recommends chromium chromium-driver fonts-dejavu-core >/dev/null; \
	  else echo "Without chromium and chromedriver, the tests of the report's page are skipped."; fi; fi

# The documentation: all of its notebooks are run, warnings are errors, links are checked; without network.
docs: $(VENV)/.docs-ready
	rm -rf docs/_build/html
	$(BIN)/sphinx-build -W --keep-going -q -E -j auto -b html docs docs/_build/html
	$(BIN)/python -m tools.site.links docs/_build/html
	@echo "docs/_build/html/index.html; for language models: llms.txt and llms-full.txt beside it"

$(VENV)/.docs-ready: $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[docs]"
	touch $@

# docs/results.md with its figures, and a page, from the results in results/paper: nothing is trained. The same results
# give the same files on any day.
results: $(READY)
	$(BIN)/python -m tools.results results/paper --docs docs
	@if ls results/paper/*/results.json >/dev/null 2>&1; then \
	  day=$$(git log -1 --format=%ct -- results/paper 2>/dev/null); SOURCE_DATE_EPOCH=$${day:-$$(date +%s)} \
	  $(BIN)/piaget report results/paper --out results/report --title "The paper's experiments" --no-figures --quiet; fi

# The table of docs/performance.md; the first time, all steps are compiled.
bench: $(READY)
	$(BIN)/piaget bench --out results/bench.json

# 1,000 kills, with damaged files among them (docs/reliability.md); stopped, it goes on from there.
soak: $(READY)
	$(BIN)/python -m tools.soak --kills 1000 --result docs/reliability.json

# The properties of tests/test_fuzz.py with other examples each time, until it is stopped or HOURS are over.
HOURS ?= 8
fuzz: $(READY)
	$(BIN)/python -m tools.fuzz --hours $(HOURS)

# The core tests on each Python that is here, with the newest torch for it (docs/versions.md). TORCH="2.4.0 2.13.0"
# tries these instead.
TORCH ?=
compat: $(READY)
	$(BIN)/python -m tools.compat $(if $(TORCH),--torch $(TORCH))

# dist/: a wheel and a source archive.
package: $(READY)
	$(BIN)/python -m build

# Made once, and again when what is to be installed changes.
$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	touch $(READY)

clean:
	[ ! -d results ] || find results -mindepth 1 -maxdepth 1 ! -name paper -exec rm -rf {} +
	rm -rf $(VENV) build dist docs/_build tools/js/node_modules .pytest_cache .mypy_cache .ruff_cache .hypothesis
