"""Stoa on a warehouse in S3: commands, and a server."""

import json
import os
import signal
import subprocess
import urllib.error
import urllib.request

from stores import ACCESS_KEY, SECRET_KEY


class StoaError(Exception):
    """What Stoa refused; the text is what a user reads."""


class Warehouse:
    """A location, the endpoint that it is reached by, and a directory for catalog and logs."""

    def __init__(self, url, endpoint, directory):
        self.url = url
        self.endpoint = endpoint
        self.directory = directory
        self.catalog = directory / "catalog.db"
        self.servers = []

    def environment(self, **changes):
        environment = {
            **os.environ,
            "AWS_ACCESS_KEY_ID": ACCESS_KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
            "AWS_ENDPOINT_URL_S3": self.endpoint,
            **changes,
        }
        return {name: value for name, value in environment.items() if value is not None}

    def run(self, *arguments, **changes):
        """Runs `stoa ARGUMENTS… --warehouse … --catalog …`; returns what it printed on stdout."""
        done = self.attempt(*arguments, **changes)
        if done.returncode != 0:
            raise StoaError(f"stoa {' '.join(arguments)}: exit {done.returncode}\n{done.stderr}{done.stdout}")
        return done.stdout

    def attempt(self, *arguments, **changes):
        place = ["--warehouse", self.url, "--catalog", str(self.catalog)]
        return subprocess.run(
            [os.environ["STOA_BIN"], *arguments, *place],
            capture_output=True,
            text=True,
            timeout=600,
            stdin=subprocess.DEVNULL,
            env=self.environment(**changes),
            cwd=self.directory,
        )

    def sql(self, *statements):
        """Runs statements in one process without a server; returns the rows they gave."""
        arguments = [part for statement in statements for part in ("-c", statement)]
        out = self.run("sql", "--format", "json", "--quiet", "--stop-on-error", *arguments)
        return [json.loads(line) for line in out.splitlines() if line.startswith("{")]

    def server(self, *flags):
        server = Server(self, *flags)
        self.servers.append(server)
        return server

    def end(self):
        for server in self.servers:
            server.kill()


class Server:
    """A server on a warehouse."""

    def __init__(self, warehouse, *flags):
        ports = ["--http-port", "0", "--pg-port", "0", "--flight-port", "0", "--hive-port", "none"]
        place = ["--warehouse", warehouse.url, "--catalog", str(warehouse.catalog)]
        self.log = open(warehouse.directory / "server.log", "ab")
        self.process = subprocess.Popen(
            [os.environ["STOA_BIN"], "server", *place, *ports, *flags],
            stdout=subprocess.PIPE,
            stderr=self.log,
            env=warehouse.environment(),
            cwd=warehouse.directory,
        )
        line = self.process.stdout.readline()
        assert line, f"the server did not start: {(warehouse.directory / 'server.log').read_text()}"
        self.said = json.loads(line)

    def sql(self, statement):
        """Runs a statement; returns its rows as dicts."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.said['http_port']}/v1/sql",
            data=json.dumps({"sql": statement}).encode(),
            headers={"Content-Type": "application/json", "Accept": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=300) as answer:
                body = json.load(answer)
        except urllib.error.HTTPError as error:
            raise StoaError(error.read().decode()) from error
        if "error" in body:
            raise StoaError(json.dumps(body["error"]))
        names = [column["name"] for column in body.get("columns", [])]
        return [dict(zip(names, row)) for row in body.get("rows", [])]

    def kill(self):
        self.end(signal.SIGKILL)

    def stop(self):
        self.end(signal.SIGTERM)
        assert self.process.returncode == 0

    def end(self, how):
        if self.process.stdout.closed:
            return
        self.process.send_signal(how)
        self.process.wait(60)
        self.process.stdout.close()
        self.log.close()
