#!/bin/sh
# Before files go: stops the server, unless another version takes its place ("upgrade" from dpkg, 1 from rpm).
set -e
case "${1:-}" in
  remove | 0)
    if [ -d /run/systemd/system ]; then
      systemctl disable --now stoa.service || true
    fi
    ;;
esac
