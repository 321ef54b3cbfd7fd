# One target per task; CONTRIBUTING.md says when to use which. `make` alone lists them.

SHELL := /bin/bash

.DEFAULT_GOAL := help
.PHONY: help demo cluster build package docs test test-long lint bench torture torture-cluster interop clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-15s %s\n", $$1, $$2}'

demo: ## build Stoa, load data, run reports, open the console (DEMO_EXIT=1: exit at the end)
	@scripts/demo.sh

cluster: ## start three daemons, a PostgreSQL and an S3 stand-in on this machine (CLUSTER_EXIT=1: exit at the end)
	@scripts/cluster.sh

build: ## build the release binary and print its path
	@scripts/build.sh

package: ## pack the release binary as tarball, deb, rpm, Python wheel and OCI image (STOA_BIN=FILE: that binary)
	@scripts/package.sh

docs: ## build the documents as a site with search, all links checked, and print where it is
	@scripts/docs.sh

test: ## run all Rust tests, then real clients against a real server
	@scripts/test.sh

test-long: ## run at full size the suites that make test keeps small
	@scripts/test-long.sh

lint: ## format, layers, documents, clippy, console types, shell scripts, licences and bans
	@scripts/lint.sh

bench: ## measure the report workload: reports/hour, latency, CPU and bytes per report
	@scripts/bench.sh

torture: ## kill servers during writes, and check that nothing is lost
	@scripts/torture.sh

torture-cluster: ## kill, freeze and end daemons of a cluster during writes, and check that nothing is lost
	@scripts/torture-cluster.sh

interop: ## read and write the same tables with Spark, PyIceberg and DuckDB
	@scripts/test.sh interop

clean: ## remove what demo and tests left behind, and this project's build results
	@scripts/clean.sh
