#!/usr/bin/env bash
# Installs what the attacks need: pytest in $STOA_TOOLS. They speak each protocol over plain sockets.
#
# Exit status 3 means: cannot be installed here, with the reason on stderr.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=scripts/lib.sh
. "$here/../../scripts/lib.sh"

mkdir -p "$STOA_TOOLS/attacks"
make_venv "$STOA_TOOLS/attacks/venv" "$here/requirements.txt" || {
  printf 'cannot install pytest: no Python 3.10 or newer with venv, or pip could not fetch it\n' >&2
  exit 3
}
