#!/bin/sh
# After files are there: makes the account and its directory, hands the settings to it, and starts a server that
# ran before an upgrade again. Never starts one that did not run.
set -e

if ! getent group stoa >/dev/null; then
  groupadd --system stoa
fi
if ! getent passwd stoa >/dev/null; then
  useradd --system --gid stoa --home-dir /var/lib/stoa --no-create-home --shell /usr/sbin/nologin \
    --comment "Stoa report server" stoa
fi

if [ ! -d /var/lib/stoa ]; then
  mkdir -m 0700 /var/lib/stoa
  chown stoa:stoa /var/lib/stoa
fi
chgrp stoa /etc/stoa /etc/stoa/stoa.toml
chmod 0750 /etc/stoa
chmod 0640 /etc/stoa/stoa.toml

if [ -d /run/systemd/system ]; then
  systemctl daemon-reload || true
  systemctl try-restart stoa.service || true
fi
