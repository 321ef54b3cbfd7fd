"""How the checks ask Stoa, and how they compare what different engines answer.

Stoa is asked in two ways: embedded (`stoa sql --warehouse`, a process per statement, which opens the
warehouse like any other engine does) and through a running server (`POST /v1/sql`). Rows come back
as dicts from column name to JSON value; `same_rows` compares them with Python values of Spark,
PyIceberg and DuckDB.
"""

import base64
import datetime
import decimal
import json
import math
import subprocess
import urllib.error
import urllib.request


class StoaError(Exception):
    """A statement that Stoa refused; the text is what a user reads."""


class Stoa:
    """One Stoa binary, one warehouse, and a server on the same warehouse."""

    def __init__(self, binary, warehouse, http_port):
        self.binary = binary
        self.warehouse = warehouse
        self.http_port = http_port

    def run(self, *arguments, timeout=300):
        """Runs `stoa ARGUMENTS…` and returns what it printed on stdout."""
        done = subprocess.run(
            [self.binary, *arguments], capture_output=True, text=True, timeout=timeout, stdin=subprocess.DEVNULL
        )
        if done.returncode != 0:
            raise StoaError(f"stoa {' '.join(arguments)}: exit {done.returncode}\n{done.stderr}{done.stdout}")
        return done.stdout

    def sql(self, *statements):
        """Runs statements one after the other, embedded, in one process; returns the rows they gave."""
        arguments = [part for statement in statements for part in ("-c", statement)]
        out = self.run(
            "sql", "--warehouse", self.warehouse, "--format", "json", "--quiet", "--stop-on-error", *arguments
        )
        # Numbers with a fraction as decimals, so that none is rounded on the way.
        return [json.loads(line, parse_float=decimal.Decimal) for line in out.splitlines() if line.startswith("{")]

    def server_sql(self, statement):
        """Runs one statement on the server; returns its rows."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.http_port}/v1/sql",
            data=json.dumps({"sql": statement}).encode(),
            headers={"Content-Type": "application/json", "Accept": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=300) as answer:
                body = json.load(answer, parse_float=decimal.Decimal)
        except urllib.error.HTTPError as error:
            raise StoaError(error.read().decode()) from error
        if "error" in body:
            raise StoaError(json.dumps(body["error"]))
        assert not body.get("truncated"), "the answer was cut off"
        names = [column["name"] for column in body.get("columns", [])]
        return [dict(zip(names, row)) for row in body.get("rows", [])]


def plain(value):
    """A value of Spark, PyArrow, DuckDB or of Stoa's JSON in one comparable form."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, decimal.Decimal):
        return ("number", value.normalize())
    if isinstance(value, float):
        return "nan" if math.isnan(value) else value
    if isinstance(value, (bytes, bytearray)):
        return bytes(value)
    if isinstance(value, datetime.datetime):
        if value.tzinfo is not None:
            value = value.astimezone(datetime.timezone.utc).replace(tzinfo=None)
        return value.isoformat(sep=" ", timespec="microseconds")
    if isinstance(value, datetime.date):
        return value.isoformat()
    if hasattr(value, "asDict"):
        return plain(value.asDict())
    if isinstance(value, dict):
        return {str(plain(key)): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    raise TypeError(f"no comparison for {type(value)}: {value!r}")


def as_kind(value, model):
    """Reads `value`, which came through JSON, as the kind of Python value that `model` is."""
    if value is None or model is None:
        return plain(value)
    if isinstance(model, bool):
        return value
    if isinstance(model, int):
        return int(value)  # beyond 2^53 a string, so that no reader rounds it
    if isinstance(model, decimal.Decimal):
        return plain(decimal.Decimal(str(value)))
    if isinstance(model, float):
        return plain(float(value))
    if isinstance(model, (bytes, bytearray)):
        text = value.removeprefix("\\x")
        try:
            return bytes.fromhex(text)
        except ValueError:
            return base64.b64decode(text)
    if isinstance(model, datetime.datetime):
        return plain(datetime.datetime.fromisoformat(value.replace("Z", "+00:00")))
    if isinstance(model, datetime.date):
        return value[:10]
    if hasattr(model, "asDict"):
        model = model.asDict()
    if isinstance(model, dict):
        if isinstance(value, list):  # a map as a list of entries
            value = {entry["key"]: entry["value"] for entry in value}
        some = next((item for item in model.values() if item is not None), None)
        return {str(key): as_kind(item, model.get(key, some)) for key, item in value.items()}
    if isinstance(model, (list, tuple)):
        some = next((item for item in model if item is not None), None)
        return [as_kind(item, some) for item in value]
    return plain(value)


def rows_of(table):
    """Rows of a Spark DataFrame or a PyArrow table as dicts of Python values."""
    if hasattr(table, "collect"):
        return [row.asDict() for row in table.collect()]
    return table.to_pylist()


def same_rows(stoa_rows, other_rows):
    """Asserts that Stoa's rows equal those of another engine, in order, with the same columns."""
    other = [{name: plain(value) for name, value in row.items()} for row in other_rows]
    models = {}
    for row in other_rows:
        for name, value in row.items():
            if models.get(name) is None:
                models[name] = value
    ours = [{name: as_kind(value, models.get(name)) for name, value in row.items()} for row in stoa_rows]
    assert ours == other, [pair for pair in zip(ours, other) if pair[0] != pair[1]] or (len(ours), len(other))
