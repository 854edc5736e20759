# Most targets create .venv when it is first needed, and reuse it. You need Python 3.11 or newer, pip
# and make.
PYTHON ?= python3
BIN := .venv/bin
.DEFAULT_GOAL := help
# Tests and documentation share compiled kernels.
test docs: export NUMBA_CACHE_DIR := $(CURDIR)/.numba_cache
# The test files that test-lowest runs: numeric tests, then file tests.
LOWEST := arrays assignment boundaries calibration cases chance components detection explained groups \
	indices label_matching matching merging method numbers overlaps scoring segmentation similarity \
	statistics value_checks files files_dicom files_formats files_masks files_names files_nifti \
	files_paths files_write files_zarr

help:
	@echo "make demo    compare two synthetic segmentations and write demo/page.html"
	@echo "make test    run all tests"
	@echo "make test-lowest  run numeric and file tests with the oldest allowed dependencies"
	@echo "make lint    run ruff and mypy"
	@echo "make bench   measure speed relative to other tools"
	@echo "make figures measure the numbers in the documentation again"
	@echo "make fuzz    read mutated files of every format, for hours"
	@echo "make torture compare random inputs with the reference implementation, for an hour"
	@echo "make kills   kill evaluate a thousand times and simulate a full disk"
	@echo "make audit   look up security advisories for installed packages"
	@echo "make docs    build docs/_build/html, run all examples and check all links"
	@echo "make dist    build the sdist and the wheel into dist/"

demo: .venv/.base
	$(BIN)/probdice demo -o demo

test: .venv/.test
	$(BIN)/python -m pytest -n auto --dist loadfile --no-loadscope-reorder

# Warnings are not errors, because old versions of libraries warn about each other. One test is left
# out, because zarr versions before 3.1.4 decompress chunks in other threads.
test-lowest: .venv-lowest/.done
	PYTHONPATH=src NUMBA_CACHE_DIR=$(CURDIR)/.venv-lowest/kernels .venv-lowest/bin/python -m pytest \
		-n auto --dist loadfile --no-loadscope-reorder -p no:cacheprovider -W default --disable-warnings \
		--deselect tests/test_files_zarr.py::test_local_chunks_are_decompressed_on_the_calling_thread \
		$(LOWEST:%=tests/test_%.py)

lint: .venv/.lint
	$(BIN)/ruff check src tests benchmarks docs fuzz
	$(BIN)/ruff format --check src tests benchmarks docs fuzz
	$(BIN)/mypy

bench: .venv/.test
	$(BIN)/python -m benchmarks

figures: .venv/.test
	$(BIN)/python -m benchmarks.figures

fuzz: .venv/.fuzz
	$(BIN)/python -m fuzz

torture: .venv/.test
	$(BIN)/python -m fuzz.torture

kills: .venv/.test
	$(BIN)/python -m fuzz.kills

audit: .venv/.audit
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
	rm -rf docs/_build docs/gallery docs/reference/generated dist .venv .venv-clusters .venv-lowest .numba_cache .pytest_cache .mypy_cache .ruff_cache .hypothesis demo

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

# The oldest versions of direct dependencies that pyproject.toml allows, found by uv; torch is left out.
.venv-lowest/.done: pyproject.toml
	$(PYTHON) -m venv .venv-lowest
	.venv-lowest/bin/pip install --quiet --disable-pip-version-check uv
	.venv-lowest/bin/uv pip compile --quiet --resolution lowest-direct --extra all \
		--python .venv-lowest/bin/python --output-file .venv-lowest/versions.txt pyproject.toml >/dev/null
	.venv-lowest/bin/uv pip install --quiet --python .venv-lowest/bin/python -r .venv-lowest/versions.txt \
		google-crc32c hypothesis mpmath pandas pytest pytest-timeout pytest-xdist
	@touch $@

.venv/.audit: .venv/.test
	$(BIN)/pip install --quiet --disable-pip-version-check pip-audit
	@touch $@

# All packages that .ci/run needs in .venv, in one installation.
.venv/.ci: $(BIN)/python pyproject.toml
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[all,test,lint,docs]' pip-audit \
		torch==2.13.0 torchmetrics lightning monai pytorch-ignite pymeshmetrics 'napari[pyqt6]' pytest-qt
	@touch .venv/.base .venv/.test .venv/.lint .venv/.docs .venv/.audit $@

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

.PHONY: help demo test test-lowest lint bench figures fuzz torture kills audit docs dist clean
