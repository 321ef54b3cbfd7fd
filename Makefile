# One target per task; CONTRIBUTING.md says when to use which. `make` alone lists them.

SHELL := /bin/bash

.DEFAULT_GOAL := help
.PHONY: help demo build test test-long lint bench torture interop clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-9s %s\n", $$1, $$2}'

demo: ## build Stoa, load data, answer reports, open the console (DEMO_EXIT=1: exit at the end)
	@scripts/demo.sh

build: ## build the release binary and say where it is
	@scripts/build.sh

test: ## run all Rust tests, then real clients against a real server
	@scripts/test.sh

test-long: ## the suites that have a larger size than make test runs, at that size
	@scripts/test-long.sh

lint: ## format, clippy, console types, shell scripts, licences and bans
	@scripts/lint.sh

bench: ## measure the report workload: reports/hour, latency, CPU and bytes per report
	@scripts/bench.sh

torture: ## kill servers while they take in rows, and look whether anything is lost
	@scripts/torture.sh

interop: ## read and write the same tables with Spark, PyIceberg and DuckDB
	@scripts/test.sh interop

clean: ## remove what demo and tests left in the checkout, and this project's build results
	@scripts/clean.sh
