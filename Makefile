# make run    the app in the browser           make bench    how fast the app answers
# make test   linters, types, every test       make lint     the linters and the type checker alone
# make format rewrite the code's layout        make clean    remove what these leave behind
#
# PYTHON=python3.12   which Python makes .venv (3.11 or later)
# PORT=8600           where `make run` serves
# BROWSER=0           leave the browser tests out, on purpose
# PYTEST="-k tokens"  further arguments for pytest

PYTHON ?= python3
PORT ?= 8501
BROWSER ?= 1
PYTEST ?=

.DELETE_ON_ERROR:
.DEFAULT_GOAL := help
.PHONY: help run test lint format bench clean

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

ifeq ($(BROWSER),0)
test: lint
	@echo "Leaving out the browser tests, as BROWSER=0 asks."
	$(BIN)/python -m pytest -m "not browser" $(PYTEST)
else
test: lint
	@CHROMIUM="$$($(BIN)/python tests/browser/chromium.py)" || exit 1; export CHROMIUM; \
	echo "Browser tests use $$CHROMIUM"; \
	$(BIN)/python -m pytest $(PYTEST)
endif

format: .venv/.installed-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: .venv/.installed-dev
	@for file in benchmarks/*.py; do \
	  name=$$(basename "$$file" .py); \
	  case "$$name" in _*) continue ;; esac; \
	  echo "== $$name"; $(BIN)/python -m "benchmarks.$$name" || exit 1; \
	done

clean:
	rm -rf build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -not -path './.venv/*' -prune -exec rm -rf {} +
