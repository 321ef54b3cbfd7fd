#!/bin/sh
# The life of a package in a fresh system with systemd: install, start, load, query, upgrade, remove. Runs inside of
# it as its only job, prints `step: …` before each step and `done` at the end; what fails ends it.
#
#   lifecycle.sh deb|rpm OLD NEW
set -eu
kind=$1 old=$2 new=$3
step() { printf 'step: %s\n' "$*"; }
same() { [ "$1" = "$2" ] || { printf 'expected %s, not %s\n' "$2" "$1"; exit 1; }; }
install_package() {
  case "$kind" in
    deb) dpkg --install "$1" ;;
    # The system is Debian, whose packages rpm does not know.
    rpm) rpm --upgrade --nodeps "$1" ;;
  esac
}
count() { stoa sql --format csv --no-header -c 'SELECT count(*), count(DISTINCT account) FROM visits'; }
ready() { stoa ready --wait 60s || { journalctl --no-pager -u stoa -n 50; exit 1; }; }
as_stoa() { setpriv --reuid=stoa --regid=stoa --clear-groups env --chdir=/var/lib/stoa "$@"; }

step install "$old"
install_package "$old"
same "$(stat -c '%U:%G %a' /var/lib/stoa)" "stoa:stoa 700"
same "$(stat -c '%U:%G %a' /etc/stoa)" "root:stoa 750"
same "$(stat -c '%U:%G %a' /etc/stoa/stoa.toml)" "root:stoa 640"
same "$(systemctl is-active stoa || true)" inactive
test -s /usr/share/man/man1/stoa-load.1.gz
test -s /usr/share/bash-completion/completions/stoa

step settings
printf '\n# Ours.\nhttp_port = 15052\n' >>/etc/stoa/stoa.toml
export STOA_CONFIG=/etc/stoa/stoa.toml

step start
systemctl enable --now stoa
ready
same "$(systemctl show -p User --value stoa)" stoa

step load
as_stoa stoa load /visits.csv --into visits --create --order-by 'account, day'
stoa sql -c "INSERT INTO visits VALUES (4, DATE '2025-02-02', 9)"
same "$(count)" 4,3

step restart
systemctl restart stoa
ready
same "$(count)" 4,3

step upgrade to "$new"
before=$(systemctl show -p MainPID --value stoa)
install_package "$new"
ready
grep -q '^http_port = 15052$' /etc/stoa/stoa.toml
after=$(systemctl show -p MainPID --value stoa)
[ "$before" != "$after" ] || { echo "the old server still runs"; exit 1; }
same "$(systemctl is-enabled stoa)" enabled
same "$(count)" 4,3

step hardening
systemd-analyze security --no-pager stoa | tail -n 1

step remove
case "$kind" in
  deb) dpkg --remove stoa ;;
  rpm) rpm --erase stoa ;;
esac
test ! -e /usr/bin/stoa
same "$(systemctl is-active stoa || true)" inactive
test -d /var/lib/stoa/warehouse/public/visits
case "$kind" in
  deb)
    test -e /etc/stoa/stoa.toml
    dpkg --purge stoa
    test ! -e /etc/stoa
    ;;
  # Settings that were changed are kept beside.
  rpm) grep -q 15052 /etc/stoa/stoa.toml.rpmsave ;;
esac
test -d /var/lib/stoa/warehouse/public/visits
echo "done"
