# Everything a fresh machine needs is Python 3.11+ and a C++ compiler.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
# One more than cores: many tests wait for a process that is to be killed.
WORKERS ?= $(shell expr $$(nproc) + 1)

# Tests that failed run once more, on a machine that nothing else loads: many wait for real processes, by the clock.
ALONE   = { test $$? = 1 && echo "What failed runs again, alone:" && $(BIN)/pytest --last-failed --last-failed-no-failures none; }

.PHONY: help setup demo site check test newest redteam clean

help:  ## what there is
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

setup: $(VENV)/.ready  ## create the environment

$(VENV)/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade --constraint constraints.txt pip
	$(BIN)/python -m pip install --quiet --constraint constraints.txt torch
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[lab,triton,cute,cuda,cutile,plots,claude,ncu,capture]' --group dev
	@touch $@

demo: setup  ## run a whole campaign on this machine's CPU
	$(BIN)/warpsmith demo

site: setup  ## build the site of this repository in build/site
	$(BIN)/warpsmith site --out build/site

check: setup  ## format, lint, types, names, layers, dependencies, knowledge, evidence, pages, plugin
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/deptry .
	$(BIN)/warpsmith knowledge check
	$(BIN)/warpsmith evidence check
	$(BIN)/python -m tools.naming
	$(BIN)/python -m tools.assertions
	$(BIN)/python -m tools.textlint
	$(BIN)/python -m tools.commands_page --check
	$(BIN)/python -m tools.plugin_check

test: check  ## check, then run the tests; the dearest 20 are listed
	$(BIN)/pytest --numprocesses $(WORKERS) --dist worksteal --durations 20 --durations-min 5 || $(ALONE)

# The last release of Pyodide with Python 3.13.
PYODIDE := 0.29.5

newest: setup  ## compile and import what CPython 3.13 can without compiled packages; needs Node.js
	npm install --prefix $(VENV)/pyodide --no-save --no-audit --no-fund --ignore-scripts --silent pyodide@$(PYODIDE)
	node tools/python313/run.mjs $(VENV)/pyodide/node_modules/pyodide \
	  "$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')"

redteam: setup  ## run the attacks and controls against the gate
	$(BIN)/warpsmith redteam

clean:  ## remove the environment and the demo's project
	rm -rf $(VENV) .demo
