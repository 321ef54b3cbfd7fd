#!/usr/bin/env bash
# Installs what the checks of S3 need: versitygw, an S3 server that keeps objects as files and checks
# signatures, and a Python environment with boto3 and PyIceberg. All of it goes to $STOA_TOOLS.
#
# Exit status 3 means: cannot be installed here, with the reason on stderr.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=scripts/lib.sh
. "$here/../../scripts/lib.sh"

tools="$STOA_TOOLS/s3"
version=v1.8.0

cannot() {
  printf 'cannot install the S3 tools: %s\n' "$*" >&2
  exit 3
}

mkdir -p "$tools"
if [ ! -x "$tools/versitygw-$version" ]; then
  need_command go golang-go || cannot "Go is needed to build versitygw"
  note "versitygw $version"
  GOBIN="$tools" go install "github.com/versity/versitygw/cmd/versitygw@$version" </dev/null >&2 ||
    cannot "go could not build versitygw $version (it wants a recent Go)"
  mv "$tools/versitygw" "$tools/versitygw-$version"
fi
ln -sf "versitygw-$version" "$tools/versitygw"

make_venv "$tools/venv" "$here/requirements.txt" ||
  cannot "no Python 3.10 or newer with venv, or pip could not fetch the packages"

# Without it, the test that cuts daemons off is skipped.
need_command ip iproute2 || note "ip is not installed (package iproute2)"

# For the cluster, whose catalog is in PostgreSQL.
postgresql_bin >/dev/null || { apt_install postgresql && postgresql_bin >/dev/null; } ||
  cannot "initdb is needed (package postgresql)"
