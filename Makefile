# The two commands of the README are `make demo` and `make test`; the rest are
# their parts. Everything is safe to run again: a second run downloads and builds
# nothing.
#
#   make demo    build, then predict the GPT-2 example on one H100
#   make test    everything that continuous integration runs
#   make build   the `trompe` program and the libraries it preloads (release)
#   make venv    .venv with the pinned PyTorch (no NVIDIA package)
#   make jobs    the job tests only: real PyTorch scripts under `trompe run`
#   make searches  searches over real PyTorch scripts
#   make ray-test  a search on a local Ray cluster of two nodes, one of which is killed
#   make npu     the NPU kernels only: `trompe npu` against PyTorch on the CPU
#   make frameworks  other frameworks and PyTorch versions (large downloads), writes docs/coverage.md
#   make figures  the figures of docs/simulation.md from their measurements (minutes)
#   make fuzz    a million hostile calls of every exported function (minutes)
#   make clean   remove what was built (the virtual environment stays)
#
# Variables: PYTHON (the Python to make .venv with), JOBS (names of job tests),
# CASES (names of framework cases), FRAMEWORKS (where their environments are kept).

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.ONESHELL:
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules

CARGO ?= cargo
TARGET := $(or $(CARGO_TARGET_DIR),target)
TROMPE := $(TARGET)/release/trompe
VENV := .venv
FRAMEWORKS := target/frameworks
# Stamps hold "this was installed from the files that it is newer than".
VENV_DEMO := $(VENV)/.requirements.stamp
VENV_TEST := $(VENV)/.requirements-test.stamp
step = @printf '\n== %s\n' "$(1)"

.PHONY: help demo test build venv venv-test jobs searches ray-test npu frameworks figures fuzz clean tools \
	check-format check-clippy check-docs check-tidy check-rust check-python

help:
	@sed -n 's/^#   make/  make/p' Makefile

# ---- Building --------------------------------------------------------------

tools:
	@if ! command -v $(CARGO) >/dev/null; then
		echo "make: no Rust toolchain found; install one from https://rustup.rs" >&2; exit 1
	fi
	if command -v cc >/dev/null && command -v c++ >/dev/null; then exit 0; fi
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
		echo "make: installing the C and C++ compilers"
		apt-get update -qq && apt-get install -y -qq gcc g++
	else
		echo "make: a C and a C++ compiler are needed; run: sudo apt-get install gcc g++" >&2; exit 1
	fi

build: tools
	$(call step,building trompe (release))
	$(CARGO) build --release --locked -p trompe-cli
	$(CARGO) xtask dist --release

venv: $(VENV_DEMO)

venv-test: $(VENV_TEST)

$(VENV_DEMO): requirements.txt tools/venv.sh
	$(call step,virtual environment with PyTorch)
	tools/venv.sh $(VENV) requirements.txt
	touch $@

$(VENV_TEST): requirements-test.txt $(VENV_DEMO)
	$(call step,virtual environment: packages of the job tests)
	tools/venv.sh $(VENV) requirements-test.txt
	touch $@

# ---- The demo --------------------------------------------------------------

demo: build venv
	$(call step,GPT-2 124M on one H100 (emulated))
	PATH="$(CURDIR)/$(VENV)/bin:$$PATH" $(TROMPE) run --cluster h100-sxm -- python examples/gpt2/train.py

# ---- Tests -----------------------------------------------------------------

test: check-format check-python check-clippy check-docs check-tidy check-rust npu jobs searches
	@printf '\n== all checks passed\n'

check-format: tools
	$(call step,format)
	$(CARGO) fmt --all --check

check-python: venv-test
	$(call step,Python format and lint)
	$(VENV)/bin/ruff format --check
	$(VENV)/bin/ruff check
	$(VENV)/bin/python tests/hand_overs.py

check-clippy: tools
	$(call step,clippy)
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings

check-docs: tools
	$(call step,documentation)
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --locked --document-private-items

check-tidy: tools
	$(call step,tidy)
	$(CARGO) xtask tidy

# `cargo nextest` where it is installed, else the built-in runner: the same tests.
check-rust: tools
	$(call step,Rust tests)
	if $(CARGO) nextest --version >/dev/null 2>&1; then
		$(CARGO) nextest run --workspace --locked --no-fail-fast
		$(CARGO) test --workspace --locked --doc
	else
		$(CARGO) test --workspace --locked --no-fail-fast
	fi

jobs: build venv-test
	$(call step,job tests)
	$(VENV)/bin/python tests/run_jobs.py --trompe $(TROMPE) --python $(VENV)/bin/python $(JOBS)

searches: build venv-test
	$(call step,searches)
	$(VENV)/bin/python tests/run_searches.py --trompe $(TROMPE) --python $(VENV)/bin/python

# Not part of `make test`: Ray is 70 MB more, and its two nodes take a minute to come and go.
ray-test: build venv-test
	$(call step,a search on a Ray cluster that loses a node)
	test -x .venv-ray/bin/ray || { $(VENV)/bin/python -m venv .venv-ray && .venv-ray/bin/pip install -q -r requirements-search.txt; }
	$(VENV)/bin/python -c 'import site; print(site.getsitepackages()[0])' > \
		"$$(.venv-ray/bin/python -c 'import site; print(site.getsitepackages()[0])')/trompe-torch.pth"
	.venv-ray/bin/python tests/run_ray.py --trompe $(TROMPE)

# Not a part of `make test`: gigabytes of packages and an hour of work. CASES names some.
frameworks: build venv-test
	$(call step,framework cases)
	$(VENV)/bin/python frameworks/run.py --trompe $(TROMPE) --python $(VENV)/bin/python --cache $(FRAMEWORKS) $(CASES)

npu: build venv
	$(call step,NPU kernels)
	$(CARGO) run --release --locked -q -p trompe-npu --example kernels -- $(TARGET)/npu-kernels
	$(VENV)/bin/python tests/npu/run.py --trompe $(TROMPE) --kernels $(TARGET)/npu-kernels

# Processor times are this machine's; a figure says on which it was made.
figures: tools
	$(call step,figures)
	$(CARGO) xtask bench cluster -- --full --plot "$(CURDIR)/docs/figures" \
		"make figures, $$(date +%F), one core of $$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1)"

fuzz: tools
	$(call step,a million hostile calls)
	$(CARGO) test --locked -p trompe-shim --test fuzz -- --ignored a_million_hostile_calls

clean:
	$(CARGO) clean
	rm -rf trompe-out
