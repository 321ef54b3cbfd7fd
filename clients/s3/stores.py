"""The S3 server, and the proxy that makes it slow and unreliable."""

import json
import os
import signal
import socket
import subprocess
import urllib.request

ACCESS_KEY = "stoa"
SECRET_KEY = "hunter2-secret"


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


class Gateway:
    """versitygw: objects are files in a directory. `on` comes before the command, for a machine with that address."""

    def __init__(self, program, directory, on=(), address="127.0.0.1"):
        port = free_port()
        self.address, self.url = address, f"http://{address}:{port}"
        environment = {**os.environ, "ROOT_ACCESS_KEY": ACCESS_KEY, "ROOT_SECRET_KEY": SECRET_KEY}
        self.log = open(directory.parent / "gateway.log", "wb")
        self.process = subprocess.Popen(
            [*on, program, "--quiet", "--port", f"{address}:{port}", "posix", str(directory)],
            env=environment,
            stdout=self.log,
            stderr=self.log,
        )
        self.wait_until_there(port)

    def wait_until_there(self, port):
        for _ in range(1000):
            assert self.process.poll() is None, "the S3 server ended"
            try:
                socket.create_connection((self.address, port), timeout=10).close()
                return
            except ConnectionRefusedError:
                # Waits for 10 ms or the end of the process, whichever comes first.
                try:
                    self.process.wait(0.01)
                except subprocess.TimeoutExpired:
                    pass
        raise AssertionError("the S3 server does not listen")

    def stop(self):
        self.process.terminate()
        self.process.wait(30)
        self.log.close()


class Proxy:
    """`stoa bench s3-proxy` before a gateway."""

    def __init__(self, stoa, upstream, *flags, port=0):
        command = [stoa, "bench", "s3-proxy", "--to", upstream, "--port", str(port), *flags]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.upstream = upstream
        self.url = json.loads(self.process.stdout.readline())["endpoint"]

    def counts(self):
        """Requests by method and faults by kind so far."""
        with urllib.request.urlopen(f"{self.url}/-/counts", timeout=30) as answer:
            return json.load(answer)

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        self.process.wait(30)
        self.process.stdout.close()
