#!/usr/bin/env bash
# Installs what TPC-H needs: DuckDB with its generator of TPC-H, in $STOA_TOOLS.
#
# Exit status 3 means: cannot be installed here, with the reason on stderr.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=scripts/lib.sh
. "$here/../../scripts/lib.sh"

make_venv "$STOA_TOOLS/tpch/venv" "$here/requirements.txt" || {
  printf 'no Python 3.10 or newer with venv, or pip could not fetch the packages\n' >&2
  exit 3
}
