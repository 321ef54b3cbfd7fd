#!/usr/bin/env bash
# Packs one release binary as tarball, deb, rpm, Python wheel and OCI image.
#
#   scripts/package.sh                  all of them, of a release binary that is built first
#   scripts/package.sh deb wheel        only these: tar, deb, rpm, wheel, image
#
#   STOA_BIN=FILE                 pack this binary instead of building one
#   STOA_PACKAGES=DIR             where packages go (default: $CARGO_TARGET_DIR/packages)
#   STOA_PACKAGE_VERSION=X.Y.Z    another version than Cargo.toml's; tests of upgrades use it
#
# The version is that of Cargo.toml. What a package needs of the C library is read from the binary.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"

nfpm_version=2.45.2
kinds=("$@")
[ ${#kinds[@]} -gt 0 ] || kinds=(tar deb rpm wheel image)
for kind in "${kinds[@]}"; do
  case "$kind" in
    tar | deb | rpm | wheel | image) ;;
    *) fail "there is no package called $kind; choose from tar, deb, rpm, wheel, image" ;;
  esac
done

# A directory or binary may be named relative to where the caller is.
packages=$(realpath -m "${STOA_PACKAGES:-$CARGO_TARGET_DIR/packages}")
if [ -n "${STOA_BIN:-}" ]; then
  stoa=$(realpath -m "$STOA_BIN")
  [ -x "$stoa" ] || fail "STOA_BIN: $stoa is no program"
else
  "$STOA_ROOT/scripts/build.sh"
  stoa="$CARGO_TARGET_DIR/release/stoa"
fi
cd "$STOA_ROOT"

version=${STOA_PACKAGE_VERSION:-$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"$/\1/p' Cargo.toml)}
[ -n "$version" ] || fail "Cargo.toml has no version"
machine=$(uname -m)
case "$machine" in
  x86_64) arch=amd64 ;;
  aarch64) arch=arm64 ;;
  *) fail "packages are made for x86_64 and aarch64, not for $machine" ;;
esac
need_command readelf binutils || fail "readelf and strip are needed (package binutils)"

work=$(mktemp -d "${TMPDIR:-/tmp}/stoa-package.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
mkdir -p "$packages"

# ---- what all packages have: the binary without symbols, manual pages, completions, unit, settings

tree="$work/tree"
doc="$tree/usr/share/doc/stoa"
step "Stoa $version for $machine"
mkdir -p "$tree/usr/bin" "$tree/etc/stoa" "$tree/usr/lib/systemd/system" "$tree/usr/lib/sysusers.d" "$doc" \
  "$tree/usr/share/man/man1" "$tree/usr/share/bash-completion/completions" \
  "$tree/usr/share/zsh/vendor-completions" "$tree/usr/share/zsh/site-functions" \
  "$tree/usr/share/fish/vendor_completions.d"
strip -o "$tree/usr/bin/stoa" "$stoa"
chmod 0755 "$tree/usr/bin/stoa"
stoa="$tree/usr/bin/stoa"
# The newest version of the C library that a symbol asks for.
glibc=$(readelf -V "$stoa" | grep -oE 'GLIBC_[0-9.]+' | sort -Vu | tail -n 1 | cut -d_ -f2)
libraries=$(readelf -d "$stoa" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | sort | paste -sd' ')
note "$("$stoa" --version), $(du -h "$stoa" | cut -f1) without symbols, needs glibc $glibc ($libraries)"

"$stoa" man "$tree/usr/share/man/man1"
gzip -9n "$tree/usr/share/man/man1/"*.1
"$stoa" completions bash >"$tree/usr/share/bash-completion/completions/stoa"
"$stoa" completions zsh >"$tree/usr/share/zsh/vendor-completions/_stoa"
cp "$tree/usr/share/zsh/vendor-completions/_stoa" "$tree/usr/share/zsh/site-functions/_stoa"
"$stoa" completions fish >"$tree/usr/share/fish/vendor_completions.d/stoa.fish"
# The comment at its top is about installing it by hand.
sed -e '/^\[Unit\]/,$!d' -e 's#/usr/local/bin/stoa#/usr/bin/stoa#' deploy/stoa.service \
  >"$tree/usr/lib/systemd/system/stoa.service"
cp packaging/linux/sysusers.conf "$tree/usr/lib/sysusers.d/stoa.conf"
cp packaging/stoa.toml "$tree/etc/stoa/stoa.toml"
cp LICENSE "$doc/copyright"
cp README.md CHANGELOG.md "$doc/"

# made FILE: says what was made.
made() { note "$1 ($(du -h "$1" | cut -f1))"; }

# ---- tarball

pack_tar() {
  local name="stoa-$version-$machine-linux" top="$work/tar/stoa-$version-$machine-linux"
  mkdir -p "$top/bin" "$top/etc" "$top/systemd" "$top/share"
  cp "$stoa" "$top/bin/stoa"
  cp packaging/stoa.toml "$top/etc/stoa.toml"
  cp deploy/stoa.service "$top/systemd/stoa.service"
  cp -r "$tree/usr/share/man" "$tree/usr/share/bash-completion" "$tree/usr/share/fish" "$top/share/"
  mkdir -p "$top/share/zsh" && cp -r "$tree/usr/share/zsh/site-functions" "$top/share/zsh/"
  cp LICENSE README.md CHANGELOG.md "$top/"
  cat >"$top/INSTALL" <<TEXT
Stoa $version for Linux on $machine

Needs glibc $glibc or newer and these libraries: $libraries. Nothing else is needed to start:

  bin/stoa server                       data in ./stoa-data, console at http://127.0.0.1:15002

To install it for all users: copy bin/stoa to /usr/local/bin, share/* to /usr/local/share. To run it as a
service: copy systemd/stoa.service to /etc/systemd/system and etc/stoa.toml to /etc/stoa; the comment in the
unit says what else it needs.
TEXT
  tar --create --file - --directory "$work/tar" --owner=0 --group=0 --numeric-owner --sort=name "$name" |
    gzip -6n >"$packages/$name.tar.gz"
  made "$packages/$name.tar.gz"
}

# ---- deb and rpm

# need_nfpm: the packer, built from source once and kept with the other tools.
need_nfpm() {
  local bin="$STOA_TOOLS/package/nfpm-$nfpm_version"
  nfpm="$bin/nfpm"
  [ ! -x "$nfpm" ] || return 0
  need_command go golang-go || fail "go is needed to build nfpm, which makes deb and rpm (package golang-go)"
  note "building nfpm $nfpm_version (once; kept in $STOA_TOOLS)"
  GOBIN="$bin" GOFLAGS=-mod=mod go install "github.com/goreleaser/nfpm/v2/cmd/nfpm@v$nfpm_version" \
    >"$work/nfpm.log" 2>&1 </dev/null || { tail -n 5 "$work/nfpm.log" >&2; fail "nfpm does not build"; }
}

# pack_linux deb|rpm
pack_linux() {
  local file
  need_nfpm
  rm -rf "$work/linux"
  mkdir "$work/linux"
  cp packaging/linux/*.sh packaging/linux/nfpm.yaml "$work/linux/"
  cp -rl "$tree" "$work/linux/tree"
  # Each family of systems has its own place for completions of zsh.
  case "$1" in
    deb)
      rm -r "$work/linux/tree/usr/share/zsh/site-functions"
      file="stoa_${version}_$arch.deb"
      ;;
    rpm)
      rm -r "$work/linux/tree/usr/share/zsh/vendor-completions"
      file="stoa-$version-1.$machine.rpm"
      ;;
  esac
  (cd "$work/linux" && STOA_PACKAGE_VERSION="$version" STOA_PACKAGE_ARCH="$arch" STOA_PACKAGE_GLIBC="$glibc" \
    "$nfpm" package --packager "$1" --target "$packages/$file" >"$work/nfpm.log" 2>&1) ||
    { cat "$work/nfpm.log" >&2; fail "nfpm could not make the $1"; }
  made "$packages/$file"
}

# ---- wheel

pack_wheel() {
  make_venv "$STOA_TOOLS/package/venv" packaging/python/requirements.txt ||
    fail "a Python environment is needed to make the wheel"
  cp -r packaging/python "$work/wheel"
  mkdir "$work/wheel/bin"
  ln "$stoa" "$work/wheel/bin/stoa"
  # The tag says which systems pip may install it on: those whose C library is new enough.
  (cd "$work/wheel" && STOA_PACKAGE_VERSION="$version" STOA_PACKAGE_TAG="py3-none-manylinux_${glibc/./_}_$machine" \
    "$STOA_TOOLS/package/venv/bin/python" -m hatchling build -t wheel -d "$packages" >"$work/wheel.log" 2>&1) ||
    { cat "$work/wheel.log" >&2; fail "hatchling could not make the wheel"; }
  made "$packages/stoa_server-$version-py3-none-manylinux_${glibc/./_}_$machine.whl"
}

# ---- image

pack_image() {
  # shellcheck source=packaging/image/image.sh
  . packaging/image/image.sh
  build_image "$stoa" "$version" "$arch" "$packages/stoa-$version-$arch.oci.tar" "$work/image"
  made "$packages/stoa-$version-$arch.oci.tar"
}

for kind in "${kinds[@]}"; do
  step "$kind"
  start=$(now_ms)
  case "$kind" in
    deb | rpm) pack_linux "$kind" ;;
    *) "pack_$kind" ;;
  esac
  note "$(seconds_since "$start")"
done
