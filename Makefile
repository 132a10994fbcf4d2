# `make demo` and `make test` are all the set-up there is; `make help` lists the rest.

# A shell that is not make's default also makes the exported PATH below hold for every command.
SHELL := /bin/bash

# rustup's folder may be missing from PATH, and so may the one where mkfs and losetup live.
export PATH := $(or $(CARGO_HOME),$(HOME)/.cargo)/bin:$(PATH):/usr/sbin:/sbin

.DEFAULT_GOAL := help
.PHONY: help demo lab test bench build check picture

help: ## this list
	@sed -n 's/^\([a-z]*\):.* ## /  make \1\t/p' Makefile | expand -t 16
	@echo
	@echo "  NO_INSTALL=1    only names the packages that are missing"

demo: ## install what is missing, build, and open the demo
	@scripts/setup.sh demo
	@cargo run --release --locked

lab: ## try every rebuild with nothing at risk: a virtual machine with four NVMe drives
	@scripts/setup.sh lab
	@cargo build --release --locked
	@tests/rig.sh --terminal --drives 4 --size $(or $(SIZE),1G) -- \
		$(or $(RUN),$(or $(CARGO_TARGET_DIR),target)/release/stacktune lab)

test: ## install what is missing and run all tests; lists those that can't run here
	@scripts/test.sh

bench: ## install what is missing and measure stacktune's own cost, beside fio
	@scripts/setup.sh bench
	@cargo build --release --locked
	@python3 scripts/bench.py $(BENCH)

build: ## the release binary
	@scripts/setup.sh build
	@cargo build --release --locked

picture: build ## draw the demo's screen for the README, from a real run
	@cargo run --release --locked -- picture --out assets/screen.svg --for 45s \
		--turn scan.depth=32 --turn wal.sync_every=8 --turn io.interface=libaio

check: ## formatting and clippy
	@scripts/setup.sh build
	cargo fmt --check
	cargo clippy --all-targets --locked -- -D warnings
