"""A real PostgreSQL on a free port, made for the tests and removed with them."""

import contextlib
import getpass
import glob
import os
import pathlib
import shutil
import socket
import subprocess
import tempfile


def programs():
    """The folder of the newest PostgreSQL server that is installed, or None."""
    found = [path for path in glob.glob("/usr/lib/postgresql/*/bin") if os.path.exists(f"{path}/initdb")]
    return pathlib.Path(max(found, key=lambda path: int(path.split("/")[-2]))) if found else None


def unprivileged():
    """What to put before a command: PostgreSQL refuses to run as root."""
    return ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"] if os.geteuid() == 0 else []


@contextlib.contextmanager
def running(on=(), address="127.0.0.1"):
    """Starts a server with a superuser `stoa` and a database `stoa`; gives its port.

    `on` comes before each command, for a server on a machine of its own with that address."""
    home = pathlib.Path(tempfile.mkdtemp(prefix="stoa-postgres-"))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    run = lambda *command: subprocess.run(
        [*on, *unprivileged(), *map(str, command)], check=True, capture_output=True, text=True, cwd=home
    )
    try:
        if unprivileged():
            shutil.chown(home, "postgres", "postgres")
        data, bin = home / "data", programs()
        run(bin / "initdb", "-D", data, "-U", "stoa", "-A", "trust", "-E", "UTF8", "--no-sync")
        if on:
            with open(data / "pg_hba.conf", "a") as rules:
                rules.write("host all all all trust\n")
        options = f"-p {port} -c listen_addresses={address} -c unix_socket_directories={home} -c fsync=off"
        run(bin / "pg_ctl", "-D", data, "-w", "-l", home / "log", "-o", options, "start")
        try:
            run(bin / "createdb", "-h", address, "-p", port, "-U", "stoa", "stoa")
            yield port
        finally:
            run(bin / "pg_ctl", "-D", data, "-w", "-m", "immediate", "stop")
    finally:
        shutil.rmtree(home, ignore_errors=True)
