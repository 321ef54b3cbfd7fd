"""The tarball, in a Debian without anything else."""

import os
import re

import pytest
from conftest import VISITS, needs, run

pytestmark = needs("tar")


def test_it_runs_where_it_is_unpacked(packages, tmp_path):
    tar = os.environ.get("STOA_PACKAGE_ROOT")
    if not tar:
        pytest.skip("no clean root: it needs root and mmdebstrap")
    run("tar", "--extract", "--file", tar, "--directory", tmp_path, "--numeric-owner")
    run("tar", "--extract", "--file", packages["tar"][0], "--directory", tmp_path / "opt")
    (top,) = (tmp_path / "opt").iterdir()
    (tmp_path / "root/visits.csv").write_text(VISITS)
    script = f"""
set -eu
cd /root
PATH=/opt/{top.name}/bin:$PATH
stoa load visits.csv --into visits --create --quiet
stoa server --http-port 15072 --pg-port 0 --flight-port 0 --hive-port 0 >/dev/null 2>log & server=$!
stoa ready --http-port 15072 --wait 60s >/dev/null
stoa sql --http-port 15072 --format csv --no-header -c 'SELECT count(*) FROM visits'
kill $server
wait $server
ldd /opt/{top.name}/bin/stoa
"""
    said = run("chroot", tmp_path, "/bin/sh", "-c", script)
    assert said.startswith("3\n"), said
    # It says what it needs: all libraries but the loader and the kernel's.
    install = (top / "INSTALL").read_text()
    named = set(re.search(r"these libraries: ([^:]*)\. ", install)[1].split())
    found = {line.split()[0] for line in said.splitlines() if "=>" in line}
    assert found <= named, (found, named)
    assert (top / "share/man/man1/stoa-load.1.gz").exists()
