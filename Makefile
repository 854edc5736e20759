# Each target sets up and reuses .venv. You need Python 3.11 or newer, pip and make.
PYTHON ?= python3
BIN := .venv/bin
.DEFAULT_GOAL := help

help:
	@echo "make demo    compare two synthetic segmentations and write demo/page.html"
	@echo "make test    run all tests"
	@echo "make lint    run ruff and mypy"
	@echo "make bench   measure speed relative to other tools"
	@echo "make fuzz    read mutated files of every format, for hours"
	@echo "make torture compare random inputs with the reference implementation, for an hour"
	@echo "make kills   kill evaluate a thousand times and simulate a full disk"
	@echo "make audit   look up security advisories for installed packages"
	@echo "make docs    build docs/_build/html, run all examples and check all links"
	@echo "make dist    build the sdist and the wheel into dist/"

demo: .venv/.base
	$(BIN)/probdice demo -o demo

test: .venv/.test
	$(BIN)/python -m pytest -n auto --dist loadfile

lint: .venv/.lint
	$(BIN)/ruff check src tests benchmarks docs fuzz
	$(BIN)/ruff format --check src tests benchmarks docs fuzz
	$(BIN)/mypy

bench: .venv/.test
	$(BIN)/python -m benchmarks

fuzz: .venv/.fuzz
	$(BIN)/python -m fuzz

torture: .venv/.test
	$(BIN)/python -m fuzz.torture

kills: .venv/.test
	$(BIN)/python -m fuzz.kills

audit: .venv/.test
	$(BIN)/pip install --quiet --disable-pip-version-check pip-audit
	$(BIN)/python -m fuzz.advisories

docs: .venv/.docs
	$(BIN)/python -m sphinx -q -W --keep-going -d docs/_build/doctrees docs docs/_build/html
	$(BIN)/python docs/check.py docs/_build/html
	@echo "open docs/_build/html/index.html"

dist: .venv/.dist
	rm -rf dist
	$(BIN)/python -m build --quiet
	@ls dist

clean:
	rm -rf docs/_build docs/gallery docs/reference/generated dist .venv .numba_cache .pytest_cache .mypy_cache .ruff_cache .hypothesis demo

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

# Atheris, for coverage-guided fuzzing, is not available on every platform.
.venv/.fuzz: .venv/.test
	$(BIN)/pip install --quiet --disable-pip-version-check atheris || true
	@touch $@

.venv/.docs: .venv/.base
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[docs]'
	@touch $@

.venv/.dist: .venv/.base
	$(BIN)/pip install --quiet --disable-pip-version-check build
	@touch $@

.PHONY: help demo test lint bench fuzz torture kills audit docs dist clean
