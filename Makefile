PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# uv takes seconds where pip takes minutes; pip knows the indexes that are set for it.
INSTALL := $(BIN)/uv pip install --quiet --python $(BIN)/python --editable
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --editable
# The lowest versions that pyproject.toml declares, of Python too, and the tests that `make test`
# runs with them: imports, scikit-learn's checks, formats, a fit on worker processes, report.
LOWEST := .venv-lowest
LOWEST_PYTHON ?= python3.11
LOWEST_QUICK := tests/test_lowest_versions.py tests/test_sklearn_checks.py tests/test_format.py \
	tests/models/test_model_files.py tests/models/test_inputs.py tests/extensions/integers tests/sources/test_hdf5.py tests/report/test_onnx.py \
	tests/test_jobs.py::test_a_model_is_trained tests/report/test_rendering.py \
	tests/report/test_class_figures.py tests/monitor/test_dashboard_panels.py

SIDE_BY_SIDE := --numprocesses=2 --dist=loadfile

.PHONY: demo test test-slow slow extensions lowest lowest-quick check docs bench clean

$(VENV)/installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	-$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	$(INSTALL) '.[test]' || $(PIP) '.[test]'
	touch $@

# pip would try versions of what these depend on for minutes.
$(LOWEST)/installed: pyproject.toml tests/lowest.txt
	$(LOWEST_PYTHON) -m venv $(LOWEST)
	$(LOWEST)/bin/python -m pip install --quiet --disable-pip-version-check uv
	$(LOWEST)/bin/uv pip install --quiet --python $(LOWEST)/bin/python \
		--constraint tests/lowest.txt --editable '.[test]'
	touch $@

demo: $(VENV)/installed
	$(BIN)/streamkern demo

check: $(VENV)/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# What is fast.
test: check
	$(BIN)/python -m pytest -m 'not (slow or cluster)' $(SIDE_BY_SIDE)

# Clusters, faults, browsers, the programs of jobs/ and benchmarks/, and some tests with the lowest versions, side
# by side.  `make lowest` runs all with those: PYTEST="-m cluster" and the like choose.
test-slow: $(VENV)/installed
	$(MAKE) --jobs=2 --output-sync=target slow lowest-quick

slow: $(VENV)/installed
	$(BIN)/python -m pytest -m 'slow or cluster' $(SIDE_BY_SIDE)

# Deletes each extension in turn, and runs the tests of all else.
extensions: $(VENV)/installed
	$(BIN)/python -m pytest -m 'slow or not slow' tests/extensions/test_deletion.py

lowest: $(LOWEST)/installed
	$(LOWEST)/bin/python -m pytest $(PYTEST)

lowest-quick: $(LOWEST)/installed
	$(LOWEST)/bin/python -m pytest $(LOWEST_QUICK)

$(VENV)/docs: $(VENV)/installed
	$(INSTALL) '.[docs]' || $(PIP) '.[docs]'
	touch $@

# The pages, in docs/_build/html; every example of a tutorial runs.
docs: $(VENV)/docs
	$(BIN)/python -m sphinx --fail-on-warning --keep-going --jobs 2 docs docs/_build/html

bench: $(VENV)/installed
	$(BIN)/python benchmarks/regression.py $(BENCH)

clean:
	rm -rf $(VENV) $(LOWEST) demo docs/_build docs/reference/generated
