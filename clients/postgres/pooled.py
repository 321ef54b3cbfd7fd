"""pgbouncer in transaction mode in front of a server, made for the tests and removed with them."""

import contextlib
import os
import pathlib
import shutil
import socket
import subprocess
import tempfile
import time

import psycopg
from real_postgres import unprivileged

SETTINGS = """
[databases]
stoa = host={host} port={server} dbname=stoa user=stoa
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 1
max_client_conn = 50
ignore_startup_parameters = extra_float_digits
"""


@contextlib.contextmanager
def running():
    """Starts pgbouncer with one connection to the server of PGHOST and PGPORT; gives its port."""
    home = pathlib.Path(tempfile.mkdtemp(prefix="stoa-pgbouncer-"))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    text = SETTINGS.format(host=os.environ["PGHOST"], server=os.environ["PGPORT"], port=port)
    settings = home / "pgbouncer.ini"
    settings.write_text(text)
    if unprivileged():
        shutil.chown(home, "postgres", "postgres")
    program = shutil.which("pgbouncer") or "/usr/sbin/pgbouncer"
    pooler = subprocess.Popen(
        [*unprivileged(), program, "--quiet", str(settings)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        wait_for(port, pooler)
        yield port
    finally:
        pooler.terminate()
        pooler.wait()
        shutil.rmtree(home, ignore_errors=True)


def wait_for(port, pooler):
    until = time.monotonic() + 20
    while True:
        try:
            psycopg.connect(port=port).close()
            return
        except psycopg.OperationalError:
            if pooler.poll() is not None or time.monotonic() > until:
                raise
            time.sleep(0.05)
