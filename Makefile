# Each target makes and reuses .venv by itself; all it takes is Python 3.11 or newer, pip and make.
PYTHON ?= python3
BIN := .venv/bin
.DEFAULT_GOAL := help

help:
	@echo "make demo    compare two made-up segmentations and write a report"
	@echo "make test    run all tests"
	@echo "make lint    ruff and mypy"
	@echo "make bench   measure speed against other tools"

demo: .venv/.base
	$(BIN)/probdice demo -o demo

test: .venv/.test
	$(BIN)/python -m pytest

lint: .venv/.lint
	$(BIN)/ruff check src tests benchmarks docs
	$(BIN)/ruff format --check src tests benchmarks docs
	$(BIN)/mypy

bench: .venv/.test
	$(BIN)/python -m benchmarks

clean:
	rm -rf .venv .numba_cache .pytest_cache .mypy_cache .ruff_cache .hypothesis demo

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "probdice needs Python 3.11 or newer")'
	$(PYTHON) -m venv .venv

.venv/.base: $(BIN)/python pyproject.toml
	$(BIN)/pip install --quiet --disable-pip-version-check --editable .
	@touch $@

.venv/.test: .venv/.base
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[all,test]'
	@touch $@

.venv/.lint: .venv/.test
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[lint]'
	@touch $@

.PHONY: help demo test lint bench clean
