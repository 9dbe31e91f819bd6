# The few verbs of this project; `make` alone lists them.
# Needs Python 3.11 or newer and nothing else: every environment is made here, from locked, hashed files.

PYTHON ?= python3
JOBS ?= auto
HYPOTHESIS_PROFILE ?= ci
FUZZ_RUNS ?= 1000000

# A checkout this user may not write to keeps its environments and caches in the user's cache folder.
HOMELESS := $(shell for d in . .venv .venv-demo .venv-bench .cache bench/out; do test ! -e $$d || test -w $$d || echo no; done)
WORK := $(if $(HOMELESS),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/pawlflow-$(shell pwd | cksum | cut -d' ' -f1)/)
VENV := $(WORK).venv
DEMO := $(WORK).venv-demo
PEERS := $(WORK).venv-bench
CACHE := $(if $(WORK),$(WORK)cache,$(CURDIR)/.cache)
TOP := $(if $(WORK),,$(CURDIR)/)
SITE := $(if $(WORK),$(WORK)site,$(CURDIR)/site)
PY := $(VENV)/bin/python
PIP := -m pip --disable-pip-version-check --quiet

# Stamps carry the folder and the interpreter: a moved checkout or another Python makes its environments anew.
ID := $(shell $(PYTHON) -c 'import os, sys, zlib; print("%08x" % zlib.crc32((os.getcwd() + sys.version).encode()))' 2>/dev/null)
DEV_DEPS := $(VENV)/.deps-$(ID)
DEV_SELF := $(VENV)/.self-$(ID)
DEMO_DEPS := $(DEMO)/.deps-$(ID)
DEMO_SELF := $(DEMO)/.self-$(ID)
PEER_DEPS := $(PEERS)/.deps-$(ID)
NODE_PEERS := $(CACHE)/peers
SOURCES := $(shell find src -name '*.py')

unexport VIRTUAL_ENV PYTHONPATH PYTHONHOME
export HYPOTHESIS_PROFILE
export HYPOTHESIS_STORAGE_DIRECTORY := $(CACHE)/hypothesis
export MYPY_CACHE_DIR := $(CACHE)/mypy
export RUFF_CACHE_DIR := $(CACHE)/ruff
export COVERAGE_FILE := $(CACHE)/coverage/data
export BENCH_PEER := $(TOP)$(PEERS)/bin/python
export BENCH_PEERS := $(NODE_PEERS)
export BENCH_OUT := $(if $(WORK),$(WORK)bench,$(CURDIR)/bench/out)
PYTEST := -m pytest -o cache_dir="$(CACHE)/pytest"

.DEFAULT_GOAL := help
.PHONY: help setup demo check test docs bench peers nightly lock clean _python
.DELETE_ON_ERROR:

help: ## list the verbs
	@echo 'Pawl, durable workflows. First: make demo'
	@echo
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1|\2/p' Makefile | awk -F'|' '{ printf "%-15s %s\n", $$1, $$2 }'
	@echo
	@echo '  PYTHON=python3.12 chooses the interpreter, JOBS=1 the number of test processes.'

setup: $(DEV_SELF) ## make the development environment in .venv
	@echo 'Ready: $(VENV)/bin/pawl, $(VENV)/bin/pytest'

demo: $(DEMO_SELF) ## install the core alone and watch it work
	@PAWL="$(TOP)$(DEMO)/bin/pawl" sh examples/demo.sh

check: $(DEV_SELF) ## lint, format, types, import contracts, tidiness, instruction counts
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy
	$(PY) -c 'from importlinter.cli import lint_imports_command as lint; lint()' --no-logo --cache-dir "$(CACHE)/imports"
	$(PY) $(PYTEST) tests/test_tidy.py
	@if test ! -f bench/callgrind.py; then echo 'instruction counts: not written yet'; \
	elif command -v valgrind >/dev/null; then echo '$(PY) -m bench.callgrind --gate'; $(PY) -m bench.callgrind --gate; \
	else echo 'instruction counts: skipped, valgrind is not installed'; fi

test: $(DEV_SELF) ## all tests but the slow ones, with the coverage gates
	@mkdir -p "$(CACHE)/coverage"
	@$(PY) -m coverage erase
	$(PY) $(PYTEST) -n $(JOBS) -m 'bare and not slow'
	$(PY) -m coverage run $(PYTEST) -n $(JOBS) -m 'not bare and not slow'
	@$(PY) -m coverage combine --quiet
	$(PY) -m coverage report --fail-under=100 --include='*/pawlflow/model/*,*/pawlflow/definition/*,*/pawlflow/kernel/*'
	$(PY) -m coverage report --fail-under=90 --omit='*/pawlflow/model/*,*/pawlflow/definition/*,*/pawlflow/kernel/*'

docs: $(DEV_SELF) ## build the documentation as a site, in site/; it needs no network
	$(PY) docs/build.py "$(SITE)"

bench: $(DEV_SELF) $(PEER_DEPS) $(NODE_PEERS)/.deps ## measure, beside others; bench/README.md says how to read the figures
	$(PY) -m bench

peers: $(PEER_DEPS) $(NODE_PEERS)/.deps ## install the engines we are measured against, in .venv-bench and .cache
	@echo 'Ready: $(BENCH_PEER)'

nightly: HYPOTHESIS_PROFILE = nightly
nightly: $(DEV_SELF) ## everything: slow tests, the wheel in an empty environment, 20,000 examples per property, fuzzing
	$(PY) $(PYTEST) -n $(JOBS) -m 'slow or not slow' -o timeout=7200
	for target in tests/fuzz/fuzz_*.py; do $(PY) $$target -atheris_runs=$(FUZZ_RUNS) || exit 1; done
	$(PY) -m bench.kernel --gate

COMPILE = $(VENV)/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-header --no-annotate --no-emit-index-url --no-emit-find-links --system-certs $(LOCK)
lock: $(DEV_SELF) ## bring requirements/*.txt up to date (LOCK=--upgrade for newer versions)
	$(COMPILE) pyproject.toml --output-file requirements/core.txt >/dev/null
	$(COMPILE) --group build --output-file requirements/build.txt >/dev/null
	$(COMPILE) pyproject.toml --group dev --group build --group docs --output-file requirements/dev.txt >/dev/null
	$(COMPILE) --group peers --output-file requirements/peers.txt >/dev/null

clean: ## remove environments, caches and build results
	rm -rf "$(VENV)" "$(DEMO)" "$(PEERS)" "$(CACHE)" "$(BENCH_OUT)" "$(SITE)" build dist

# Environments. Dependencies come with hashes; the package itself is built by the locked build tools.
_python:
	@$(PYTHON) -c 'import sys; sys.exit("Pawl needs Python 3.11 or newer; $(PYTHON) is %s.%s. Try: make PYTHON=python3.11" % sys.version_info[:2] if sys.version_info < (3, 11) else 0)'

$(DEV_DEPS): requirements/dev.txt | _python
	@echo 'Making the development environment (once, about half a minute) ...'
	@$(PYTHON) -m venv --clear "$(VENV)"
	@$(PY) $(PIP) install --require-hashes -r requirements/dev.txt
	@touch "$@"

$(DEV_SELF): $(DEV_DEPS) pyproject.toml
	@$(PY) $(PIP) install --no-deps --no-build-isolation --editable .
	@touch "$@"

$(DEMO_DEPS): requirements/core.txt requirements/build.txt | _python
	@echo 'Installing the core (once, a few seconds) ...'
	@$(PYTHON) -m venv --clear "$(DEMO)"
	@"$(DEMO)/bin/python" $(PIP) install --require-hashes -r requirements/core.txt
	@"$(DEMO)/bin/python" $(PIP) install --require-hashes -r requirements/build.txt --target "$(DEMO)/build-tools"
	@touch "$@"

$(DEMO_SELF): $(DEMO_DEPS) pyproject.toml README.md LICENSE NOTICE $(SOURCES)
	@PYTHONPATH="$(TOP)$(DEMO)/build-tools" "$(DEMO)/bin/python" $(PIP) install --no-deps --no-build-isolation --force-reinstall .
	@touch "$@"

$(PEER_DEPS): requirements/peers.txt | _python
	@echo 'Installing the peers (once, a few seconds) ...'
	@$(PYTHON) -m venv --clear "$(PEERS)"
	@"$(PEERS)/bin/python" $(PIP) install --require-hashes -r requirements/peers.txt
	@touch "$@"

# Its scripts are not run: one of them would tell of the installation.
$(NODE_PEERS)/.deps: bench/peers/package.json
	@rm -rf "$(NODE_PEERS)" && mkdir -p "$(NODE_PEERS)" && cp bench/peers/package.json "$(NODE_PEERS)/"
	@if command -v npm >/dev/null; then \
	npm install --prefix "$(NODE_PEERS)" --ignore-scripts --no-package-lock --no-audit --no-fund --loglevel=error >/dev/null; \
	else echo 'Restate is left out: npm is not installed'; fi
	@touch "$@"
