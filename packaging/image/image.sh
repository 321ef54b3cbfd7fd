# Makes an OCI image without a container daemon: a layer with the C library and certificates, taken from the
# packages of the Debian or Ubuntu that the binary was built on, and a layer with the binary.
#
# There is no shell in it. Sourced by scripts/package.sh, whose functions it uses.
# shellcheck shell=bash

# What the binary needs of the system; base-files tells scanners which one it is.
IMAGE_DEBS="base-files netbase libc6 libgcc-s1 ca-certificates"
# The account in the image.
IMAGE_UID=10001

# image_root DIR: lays out the base layer below DIR.
image_root() {
  local root=$1 deb name debs
  debs=$(mktemp -d "${TMPDIR:-/tmp}/stoa-debs.XXXXXX")
  have apt-get && have dpkg-deb || fail "the image is made of Debian packages: apt-get and dpkg-deb are needed"
  # shellcheck disable=SC2086 # a list
  if ! (cd "$debs" && apt-get download -qq $IMAGE_DEBS >/dev/null 2>&1); then
    # Old lists name packages that are gone.
    apt-get update -qq >/dev/null 2>&1 || true
    # shellcheck disable=SC2086
    (cd "$debs" && apt-get download -qq $IMAGE_DEBS >/dev/null 2>"$debs/log") ||
      { cat "$debs/log" >&2; fail "cannot download $IMAGE_DEBS"; }
  fi
  mkdir -p "$root/var/lib/dpkg/status.d"
  for deb in "$debs"/*.deb; do
    name=$(dpkg-deb -f "$deb" Package)
    dpkg-deb -x "$deb" "$root"
    dpkg-deb -f "$deb" >"$root/var/lib/dpkg/status.d/$name"
  done
  rm -rf "$debs"
  # Their scripts would do this.
  mkdir -p "$root/etc/ssl/certs" "$root/tmp"
  chmod 1777 "$root/tmp"
  find "$root/usr/share/ca-certificates" -name '*.crt' -print0 | sort -z | xargs -0 cat >"$root/etc/ssl/certs/ca-certificates.crt"
  printf 'hosts: files dns\n' >"$root/etc/nsswitch.conf"
  printf 'root:x:0:0:root:/root:/usr/sbin/nologin\nstoa:x:%s:%s:Stoa:/var/lib/stoa:/usr/sbin/nologin\n' \
    "$IMAGE_UID" "$IMAGE_UID" >"$root/etc/passwd"
  printf 'root:x:0:\nstoa:x:%s:\n' "$IMAGE_UID" >"$root/etc/group"
  # What no server needs: pages, translations, character sets, lists for other programs.
  rm -rf "$root/usr/share/man" "$root/usr/share/locale" "$root/usr/share/lintian" "$root/usr/share/base-files" \
    "$root/usr/share/info" "$root"/usr/lib/*/gconv "$root/usr/share/ca-certificates" "$root/usr/sbin/update-ca-certificates"
  find "$root/usr/share/doc" -type f ! -name copyright -delete
}

# build_image BINARY VERSION ARCH FILE WORK: writes FILE, an OCI image layout as a tar, which `docker load`,
# `podman load` and `skopeo copy oci-archive:…` read.
build_image() {
  local stoa=$1 version=$2 arch=$3 file=$4 work=$5 image
  need_command umoci umoci || fail "umoci is needed to make the image (package umoci)"
  [ "$(id -u)" = 0 ] || fail "the image is made as root, since it has files of two accounts"
  mkdir -p "$work/base" "$work/top/usr/bin" "$work/top/var/lib/stoa"
  image="$work/layout:$version"
  image_root "$work/base"
  ln "$stoa" "$work/top/usr/bin/stoa"
  chown "$IMAGE_UID:$IMAGE_UID" "$work/top/var/lib/stoa"
  chmod 0700 "$work/top/var/lib/stoa"
  {
    umoci init --layout "$work/layout"
    umoci new --image "$image"
    umoci insert --image "$image" "$work/base" /
    umoci insert --image "$image" "$work/top" /
    # Whoever starts it decides who may reach it: listen says so, and the server refuses to start on all
    # addresses before TLS and access control are on or --insecure-listen is given.
    umoci config --image "$image" --os linux --architecture "$arch" \
      --config.user "$IMAGE_UID:$IMAGE_UID" --config.workingdir /var/lib/stoa --config.volume /var/lib/stoa \
      --config.env PATH=/usr/bin --config.env HOME=/var/lib/stoa --config.env STOA_LISTEN=0.0.0.0 \
      --config.env STOA_WAREHOUSE=/var/lib/stoa/warehouse \
      --config.entrypoint /usr/bin/stoa --config.cmd server --config.stopsignal SIGTERM \
      --config.exposedports 15002/tcp --config.exposedports 5433/tcp --config.exposedports 15003/tcp \
      --config.exposedports 10000/tcp \
      --config.label org.opencontainers.image.title=stoa \
      --config.label "org.opencontainers.image.version=$version" \
      --config.label org.opencontainers.image.licenses=Apache-2.0
    umoci gc --layout "$work/layout"
  } >"$work/log" 2>&1 || { cat "$work/log" >&2; fail "umoci could not make the image"; }
  name_image "$work/layout/index.json" "stoa:$version"
  tar --create --file "$file" --directory "$work/layout" --owner=0 --group=0 --numeric-owner --sort=name \
    blobs index.json oci-layout
}

# name_image INDEX NAME: the name under which programs that load the image show it. umoci knows tags only.
name_image() {
  "$(python_here)" - "$1" "$2" <<'PYTHON'
import json, sys
path, name = sys.argv[1:]
with open(path) as file:
    index = json.load(file)
for manifest in index["manifests"]:
    manifest.setdefault("annotations", {})["io.containerd.image.name"] = "docker.io/library/" + name
with open(path, "w") as file:
    json.dump(index, file)
PYTHON
}
