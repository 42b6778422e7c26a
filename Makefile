# make run    the app in the browser           make bench    how fast the app answers
# make test   linters, types, every test       make lint     the linters and the type checker alone
# make format rewrite the code's layout        make clean    remove what these leave behind
# make attack whether the app and the command line hold when attacked (15 minutes)
# make fuzz   inputs by the thousand           make test-lowest   tests with the lowest versions allowed
#
# PYTHON=python3.12   which Python makes .venv (3.11 or later)
# PORT=8600           where `make run` serves
# BROWSER=0           leave the browser tests out, on purpose
# PROXY=0             leave out those that start the app behind HAProxy
# EXAMPLES=10000      how many inputs of each kind `make fuzz` tries
# PYTEST="-k tokens"  further arguments for pytest

PYTHON ?= python3
PORT ?= 8501
BROWSER ?= 1
PROXY ?= 1
EXAMPLES ?= 10000
PYTEST ?=

.DELETE_ON_ERROR:
.DEFAULT_GOAL := help
.PHONY: help run test test-lowest lint format bench attack fuzz clean

BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet

help:
	@sed -n '/^#/!q; s/^# \{0,1\}//p' Makefile

.venv/pyvenv.cfg:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "$(PYTHON) is not Python 3.11 or later; install one and say: make PYTHON=python3.11 ..." >&2; exit 1; }
	$(PYTHON) -m venv .venv || { rm -rf .venv; \
	  echo "could not make .venv; on Debian and Ubuntu its module is the package python3-venv" >&2; exit 1; }

# A stamp is newer than what it was installed from.
.venv/.installed-run: requirements.txt | .venv/pyvenv.cfg
	@echo "Installing requirements.txt into .venv (minutes, the first time) ..."
	$(PIP) -r requirements.txt
	@touch $@

.venv/.installed-dev: requirements-dev.txt requirements.txt pyproject.toml | .venv/pyvenv.cfg
	@echo "Installing requirements-dev.txt and txcls itself into .venv (minutes, the first time) ..."
	$(PIP) -r requirements-dev.txt
	$(PIP) --no-deps --editable .
	@touch $@ .venv/.installed-run

run: .venv/.installed-run
	$(BIN)/python -m streamlit run streamlit_app.py --server.port $(PORT)

lint: .venv/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Tests without a browser run side by side, one process per core and at most four; then come those that watch the clock in
# a real browser or behind HAProxy, one at a time. A choice in PYTEST may leave one of the two without any test (exit 5).
SIDE_BY_SIDE := -n auto --maxprocesses 4 -m "not browser and not proxy"
CHOSEN := $(if $(filter 0,$(BROWSER)),,browser) $(if $(filter 0,$(PROXY)),,proxy)
IN_TURN := $(subst +, or ,$(subst $() $(),+,$(strip $(CHOSEN))))

test: lint
ifeq ($(BROWSER),0)
	@echo "Leaving out the browser tests, as BROWSER=0 asks."
else
	@CHROMIUM="$$($(BIN)/python tests/browser/chromium.py)" && echo "Browser tests use $$CHROMIUM"
endif
ifeq ($(PROXY),0)
	@echo "Leaving out the tests behind HAProxy, as PROXY=0 asks."
else
	@HAPROXY="$$($(BIN)/python tests/deploy/proxy.py)" && echo "Tests of deploy/ use $$HAPROXY"
endif
	$(BIN)/python -m pytest $(SIDE_BY_SIDE) $(PYTEST) || [ $$? -eq 5 ]
ifneq ($(IN_TURN),)
	$(BIN)/python -m pytest -m "$(IN_TURN)" $(PYTEST) || [ $$? -eq 5 ]
endif

# The lowest versions that requirements*.txt allow, in an environment of their own: uv says which they are, and pip
# installs them. Everything that needs no browser and no proxy is tested with them.
LOWEST := .venv-lowest/bin/python -m pip --disable-pip-version-check install --quiet

.venv-lowest/.installed: requirements-dev.txt requirements.txt pyproject.toml
	$(PYTHON) -m venv --clear .venv-lowest
	$(LOWEST) 'uv>=0.9,<1'
	.venv-lowest/bin/python -m uv pip compile --quiet --resolution lowest-direct requirements-dev.txt \
	  --output-file .venv-lowest/lowest.txt
	$(LOWEST) --constraint .venv-lowest/lowest.txt -r requirements-dev.txt
	$(LOWEST) --no-deps --editable .
	@touch $@

test-lowest: .venv-lowest/.installed
	.venv-lowest/bin/python -m pytest $(SIDE_BY_SIDE) $(PYTEST)

format: .venv/.installed-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: .venv/.installed-dev
	@for file in benchmarks/*.py; do \
	  name=$$(basename "$$file" .py); \
	  case "$$name" in _*) continue ;; esac; \
	  echo "== $$name"; $(BIN)/python -m "benchmarks.$$name" || exit 1; \
	done

attack: .venv/.installed-dev
	$(BIN)/python tests/browser/chromium.py
	$(BIN)/python -m benchmarks.attack

fuzz: .venv/.installed-dev
	$(BIN)/python -m benchmarks.fuzz --examples $(EXAMPLES)

clean:
	rm -rf build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -not -path './.venv*/*' -prune -exec rm -rf {} +
