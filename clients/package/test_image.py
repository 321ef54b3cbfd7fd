"""The OCI image: read by another program, and run as a container."""

import json
import os
import shutil
import subprocess

import pytest
from conftest import VERSIONS, VISITS, needs, run

pytestmark = needs("image")


@pytest.fixture(scope="module")
def bundle(packages, tmp_path_factory):
    """The image unpacked for a runtime, with the configuration that its own one becomes."""
    for tool in ("umoci", "runc", "skopeo"):
        if not shutil.which(tool):
            pytest.skip(f"no {tool} here")
    place = tmp_path_factory.mktemp("image")
    layout = place / "layout"
    layout.mkdir()
    run("tar", "--extract", "--file", packages["image"][0], "--directory", layout)
    run("umoci", "unpack", "--image", f"{layout}:{VERSIONS[0]}", place / "bundle")
    return place / "bundle"


def volume_of(bundle):
    """A directory like the one in the image, as a program that makes a volume copies it."""
    volume = bundle.parent / "volume"
    if not volume.exists():
        inside = (bundle / "rootfs/var/lib/stoa").stat()
        volume.mkdir(mode=inside.st_mode & 0o777)
        os.chown(volume, inside.st_uid, inside.st_gid)
    return volume


def container(bundle, arguments, name, **options):
    """Runs `stoa` with these arguments in a container on this machine's network, with a volume for its data."""
    path = bundle / "config.json"
    config = json.loads(path.read_text())
    config["process"]["terminal"] = False
    config["process"]["args"] = ["/usr/bin/stoa", *arguments]
    kept = [space for space in config["linux"]["namespaces"] if space["type"] not in ("network", "cgroup")]
    config["linux"] |= {"namespaces": kept, "resources": {}}
    volume = {"destination": "/var/lib/stoa", "type": "none", "source": str(volume_of(bundle)), "options": ["rbind"]}
    mounts = [mount for mount in config["mounts"] if mount["destination"] != volume["destination"]]
    config["mounts"] = [*mounts, volume]
    path.write_text(json.dumps(config))
    return subprocess.Popen(["runc", "run", "--bundle", bundle, name], text=True, **options)


def test_others_read_it(packages):
    if not shutil.which("skopeo"):
        pytest.skip("no skopeo here")
    seen = json.loads(run("skopeo", "inspect", "--config", f"oci-archive:{packages['image'][0]}"))
    config = seen["config"]
    assert (config["Entrypoint"], config["Cmd"]) == (["/usr/bin/stoa"], ["server"])
    assert config["User"] == "10001:10001" and config["WorkingDir"] == "/var/lib/stoa"
    assert "15002/tcp" in config["ExposedPorts"] and "/var/lib/stoa" in config["Volumes"]
    assert config["Labels"]["org.opencontainers.image.version"] == VERSIONS[0]


def test_it_serves_only_when_told_who_may_come(bundle):
    ended = container(bundle, ["server"], "stoa-refuses", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    _, said = ended.communicate(timeout=60)
    assert ended.returncode == 2 and "--insecure-listen" in said, said


def test_it_starts_loads_answers_and_keeps_its_data(bundle):
    data = volume_of(bundle)
    (data / "visits.csv").write_text(VISITS)
    loading = container(
        bundle, ["load", "visits.csv", "--into", "visits", "--create"], "stoa-load",
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )
    said, _ = loading.communicate(timeout=60)
    assert loading.returncode == 0 and said.startswith("loaded 3 rows"), said
    assert (data / "warehouse/public/visits").stat().st_uid == 10001
    for name in ("stoa-first", "stoa-second"):
        ports = ["--http-port", "0", "--pg-port", "0", "--flight-port", "0", "--hive-port", "0"]
        server = container(
            bundle, ["server", "--insecure-listen", *ports], name, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        try:
            listening = json.loads(server.stdout.readline())
            url = f"http://127.0.0.1:{listening['http_port']}"
            asked = run("curl", "-sS", "--fail", "-d", "SELECT count(*) FROM visits", f"{url}/v1/sql?format=csv")
            assert asked.split() == ["count", "3"], asked
        finally:
            server.terminate()
            assert server.wait(60) == 0
