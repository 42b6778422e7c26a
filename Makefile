# make run    the app in the browser           make bench    how fast the app answers
# make test   linters, type checker and quick tests (under four minutes on two cores)
# make test-all   also the slow tests: accessibility of every page, killed processes, many visitors, the shipped cards' figures
# make test-lowest   tests that need neither browser nor proxy, with the lowest versions allowed
# make lint   only the linters and the type checker
# make docs   regenerate docs/command-line.md
# make pictures   regenerate the screenshots in docs/
# make format reformat the code                make clean    remove build output
# make lock   lock the newest versions that requirements*.txt allow, with their hashes, in requirements*.lock
# make attack the tests marked `attack` with more and new inputs, visitors and repeats: at most five minutes on two idle cores
#
# PYTHON=python3.12   the Python that creates .venv (3.11 or later)
# PORT=8600           the port of `make run`
# BROWSER=0           skip the browser tests
# PROXY=0             skip the tests that start the app behind HAProxy
# ENGINES=0           skip the tests in Firefox and WebKit
# LOCKED=1            install the versions of requirements-dev.lock, by hash (Python 3.11 on Linux, x86-64), as CI does
# COVERAGE=0          test-all without line coverage, which makes it take about half as long again
# PYTEST="-k tokens"  more arguments for pytest

PYTHON ?= python3
PORT ?= 8501
BROWSER ?= 1
PROXY ?= 1
ENGINES ?= 1
COVERAGE ?= 1
LOCKED ?= 0
PYTEST ?=

.DELETE_ON_ERROR:
.DEFAULT_GOAL := help
.PHONY: help run test test-all test-lowest quick-tests unit-tests chromium engines haproxy lint style types format docs pictures bench lock attack clean

BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet
# Where there is no GPU, without CUDA libraries of 3 GB, unless pip's own settings name an index: see torch_index.py.
PIP_TORCH := options=$$($(BIN)/python torch_index.py) && $(PIP) $$options

help:
	@sed -n '/^#/!q; s/^# \{0,1\}//p' Makefile

.venv/pyvenv.cfg:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "$(PYTHON) is not Python 3.11 or later; install one and run: make PYTHON=python3.11 ..." >&2; exit 1; }
	$(PYTHON) -m venv .venv || { rm -rf .venv; \
	  echo "could not create .venv; on Debian and Ubuntu, install the package python3-venv" >&2; exit 1; }

# These empty files record when each requirements file was last installed.
.venv/.installed-run: requirements.txt | .venv/pyvenv.cfg
	@echo "Installing requirements.txt into .venv (takes minutes the first time) ..."
	$(PIP_TORCH) -r requirements.txt
	@touch $@

.venv/.installed-dev: requirements-dev.txt examples/requirements.txt requirements.txt pyproject.toml | .venv/pyvenv.cfg
	@echo "Installing requirements-dev.txt and txcls itself into .venv (takes minutes the first time) ..."
	$(PIP_TORCH) $(if $(filter 0,$(LOCKED)),-r requirements-dev.txt,--no-deps --require-hashes -r requirements-dev.lock)
	$(PIP) --no-deps --editable .
	@touch $@ .venv/.installed-run

run: .venv/.installed-run
	$(BIN)/python -m streamlit run streamlit_app.py --server.port $(PORT)

style: .venv/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/.installed-dev
	$(BIN)/mypy

lint: style types

# Tests run in parallel with each other and with the type checker: one process per core, at most four. The tests of a file
# run in one process, so they share a server, a browser and anything else that is slow to create. Files run in order; in
# test-all, the slowest run first. The browser and HAProxy tests run last, in two processes, with nothing else running.
# PYTEST may select no test of a run (exit 5).
SIDE_BY_SIDE := -n auto --maxprocesses 4 --dist loadfile
COVER := $(if $(filter 0,$(COVERAGE)),,--cov=txcls --cov-report=term:skip-covered)
LEFT_OUT := $(if $(filter 0,$(BROWSER)), and not browser)$(if $(filter 0,$(PROXY)), and not proxy)$(if $(filter 0,$(ENGINES)), and not engines)

test: style chromium
	$(MAKE) --no-print-directory --jobs=2 types quick-tests

test-all: style chromium engines haproxy
	$(MAKE) --no-print-directory --jobs=2 types unit-tests
ifneq ($(BROWSER)$(PROXY),00)
	$(BIN)/python -m pytest $(SIDE_BY_SIDE) --maxprocesses 2 -m "(browser or proxy)$(LEFT_OUT)" $(PYTEST) || [ $$? -eq 5 ]
endif

quick-tests: .venv/.installed-dev
	$(BIN)/python -m pytest $(SIDE_BY_SIDE) --no-loadscope-reorder -m "not slow$(LEFT_OUT)" $(PYTEST) || [ $$? -eq 5 ]

unit-tests: .venv/.installed-dev
	$(BIN)/python -m pytest $(SIDE_BY_SIDE) --no-loadscope-reorder $(COVER) -m "not browser and not proxy" \
	  $(or $(PYTEST),tests/attack tests/training tests/cli tests) || [ $$? -eq 5 ]

chromium: .venv/.installed-dev
ifeq ($(BROWSER),0)
	@echo "Skipping the browser tests because BROWSER=0."
else
	@CHROMIUM="$$($(BIN)/python tests/browser/chromium.py)" && echo "Browser tests use $$CHROMIUM"
endif

engines: .venv/.installed-dev
ifneq ($(filter 0,$(BROWSER) $(ENGINES)),)
	@echo "Skipping the tests in Firefox and WebKit because $(if $(filter 0,$(BROWSER)),BROWSER=0,ENGINES=0)."
else
	@ENGINES="$$($(BIN)/python tests/browser/webdriver.py)" && echo "Tests in other browsers use $$ENGINES"
endif

haproxy: .venv/.installed-dev
ifeq ($(PROXY),0)
	@echo "Skipping the tests behind HAProxy because PROXY=0."
else
	@HAPROXY="$$($(BIN)/python tests/deploy/proxy.py)" && echo "Tests of deploy/ use $$HAPROXY"
endif

# The lowest versions that requirements*.txt allow, in a separate environment: uv resolves them, and pip installs them.
# Tests that need neither a browser nor a proxy run with them.
LOWEST := .venv-lowest/bin/python -m pip --disable-pip-version-check install --quiet

.venv-lowest/.installed: requirements-dev.txt requirements.txt pyproject.toml
	$(PYTHON) -m venv --clear .venv-lowest
	$(LOWEST) 'uv>=0.9,<1'
	.venv-lowest/bin/python -m uv pip compile --quiet --resolution lowest-direct requirements-dev.txt \
	  --output-file .venv-lowest/lowest.txt
	options=$$(.venv-lowest/bin/python torch_index.py) && $(LOWEST) $$options --constraint .venv-lowest/lowest.txt -r requirements-dev.txt
	$(LOWEST) --no-deps --editable .
	@touch $@

test-lowest: .venv-lowest/.installed
	.venv-lowest/bin/python -m pytest $(SIDE_BY_SIDE) -m "not browser and not proxy" $(PYTEST)

format: .venv/.installed-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: .venv/.installed-dev
	$(BIN)/python -m docs.command_line

pictures: .venv/.installed-dev
	$(BIN)/python -m docs.pictures

bench: .venv/.installed-dev
	@for file in benchmarks/*.py; do \
	  name=$$(basename "$$file" .py); \
	  case "$$name" in _*) continue ;; esac; \
	  echo "== $$name"; $(BIN)/python -m "benchmarks.$$name" || exit 1; \
	done

# torch comes from PyTorch's index, everything else from PyPI.
lock: .venv/.installed-dev
	$(PIP) 'uv>=0.9,<1'
	for name in requirements requirements-dev; do \
	  { echo "# $$name.txt and all dependencies, by hash, for Python 3.11 on Linux (x86-64), torch without CUDA. Written by \`make lock\`."; \
	    $(BIN)/python -m uv pip compile $$name.txt --python-version 3.11 --python-platform x86_64-manylinux_2_28 \
	      --torch-backend cpu --generate-hashes --no-annotate --no-header --quiet; } > $$name.new \
	  && mv $$name.new $$name.lock || exit 1; \
	done

# The longest tests are in tests/attack and run first; a process that has finished takes over tests from the other one.
attack: chromium
	TXCLS_FULL_SIZE=1 $(BIN)/python -m pytest -n auto --maxprocesses 2 --dist worksteal -m "attack$(LEFT_OUT)" $(or $(PYTEST),tests/attack tests)

clean:
	rm -rf build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -not -path './.venv*/*' -prune -exec rm -rf {} +
