#!/bin/sh
# After files are gone. Data stays: /var/lib/stoa and the account that owns it are removed by hand.
set -e
if [ -d /run/systemd/system ]; then
  systemctl daemon-reload || true
fi
case "${1:-}" in
  purge)
    # What dpkg does not know; it removes the settings that it has installed.
    rm -f /etc/stoa/stoa.env
    rmdir /etc/stoa 2>/dev/null || true
    ;;
esac
if [ -d /var/lib/stoa ] && { [ "${1:-}" = purge ] || [ "${1:-}" = 0 ]; }; then
  echo "stoa: data in /var/lib/stoa was kept; remove it and the user stoa by hand" >&2
fi
