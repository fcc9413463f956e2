PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

.PHONY: demo test waiting computing check bench clean

$(VENV)/installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test]'
	touch $@

demo: $(VENV)/installed
	$(BIN)/streamkern demo

check: $(VENV)/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Tests that wait for processes and tests that compute, side by side.
test: check
	$(MAKE) --jobs=2 --output-sync=target waiting computing

waiting: $(VENV)/installed
	$(BIN)/python -m pytest -m 'slow or cluster'

computing: $(VENV)/installed
	$(BIN)/python -m pytest -m 'not (slow or cluster)'

bench: $(VENV)/installed
	$(BIN)/python jobs/benchmark.py $(BENCH)

clean:
	rm -rf $(VENV) demo
