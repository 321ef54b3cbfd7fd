#!/usr/bin/env bash
# Packs the binary and tries the packages where nothing else of Stoa is: install, start, load a file, query,
# install a newer version over it, remove. Started by scripts/test.sh; see CONTRIBUTING.md. By hand:
#
#   STOA_BIN=… clients/package/run.sh [pytest's arguments]
#
#   STOA_PACKAGE_KINDS="deb rpm wheel tar image"   which ones; by default deb and wheel
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=scripts/lib.sh
. "$here/../../scripts/lib.sh"

export STOA_BIN=${STOA_BIN:-${STOA:-$CARGO_TARGET_DIR/release/stoa}}
export STOA_PACKAGE_KINDS=${STOA_PACKAGE_KINDS:-deb wheel}
scratch=${STOA_SCRATCH:-$(mktemp -d "${TMPDIR:-/tmp}/stoa-packages.XXXXXX")}
trap '[ -n "${STOA_SCRATCH:-}" ] || rm -rf "$scratch"' EXIT
trap 'exit 130' INT TERM
make_venv "$STOA_TOOLS/package/tests" "$here/requirements.txt" || exit 3

# Debian without anything else, with systemd; made once, and kept with the other tools.
export STOA_PACKAGE_ROOT="$STOA_TOOLS/package/root.tar"
make_root() {
  [ ! -f "$STOA_PACKAGE_ROOT" ] || return 0
  [ "$(id -u)" = 0 ] || { note "not root: packages cannot be installed in a clean root"; return 1; }
  need_command mmdebstrap mmdebstrap || return 1
  note "a clean Debian (mmdebstrap; once, kept in $STOA_TOOLS)"
  local suite
  suite=$(. /etc/os-release && printf '%s' "${VERSION_CODENAME:-stable}")
  mmdebstrap --quiet --format=tar --variant=essential --include=passwd,systemd,systemd-sysv,rpm,ca-certificates "$suite" \
    "$STOA_PACKAGE_ROOT.part" >"$scratch/root.log" 2>&1 </dev/null &&
    mv "$STOA_PACKAGE_ROOT.part" "$STOA_PACKAGE_ROOT" && return 0
  tail -n 5 "$scratch/root.log" >&2
  rm -f "$STOA_PACKAGE_ROOT.part"
  return 1
}
case " $STOA_PACKAGE_KINDS " in
  *" deb "* | *" rpm "* | *" tar "*)
    make_root && need_command systemd-nspawn systemd-container || export STOA_PACKAGE_ROOT=
    ;;
esac
case " $STOA_PACKAGE_KINDS " in
  *" image "*)
    need_command umoci umoci && need_command runc runc && need_command skopeo skopeo ||
      note "an image is not tried without umoci, runc and skopeo"
    ;;
esac

export PYTHONDONTWRITEBYTECODE=1
cd "$here" || exit 1
"$STOA_TOOLS/package/tests/bin/python" -m pytest -p no:cacheprovider -q -ra --durations=5 \
  --basetemp="$scratch/package" "$@" .
