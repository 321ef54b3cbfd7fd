"""A server's state of many kinds, made by one version and read by another; what is asked of it, and the server itself.

The state is always at the same place: tables, catalog and commit log name their files by absolute paths.
"""

import base64
import contextlib
import fcntl
import json
import os
import shutil
import signal
import subprocess
import urllib.error
import urllib.request
from pathlib import Path

DIRECTORY = Path("/tmp/stoa-upgrade")
STATES = Path(__file__).parent / "states"
ANSWERS = "answers.json"
PASSWORD = "pencil"

SETTINGS = """\
# The settings of the server that made this state; names stay what they are.
warehouse = "warehouse"
access_control = true
no_maintenance = true

[[pools]]
name = "batch"
slots = 1
timeout = "10m"

[[workload_rules]]
user = "loader"
pool = "batch"
"""

# Run by a superuser, in order.
MADE = [
    "CREATE ROLE staff",
    f"CREATE USER ann PASSWORD '{PASSWORD}'",
    f"CREATE USER loader PASSWORD '{PASSWORD}'",
    "CREATE USER gone NOLOGIN",
    "GRANT staff TO ann",
    "CREATE SCHEMA sales",
    """CREATE TABLE sales.orders (id bigint NOT NULL, day date, amount decimal(12, 2), shop text, secret text, PRIMARY KEY (id))
       PARTITIONED BY (month(day)) ORDER BY (shop, day) COMMENT 'what was sold'""",
    "COMMENT ON COLUMN sales.orders.amount IS 'in euro'",
    """INSERT INTO sales.orders SELECT n, DATE '2025-01-01' + n, CAST(n * 1.25 AS decimal(12, 2)), 'shop ' || (n % 5), 'secret ' || n
       FROM generate_series(0, 199) AS s(n)""",
    "FLUSH TABLE sales.orders",
    "UPDATE sales.orders SET amount = 0 WHERE id % 50 = 7",
    "DELETE FROM sales.orders WHERE id BETWEEN 100 AND 109",
    "ALTER TABLE sales.orders ADD COLUMN note text",
    "ALTER TABLE sales.orders RENAME COLUMN shop TO store",
    "INSERT INTO sales.orders VALUES (1000, DATE '2026-02-28', 12.34, 'shop ü', 'secret 1000', 'new column')",
    "FLUSH TABLE sales.orders",
    """CREATE TABLE kinds (b boolean, i smallint, j int, k bigint, r real, d double precision, n decimal(38, 9), t text, v varchar(5),
       y bytea, da date, ts timestamp, tz timestamptz, u uuid, a int[], w time)""",
    r"""INSERT INTO kinds VALUES
       (true, -32768, 2147483647, -9223372036854775808, 1.5, 1e300, 12345678901234567890123456789.123456789, 'a ''quoted'' text', 'fünf',
        '\x00ff', DATE '0001-01-01', TIMESTAMP '1582-10-04 23:59:59.999999', TIMESTAMPTZ '2025-03-30 01:30:00+00',
        '00112233-4455-6677-8899-aabbccddeeff', ARRAY[1, NULL, 3], TIME '23:59:59.5'),
       (NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)""",
    "FLUSH TABLE kinds",
    "CREATE TABLE counted (id bigint GENERATED ALWAYS AS IDENTITY, at timestamp DEFAULT TIMESTAMP '2020-02-02 02:02:02', word text)",
    "INSERT INTO counted (word) VALUES ('first'), ('second')",
    "CREATE VIEW sales.by_store AS SELECT store, count(*) AS orders, sum(amount) AS amount FROM sales.orders GROUP BY store",
    "CREATE VIEW sales.own WITH (security_invoker) AS SELECT id, secret FROM sales.orders",
    "CREATE TABLE dropped (a int)",
    "INSERT INTO dropped VALUES (1)",
    "DROP TABLE dropped",
    "GRANT SELECT (id, day, amount, store) ON sales.orders TO staff",
    "GRANT SELECT ON sales.by_store TO PUBLIC",
    "GRANT SELECT ON sales.own TO ann",
    "GRANT SELECT, INSERT ON counted TO loader",
    "ALTER TABLE kinds OWNER TO loader",
    "CREATE TABLE late (n bigint, s text)",
]

# Not every version knows these.
NEWER = [
    "CREATE RESOURCE PLAN daytime",
    "ALTER POOL daytime.default SET ALLOC_FRACTION=0.75, QUERY_PARALLELISM=8",
    "CREATE POOL daytime.etl WITH ALLOC_FRACTION=0.25, QUERY_PARALLELISM=2, SCHEDULING_POLICY='fifo'",
    "CREATE USER MAPPING 'loader' IN daytime TO etl",
    "ALTER RESOURCE PLAN daytime ENABLE ACTIVATE",
]

CELLS = [
    'CREATE TABLE "query-log" ( Query, ItemRank, ClickURL )',
    "INSERT INTO \"query-log\" VALUES ('2006-03-01 00:00:00', '142', 'Query', 'rentdirect.com'), ('2006-03-01 00:00:01', '142', 'ItemRank:web', '1')",
    "INSERT INTO \"query-log\" VALUES ('2006-03-02 00:00:00', '142', 'Query', 'newer'), ('2006-03-02 00:00:00', '172627', 'ClickURL', 'http://x/')",
    "DELETE ItemRank FROM \"query-log\" WHERE ROW = '142'",
]

# Small writes after everything was flushed: the server is killed with these in its commit log only.
LATE = [
    "INSERT INTO late VALUES (1, 'one'), (2, NULL)",
    "INSERT INTO late VALUES (3, 'drei ü')",
    "INSERT INTO counted (word) VALUES ('third')",
    "INSERT INTO sales.orders VALUES (1001, NULL, NULL, NULL, NULL, NULL)",
]
LATE_CELLS = ["INSERT INTO \"query-log\" VALUES ('2006-03-03 00:00:00', '9', 'Query', 'only in the log')"]

# Who asks what; the answer is the rows, or the SQLSTATE.
QUESTIONS = [
    ("boss", "SELECT count(*), sum(id), sum(amount), min(day), max(day), count(DISTINCT store), count(note) FROM sales.orders"),
    ("boss", "SELECT * FROM sales.orders WHERE id IN (7, 57, 99, 100, 110, 1000, 1001) ORDER BY id"),
    ("boss", "SELECT id, amount FROM sales.orders WHERE store = 'shop 3' AND day BETWEEN DATE '2025-02-01' AND DATE '2025-02-28' ORDER BY id"),
    ("boss", "SELECT * FROM kinds ORDER BY i"),
    ("boss", "SELECT n, s FROM late ORDER BY n"),
    ("boss", "SELECT id, at, word FROM counted ORDER BY id"),
    ("boss", "SELECT * FROM sales.by_store ORDER BY store"),
    ("boss", "SELECT * FROM dropped"),
    ("boss", "SELECT table_schema, table_name, table_type FROM information_schema.tables WHERE table_schema IN ('public', 'sales') ORDER BY 1, 2"),
    ("boss", "SELECT column_name, data_type, is_nullable FROM information_schema.columns WHERE table_name IN ('orders', 'kinds', 'counted') ORDER BY table_name, ordinal_position"),
    ("boss", "SELECT rolname, rolsuper, rolcanlogin FROM pg_roles WHERE rolname NOT LIKE 'pg%' ORDER BY 1"),
    ("boss", "SELECT obj_description('sales.orders'::regclass), col_description('sales.orders'::regclass, 3)"),
    ("ann", "SELECT count(*), sum(amount) FROM sales.orders"),
    ("ann", "SELECT secret FROM sales.orders"),
    ("ann", "SELECT * FROM sales.by_store WHERE store = 'shop 1'"),
    ("ann", "SELECT * FROM sales.own"),
    ("ann", "SELECT * FROM late"),
    ("ann", "INSERT INTO counted (word) VALUES ('not allowed')"),
    ("loader", "SELECT count(*) FROM kinds"),
    ("loader", "SELECT count(*) FROM sales.orders"),
    ("gone", "SELECT 1"),
]
NEWER_QUESTIONS = [("boss", "SHOW RESOURCE PLANS"), ("boss", "SHOW RESOURCE PLAN daytime")]
CELL_QUESTIONS = ['SELECT * FROM "query-log" DISPLAY_TIMESTAMPS', "SELECT Query FROM \"query-log\" WHERE ROW = '142' MAX_VERSIONS 1", "SHOW TABLES"]


@contextlib.contextmanager
def place():
    """The empty directory of the state, for one process at a time; gone afterwards."""
    with open(DIRECTORY.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        shutil.rmtree(DIRECTORY, ignore_errors=True)
        DIRECTORY.mkdir()
        try:
            yield DIRECTORY
        finally:
            shutil.rmtree(DIRECTORY, ignore_errors=True)


def environment():
    return {name: value for name, value in os.environ.items() if not name.startswith("STOA_")} | {"TZ": "UTC"}


def command(binary, *arguments):
    """Runs `stoa ARGUMENTS…` in the directory of the state; what it printed."""
    done = subprocess.run([binary, *arguments], cwd=DIRECTORY, env=environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, f"stoa {' '.join(arguments)}: exit {done.returncode}\n{done.stderr}{done.stdout}"
    return done.stdout


class Server:
    """A server on the state, with the settings that are there."""

    def __init__(self, binary):
        ports = ["--http-port", "0", "--pg-port", "0", "--flight-port", "0", "--hive-port", "0"]
        self.process = subprocess.Popen([binary, "server", *ports], cwd=DIRECTORY, env=environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        assert line, f"the server did not start:\n{self.process.stderr.read()}"
        self.port = json.loads(line)["http_port"]

    def post(self, role, path, body, kind):
        basic = base64.b64encode(f"{role}:{PASSWORD}".encode()).decode()
        headers = {"Content-Type": kind, "Accept": "application/json", "Authorization": f"Basic {basic}"}
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", data=body.encode(), headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                return answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.read().decode()

    def ask(self, role, sql):
        """The rows, or the SQLSTATE of the error."""
        body = json.loads(self.post(role, "/v1/sql", sql, "text/plain"))
        return body["error"]["code"] if "error" in body else body.get("rows", [])

    def do(self, sql):
        answer = self.ask("boss", sql)
        assert not isinstance(answer, str), f"{sql}: {answer}"

    def hql(self, statement):
        return self.post("boss", "/v1/hql", statement + ";", "text/plain")

    def answers(self):
        """All answers, as JSON keeps them; none where this version does not know the statement."""
        sql = {f"{role}: {sql}": self.ask(role, sql) for role, sql in QUESTIONS}
        newer = {f"{role}: {sql}": self.ask(role, sql) for role, sql in NEWER_QUESTIONS}
        sql |= {question: answer for question, answer in newer.items() if answer != "42601"}
        return json.loads(json.dumps(sql | {statement: self.hql(statement) for statement in CELL_QUESTIONS}))

    def end(self, how=signal.SIGTERM):
        """Ends it; what it said on stderr."""
        self.process.send_signal(how)
        said = self.process.communicate(timeout=120)[1]
        assert how == signal.SIGKILL or self.process.returncode == 0, said
        return said
