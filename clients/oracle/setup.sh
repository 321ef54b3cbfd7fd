#!/usr/bin/env bash
# Installs what the comparison with PostgreSQL needs: a PostgreSQL server (Debian's package) and a
# Python environment with psycopg in $STOA_TOOLS.
#
# Exit status 3 means: cannot be installed here, with the reason on stderr.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=scripts/lib.sh
. "$here/../../scripts/lib.sh"

tools="$STOA_TOOLS/oracle"

cannot() {
  printf 'cannot install a PostgreSQL server to compare with: %s\n' "$*" >&2
  exit 3
}

mkdir -p "$tools"
postgresql_bin >/dev/null || { apt_install postgresql && postgresql_bin >/dev/null; } ||
  cannot "initdb is needed (package postgresql)"
# PostgreSQL does not run as root.
if [ "$(id -u)" = 0 ]; then
  id postgres >/dev/null 2>&1 || cannot "root cannot run PostgreSQL, and there is no user postgres"
  have setpriv || cannot "setpriv is needed to run PostgreSQL as another user (package util-linux)"
fi
make_venv "$tools/venv" "$here/requirements.txt" ||
  cannot "no Python 3.10 or newer with venv, or pip could not fetch the packages"
