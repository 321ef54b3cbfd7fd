#!/usr/bin/env bash
# Drives Stoa on warehouses in S3: a real S3 server (versitygw), straight and through a proxy that is
# slow and breaks things (`stoa bench s3-proxy`), with pyarrow and PyIceberg reading the same tables.
# Started by scripts/test.sh; see CONTRIBUTING.md. By hand:
#
#   STOA_BIN=… clients/s3/run.sh [pytest's arguments]
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=scripts/lib.sh
. "$here/../../scripts/lib.sh"

"$here/setup.sh" || exit $?
export STOA_BIN=${STOA_BIN:-${STOA:-$CARGO_TARGET_DIR/release/stoa}}
export PYTHONDONTWRITEBYTECODE=1 TZ=UTC
# Nothing of this machine's own may be used.
export AWS_EC2_METADATA_DISABLED=true
unset AWS_PROFILE AWS_REGION AWS_DEFAULT_REGION AWS_ENDPOINT_URL AWS_ENDPOINT_URL_S3 AWS_SESSION_TOKEN
scratch=${STOA_SCRATCH:-$(mktemp -d "${TMPDIR:-/tmp}/stoa-s3.XXXXXX")}
trap '[ -n "${STOA_SCRATCH:-}" ] || rm -rf "$scratch"' EXIT
trap 'exit 130' INT TERM
export STOA_S3_GATEWAY="$STOA_TOOLS/s3/versitygw" HOME="$scratch"
cd "$here" || exit 1
"$STOA_TOOLS/s3/venv/bin/python" -m pytest -p no:cacheprovider -q -ra --durations=5 --basetemp="$scratch/s3" "$@" .
