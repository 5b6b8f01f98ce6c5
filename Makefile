# queuescope. Two commands: `make demo` and `make test`; `make help` lists the rest.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules

# rustup's cargo is found even in a shell that has not read ~/.cargo/env yet.
export PATH := $(or $(CARGO_HOME),$(HOME)/.cargo)/bin:$(PATH)
CARGO ?= cargo

.PHONY: help demo test setup setup-test fmt clippy floors circles orphans prose licences extension python unit properties doc book models sanitize fuzz-check fuzz skipped

help: ## List the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

demo: setup ## Build, analyse the capture in data/, print the culprits, write the HTML report
	@scripts/demo.sh

test: setup-test ## Run every check: format, lints, floors, tests, documentation, fuzz targets, a crate outside
	@scripts/test.sh $(MAKE)

setup: ## Install what is missing to build
	@scripts/setup.sh build

setup-test: ## Install what is missing to run the checks
	@scripts/setup.sh test

fmt: ## Check the format
	$(CARGO) fmt --all --check

clippy: ## Run the lints, warnings denied
	$(CARGO) clippy --workspace --features queuescope/full --all-targets --locked -- -D warnings

floors: ## Check that no crate imports its own floor or a higher one
	$(CARGO) xtask floors

circles: ## Check that no more than ten files of a crate import each other in a circle
	$(CARGO) xtask circles

orphans: ## Check that every test file is compiled
	$(CARGO) xtask orphans

prose: ## Check that texts have none of the project's old words
	$(CARGO) xtask prose

licences: ## Check the licences of all dependencies
	$(CARGO) xtask licences

extension: ## Build and test a crate outside the workspace that extends the simulator
	scripts/extension.sh

python: ## Build the Python package, install it into target/python-package, and run its tests and type checks
	CARGO="$(CARGO)" scripts/python.sh

unit: ## Run unit, property, golden, documentation and command tests
	scripts/unit.sh

properties: ## Run the tests again with other cases of every property; the seed is printed
	@seed=$$(od -An -N4 -tu4 /dev/urandom | tr -d ' '); echo "PROPTEST_RNG_SEED=$$seed"; \
	  PROPTEST_RNG_SEED=$$seed scripts/unit.sh

doc: ## Build the documentation, warnings denied
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --no-deps --workspace --features queuescope/full --locked

book: ## Build the book in docs into target/book, and check its links and those of all other Markdown
	scripts/book.sh

models: ## Run the models of the log's order under loom and shuttle, and without each of its fences and checks (minutes)
	$(CARGO) xtask models

sanitize: ## Run the log's tests under the address and the thread sanitizer (needs nightly Rust)
	scripts/sanitize.sh

skipped: ## List what the last `make unit` and `make book` skipped, and why
	@scripts/skipped.sh

fuzz-check: ## Check that the fuzz targets compile (needs a C++ compiler)
	$(CARGO) check --manifest-path fuzz/Cargo.toml --bins

fuzz: ## Fuzz every target for SECONDS_EACH=60 seconds (needs nightly Rust and cargo-fuzz)
	scripts/fuzz.sh $(or $(SECONDS_EACH),60)
