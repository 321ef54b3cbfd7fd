"""A server with access control and a certificate, for the suites `postgres` and `flight`.

The certificates are made with the commands of docs/tls.md, as they stand there, for this machine's names.
"""

import pathlib
import re
import subprocess

import pytest
from access_server import Server

PAGE = pathlib.Path(__file__).parents[1] / "docs" / "tls.md"
AUTHORITY_AND_SERVER, CLIENT = 0, 1


def make_certificates(directory, which):
    """Runs one of the page's blocks of commands in a directory."""
    block = re.findall(r"```sh\n(.*?)```", PAGE.read_text(), re.DOTALL)[which]
    block = block.replace("reports.example.com", "localhost").replace("10.0.0.5", "127.0.0.1")
    done = subprocess.run(["bash", "-euc", block], cwd=directory, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def start_encrypted(directory, *flags):
    """A server that stands for localhost and 127.0.0.1; `ca` is what its clients trust."""
    make_certificates(directory, AUTHORITY_AND_SERVER)
    make_certificates(directory, CLIENT)
    files = ["--tls-cert", str(directory / "stoa.crt"), "--tls-key", str(directory / "stoa.key")]
    server = Server(directory, *files, *flags)
    server.directory = directory
    server.ca = str(directory / "ca.crt")
    return server


@pytest.fixture(scope="session")
def encrypted(tmp_path_factory):
    """A server with a certificate; a suite's conftest takes it over by name."""
    server = start_encrypted(tmp_path_factory.mktemp("tls"))
    yield server
    server.stop()
