"""Packages of the binary under test, in two versions."""

import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
KINDS = os.environ.get("STOA_PACKAGE_KINDS", "deb wheel").split()

# The second version is installed over the first one.
VERSIONS = ("0.1.0", "0.2.0")

# What is loaded, and what a query of it answers.
VISITS = "id,day,account\n1,2025-01-01,7\n2,2025-01-02,7\n3,2025-02-01,8\n"


def needs(kind):
    """Marks tests of a kind of package."""
    return pytest.mark.kind(kind)


def pytest_configure(config):
    config.addinivalue_line("markers", "kind(name): the kind of package that a test needs")


def pytest_collection_modifyitems(config, items):
    """Leaves out tests of kinds that were not asked for."""
    other = [item for item in items if item.get_closest_marker("kind").args[0] not in KINDS]
    config.hook.pytest_deselected(items=other)
    items[:] = [item for item in items if item not in other]


def run(*command, **options):
    """Runs a command and returns what it says; a failure shows all of it."""
    options = {"stdin": subprocess.DEVNULL, "text": True, "timeout": 300, **options}
    ended = subprocess.run([str(word) for word in command], capture_output=True, check=False, **options)
    assert ended.returncode == 0, f"{command}: exit code {ended.returncode}\n{ended.stdout}{ended.stderr}"
    return ended.stdout


@pytest.fixture(scope="session")
def packages(tmp_path_factory):
    """The packages of both versions: kind to the files."""
    place = tmp_path_factory.mktemp("packages")
    made = {}
    for version in VERSIONS:
        environment = {**os.environ, "STOA_PACKAGES": place / version, "STOA_PACKAGE_VERSION": version}
        # The newer image and tarball have no predecessor to replace.
        kinds = [kind for kind in KINDS if version == VERSIONS[0] or kind not in ("tar", "image")]
        environment = {name: str(value) for name, value in environment.items()}
        run(ROOT / "scripts/package.sh", *kinds, env=environment, timeout=900)
        for file in sorted((place / version).iterdir()):
            kind = {".deb": "deb", ".rpm": "rpm", ".whl": "wheel", ".gz": "tar", ".tar": "image"}[file.suffix]
            made.setdefault(kind, []).append(file)
    return made
