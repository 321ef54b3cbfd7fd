"""Starts a Stoa server for a notebook or a test.

    import stoa

    with stoa.Server() as server:
        server.load("visits.csv", into="visits")
        rows = server.query("SELECT count(*) AS n FROM visits")

The server is the binary `stoa` of the same package, on free ports of 127.0.0.1. It ends with the `with` block or
`stop()`, and also if this program ends without them, however it ends. Any PostgreSQL client can use `server.dsn`.
"""

from ._server import Server, StoaError, binary

__all__ = ["Server", "StoaError", "binary"]
