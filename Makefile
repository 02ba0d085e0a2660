# Two commands set everything up on a machine with only Python (3.10 or newer) and make:
#   make demo   a virtual environment, the project, the embedded model, and the main job
#   make test   the same environment with the tools, lint, types, tests and notebooks
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
NOTEBOOKS := $(wildcard notebooks/*.ipynb notebooks/receipts/*.ipynb)

# Jupyter refuses root unless it is told so.
LAB_OPTIONS := $(if $(filter 0,$(shell id -u)),--allow-root)

.PHONY: demo test lab lint types unit notebooks suite receipts clean

demo: $(VENV)/.installed
	$(BIN)/lanes demo

# A notebook from a clone is one that Jupyter does not trust: it would show no picture of what was saved in it.
lab: $(VENV)/.installed-lab
	$(BIN)/jupyter trust $(NOTEBOOKS)
	$(BIN)/jupyter lab $(LAB_OPTIONS) notebooks/01_first_steps.ipynb

test: lint types suite

lint: $(VENV)/.installed-test
	$(BIN)/ruff check .

types: $(VENV)/.installed-test
	$(BIN)/basedpyright --pythonpath $(BIN)/python

# Files side by side, each with one BLAS thread: more of both than there are cores starve each other. Files stay in their
# order, as the longest are not those with the most tests.
WORKERS ?= 2
PYTEST := LANES_THREADS=1 $(BIN)/python -m pytest --numprocesses=$(WORKERS) --dist=loadfile --no-loadscope-reorder
NBVAL := --nbval-lax --nbval-current-env --nbval-cell-timeout=600
unit: $(VENV)/.installed-browser
	$(PYTEST) tests

notebooks: $(VENV)/.installed-test
	$(PYTEST) $(NBVAL) $(NOTEBOOKS)

# Both at once, so that no worker waits for the other's last file.
suite: $(VENV)/.installed-browser
	$(PYTEST) $(NBVAL) $(NOTEBOOKS) tests

# Runs the notebooks of receipts, verifies what they seal, and keeps it in receipts/. What they sealed before is kept too.
# A claim needs more than what is tested every time: make receipts SIZE=full
SIZE ?= quick
SEALED := notebooks/receipts/receipts
receipts: $(VENV)/.installed-test
	mkdir -p $@ $(SEALED)
	find $(SEALED) -name '*.json' -exec mv {} $@ \;
ifeq ($(SIZE),quick)
	$(BIN)/python -m pytest $(NBVAL) notebooks/receipts/*.ipynb
else
	$(BIN)/python notebooks/seal.py size=$(SIZE) notebooks/receipts/*.ipynb
endif
	$(BIN)/lanes verify $(SEALED)/*.json
	mv $(SEALED)/*.json $@

$(BIN)/python:
	$(PYTHON) -m venv $(VENV) || { echo "No virtual environment: install Python's venv module (Debian: python3-venv)."; exit 1; }

# A stamp for each set of extras, so that a second run starts at once.
$(VENV)/.installed: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --disable-pip-version-check --quiet --editable .
	touch $@

$(VENV)/.installed-lab: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --disable-pip-version-check --quiet --editable '.[lab,serve,clients]'
	touch $@ $(VENV)/.installed

$(VENV)/.installed-test: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --disable-pip-version-check --quiet --editable '.[lab,serve,test]'
	touch $@ $(VENV)/.installed $(VENV)/.installed-lab

# A browser, for the tests that look at the widgets: the system's, or one that is fetched.
$(VENV)/.installed-browser: $(VENV)/.installed-test
	$(BIN)/python tests/browser.py
	touch $@

clean:
	rm -rf $(VENV) build dist *.egg-info
