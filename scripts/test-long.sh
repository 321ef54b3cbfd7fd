#!/usr/bin/env bash
# The suites that make test runs at a size of a minute or so, at their full size.
#
#   scripts/test-long.sh             all of them
#   scripts/test-long.sh oracle      only those named
#
# `make torture` has the histories of killed servers, `make torture-cluster` daemons of a cluster that are hurt.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1

# One after the other: at full size they fill the machine.
export STOA_TEST_LANES=${STOA_TEST_LANES:-1}
export STOA_ORACLE_EXPRESSIONS=${STOA_ORACLE_EXPRESSIONS:-100000}
export STOA_ORACLE_DAEMONS=${STOA_ORACLE_DAEMONS:-all}
export STOA_DUCKDB_STATEMENTS=${STOA_DUCKDB_STATEMENTS:-1000000}
export STOA_TPCH_SCALE=${STOA_TPCH_SCALE:-1}
export STOA_SHARED_STATEMENTS=${STOA_SHARED_STATEMENTS:-100000}
export STOA_CANARY_CASES=${STOA_CANARY_CASES:-500}
export STOA_DISK_FAULTS=${STOA_DISK_FAULTS:-all}
export STOA_SIMULATION_SEEDS=${STOA_SIMULATION_SEEDS:-300}
export STOA_MEMBER_FAULTS=${STOA_MEMBER_FAULTS:-40}
export STOA_CLUSTER_SEEDS=${STOA_CLUSTER_SEEDS:-20000}
export STOA_ONE_STATE_ROUNDS=${STOA_ONE_STATE_ROUNDS:-20}
export STOA_ATTACK_PERCENT=${STOA_ATTACK_PERCENT:-100}
export STOA_MODEL_ALL=${STOA_MODEL_ALL:-1}
export STOA_ATTACK_CONNECTIONS=${STOA_ATTACK_CONNECTIONS:-2000}
export STOA_ATTACK_SECONDS=${STOA_ATTACK_SECONDS:-600}
export STOA_ATTACK_MESSAGES=${STOA_ATTACK_MESSAGES:-10000000}
export STOA_ATTACK_STREAMS=${STOA_ATTACK_STREAMS:-20000}
export STOA_ATTACK_STATEMENTS=${STOA_ATTACK_STATEMENTS:-1000000}
export STOA_ATTACK_TIMEOUT_MS=${STOA_ATTACK_TIMEOUT_MS:-1000}
export STOA_TRANSFORM_BYTES=${STOA_TRANSFORM_BYTES:-1000000000}
export STOA_PRUNING_CONDITIONS=${STOA_PRUNING_CONDITIONS:-5000}
export STOA_ATTACK_DEPTH=${STOA_ATTACK_DEPTH:-1000}
export STOA_PACKAGE_KINDS=${STOA_PACKAGE_KINDS:-deb rpm wheel tar image}

suites=("$@")
[ ${#suites[@]} = 0 ] && suites=(rust oracle duckdb tpch attacks hive s3 package compose)
exec scripts/test.sh "${suites[@]}"
