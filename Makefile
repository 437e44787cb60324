# Each target sets up all it needs: Python 3.11 or newer and make are enough.
# PYTHON=/path/to/python3.12 chooses an interpreter.

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
# Without bytecode: one SDK alone brings ten thousand files of which a process imports a few.
INSTALL := $(PIP) install -qq --no-compile
STAMPS := $(VENV)/.installed
PYTEST := $(BIN)/python -m pytest -n auto --no-header -r fE

.PHONY: help demo test test-fast check lint types imports bench torture lock picture diagrams clean

help:
	@echo 'make demo      an agent asks you before it acts, in this terminal; needs no keys'
	@echo 'make test      the tests'
	@echo 'make test-fast the tests that take no seconds'
	@echo 'make check     ruff, pyright, import contracts, and the tests'
	@echo 'make bench     speed, measured against comparable libraries in the same run'
	@echo 'make torture   kills processes while runs wait, and counts executions'
	@echo 'make lock      resolve the lock files again'
	@echo 'make picture   record the picture of the README again'
	@echo 'make diagrams  draw the diagrams of docs/concepts.md again'
	@echo 'make clean     remove the virtual environment and every cache'

demo: $(STAMPS)/run
	@if [ -t 0 ] && [ -t 1 ]; then \
	  exec $(BIN)/signoff chat refunds; \
	else \
	  echo 'The demo asks a person, and this is not a terminal. Answer in advance instead:'; \
	  echo '  $(BIN)/signoff demo --approve'; \
	  echo '  $(BIN)/signoff demo --decline --note "not this week"'; \
	  echo '  $(BIN)/signoff demo --edit amount=4200'; \
	fi

test: $(STAMPS)/test
	@$(PYTEST)

test-fast: $(STAMPS)/test
	@$(PYTEST) -m 'not slow'

check: lint types imports test

lint: $(STAMPS)/test
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: $(STAMPS)/test
	@$(BIN)/pyright

imports: $(STAMPS)/test
	@$(BIN)/lint-imports --no-logo

bench: $(STAMPS)/bench
	@$(BIN)/signoff bench

torture: $(STAMPS)/run
	@$(BIN)/signoff torture

# One lock for what runs, one that adds the checks, one that adds the libraries we measure against.
# Each is resolved under the one before it, so all three agree and share one environment.
LOCK = $(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
  --custom-compile-command 'make lock' pyproject.toml --group build

lock: $(BIN)/python
	@$(PIP) install -qq uv
	$(LOCK) $(UPGRADE) -o requirements.lock
	$(LOCK) --extra test -c requirements.lock -o requirements-test.lock
	$(LOCK) --extra test --extra bench -c requirements-test.lock -o requirements-bench.lock

picture: $(STAMPS)/run
	@PYTHONPATH=. $(BIN)/python docs/picture.py

diagrams: $(STAMPS)/run
	@PYTHONPATH=. $(BIN)/python docs/diagrams.py

clean:
	rm -rf $(VENV) .pytest_cache .ruff_cache .import_linter_cache .hypothesis build dist *.egg-info
	find agent gateway handlers tests -type d -name __pycache__ -prune -exec rm -rf {} +

# --- setting up ---------------------------------------------------------------------------------

$(STAMPS)/run: requirements.lock pyproject.toml | $(BIN)/python
	@echo 'Installing what Signoff runs on (requirements.lock) ...'
	@$(INSTALL) --require-hashes -r requirements.lock
	@$(INSTALL) --no-deps --no-build-isolation -e .
	@mkdir -p $(STAMPS) && touch $@

$(STAMPS)/test: requirements-test.lock $(STAMPS)/run
	@echo 'Installing what checks it (requirements-test.lock) ...'
	@$(INSTALL) --require-hashes -r requirements-test.lock
	@touch $@

$(STAMPS)/bench: requirements-bench.lock $(STAMPS)/test
	@echo 'Installing what it is measured against (requirements-bench.lock) ...'
	@$(INSTALL) --require-hashes -r requirements-bench.lock
	@touch $@

# The first interpreter that is new enough and can make a virtual environment. Each is run, not
# looked up: a version manager may have a name on the path for which it has no interpreter.
$(BIN)/python:
	@chosen=; bare=; old=; \
	for python in $(or $(PYTHON),python3.13 python3.12 python3.11 python3); do \
	  version=$$("$$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null) || continue; \
	  "$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	    || { old="$$python is Python $$version"; continue; }; \
	  "$$python" -c 'import ensurepip, venv' 2>/dev/null || { bare=$$version; continue; }; \
	  chosen=$$python; break; \
	done; \
	if [ -n "$$chosen" ]; then \
	  echo "Making $(VENV) with $$chosen (Python $$version) ..."; \
	  "$$chosen" -m venv --clear $(VENV); \
	elif [ -n "$$bare" ]; then \
	  echo "Python $$bare is here, but not its venv module. On Debian or Ubuntu:" >&2; \
	  echo "  apt-get install python$$bare-venv" >&2; exit 1; \
	else \
	  echo "Signoff needs Python 3.11 or newer; $${old:-no Python was found}." >&2; \
	  echo "Install one, or name it: make $(or $(MAKECMDGOALS),demo) PYTHON=/path/to/python3.12" >&2; exit 1; \
	fi
