"""The deb and the rpm, in a Debian of their own whose systemd runs."""

import os
import pathlib
import shutil
import subprocess

import pytest
from conftest import VISITS, needs, run

HERE = pathlib.Path(__file__).resolve().parent

# Runs the script once the system is up, and powers it off.
JOB = """
[Unit]
After=multi-user.target
[Service]
Type=oneshot
ExecStart=/bin/sh -c '/lifecycle.sh {arguments} >/result 2>&1; echo $? >/code'
ExecStopPost=/usr/bin/systemctl --no-block poweroff
TimeoutStartSec=240
"""


@pytest.fixture
def system(tmp_path):
    """A directory with a fresh system."""
    tar = os.environ.get("STOA_PACKAGE_ROOT")
    if not tar:
        pytest.skip("no clean root: it needs root, mmdebstrap and systemd-nspawn")
    root = tmp_path / "system"
    root.mkdir()
    run("tar", "--extract", "--file", tar, "--directory", root, "--numeric-owner")
    yield root
    shutil.rmtree(root, ignore_errors=True)


@pytest.mark.parametrize("kind", [pytest.param(kind, marks=needs(kind)) for kind in ("deb", "rpm")])
def test_a_package_lives_and_goes(kind, packages, system):
    names = [f"/stoa-{number}.{kind}" for number in (1, 2)]
    for file, name in zip(packages[kind], names):
        shutil.copy(file, system / name[1:])
    shutil.copy(HERE / "lifecycle.sh", system / "lifecycle.sh")
    (system / "visits.csv").write_text(VISITS)
    units = system / "etc/systemd/system"
    (units / "lifecycle.service").write_text(JOB.format(arguments=" ".join([kind, *names])))
    wants = units / "default.target.wants"
    wants.mkdir(exist_ok=True)
    (wants / "lifecycle.service").symlink_to("../lifecycle.service")
    # A network of its own, so that its ports are free.
    boot = ["systemd-nspawn", "--quiet", "--register=no", "--keep-unit", "--private-network", "--boot"]
    with open(system.parent / "boot.log", "w+") as log:
        try:
            subprocess.run(
                [*boot, f"--directory={system}", f"--machine=stoa-{kind}"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, check=False, timeout=300,
            )
        except subprocess.TimeoutExpired:
            pass
        log.seek(0)
        booted = log.read()
    if "Welcome to" not in booted:
        pytest.skip(f"systemd does not boot here: {booted[-500:]}")
    result = (system / "result").read_text() if (system / "result").exists() else booted
    print(result)
    assert (system / "code").read_text().strip() == "0", result
    assert result.rstrip().endswith("done"), result
