# `make demo` and `make test` need no other set-up; `make help` lists the rest.

# Setting a shell other than make's default also makes make pass the exported PATH below to every command.
SHELL := /bin/bash

# rustup's folder may be missing from PATH, and so may the one where mkfs and losetup live.
export PATH := $(or $(CARGO_HOME),$(HOME)/.cargo)/bin:$(PATH):/usr/sbin:/sbin

# A separate folder: plain cargo compiles RocksDB differently, and the builds would undo each other.
export CARGO_TARGET_DIR ?= $(CURDIR)/target/make
RELEASE := $(CARGO_TARGET_DIR)/release/stacktune

# RocksDB's library, compiled once for all builds; if that fails, cargo compiles it.
WITH_ROCKSDB = eval "$$(scripts/rocksdb.sh)" &&

.DEFAULT_GOAL := help
.PHONY: help demo lab test quick soak bench build check picture demo-check dist

help: ## this list
	@sed -n 's/^\([a-z-]*\):.* ## /  make \1\t/p' Makefile | expand -t 20
	@echo
	@echo "  NO_INSTALL=1        only names the packages that are missing"

demo: ## install what is missing, build without RocksDB, and open the demo
	@scripts/setup.sh demo
	@cargo run --release --locked --no-default-features

demo-check: ## build the demo and try it; FRESH=1 builds from nothing and measures that
	@scripts/setup.sh demo
	@scripts/demo-check.sh

lab: ## try every rebuild with nothing at risk: a virtual machine with four NVMe drives
	@scripts/setup.sh lab
	@$(WITH_ROCKSDB) cargo build --release --locked
	@tests/rig.sh --terminal --drives 4 --size $(or $(SIZE),1G) -- $(or $(RUN),$(RELEASE) lab)

test: ## install what is missing and run all tests; lists those that can't run here
	@scripts/test.sh

quick: ## the house's tests and the unit tests, all or those that NAME selects
	@scripts/test.sh quick $(NAME)

soak: ## the whole matrices, part by part; resumes where it stopped; LIST=1 lists them, PART=name runs one
	@scripts/soak.sh

bench: ## install what is missing and measure stacktune's own cost, beside fio
	@scripts/setup.sh bench
	@$(WITH_ROCKSDB) cargo build --release --locked
	@python3 scripts/bench.py $(BENCH)

build: ## the release binary, with RocksDB
	@scripts/setup.sh build
	@$(WITH_ROCKSDB) cargo build --release --locked
	@echo "Built $(RELEASE)"

picture: build ## draw the demo's moving screen for the README, from a real run of some minutes
	@$(RELEASE) picture --animate --out assets/screen.svg --for 58s \
		--turn io.buffering=cached --turn io.buffering=direct --turn wal.sync=none \
		--duel scan.depth=4,32 --duel-figure scan

dist: ## the archives and packages of a release, in target/dist
	@scripts/dist.sh

check: ## formatting and clippy
	@scripts/setup.sh build
	cargo fmt --check
	@$(WITH_ROCKSDB) cargo clippy --all-targets --locked -- -D warnings
