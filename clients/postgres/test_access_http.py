"""Access control over HTTP, asked with curl."""

import base64
import json
import subprocess
import threading
import urllib.parse

import psycopg
import pytest

from access_server import PASSWORD, SUPERUSER

ENDLESS = "SELECT count(*) FROM generate_series(1, 1000000000000) AS s(value) WHERE value % 7 = 8"


class Answer:
    def __init__(self, text):
        head, _, self.body = text.partition("\r\n\r\n")
        status, *lines = head.split("\r\n")
        self.status = int(status.split()[1])
        self.headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}

    def json(self):
        return json.loads(self.body)

    def code(self):
        """The status, and the SQLSTATE of an error."""
        return self.status, self.json()["error"]["code"]


@pytest.fixture
def curl(guarded):
    """Asks for a path, as somebody or as nobody."""

    def ask(path, role=None, password="pencil", body=None, method=None, type="application/json"):
        command = ["curl", "-sS", "-i", "--max-time", "60"]
        command += ["-u", f"{role}:{password}"] if role else []
        command += ["-X", method] if method else []
        command += ["-H", f"Content-Type: {type}", "--data-binary", body] if body is not None else []
        command.append(f"http://127.0.0.1:{guarded.http_port}{path}")
        # Not as text: that would change the ends of lines.
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
        return Answer(done.stdout.decode())

    return ask


@pytest.fixture
def sql(curl):
    def run(text, role, password="pencil"):
        return curl("/v1/sql", role, password, json.dumps({"sql": text}))

    return run


def test_whoever_says_nothing_is_asked(curl, role):
    ann = role()
    asked = [curl("/v1/tables"), curl("/v1/tables", ann, "brush"), curl("/v1/tables", "nobody")]
    for answer, code in zip(asked, ("28000", "28P01", "28P01")):
        assert answer.code() == (401, code)
        assert answer.headers["www-authenticate"] == 'Basic realm="stoa", charset="UTF-8"'
    # The console as well, so that browsers ask for a password before it is there.
    for path in ("/", "/v1/status", "/v1/queries", "/v1/shapes", "/v1/nothing"):
        assert curl(path).status == 401, path
    assert curl("/v1/tables", ann).status == 200
    assert curl("/v1/tables", SUPERUSER, PASSWORD).status == 200


@pytest.mark.parametrize("path", ["/health", "/ready", "/metrics"])
def test_whoever_watches_is_not_asked(curl, path):
    assert curl(path).status == 200


def test_authorization_that_cannot_be_read_is_none(guarded):
    basic = base64.b64encode(b"no colon").decode()
    for value in ("Basic", "Basic !", f"Basic {basic}", "Bearer 00"):
        command = ["curl", "-sS", "-o", "/dev/null", "-w", "%{http_code}", "-H", f"Authorization: {value}"]
        url = f"http://127.0.0.1:{guarded.http_port}/v1/tables"
        done = subprocess.run([*command, url], capture_output=True, text=True, check=True)
        assert done.stdout == "401", value


def test_statements_have_the_roles_rights(admin, sql, role, visits):
    ann = role()
    report = f"SELECT day, sum(clicks) FROM {visits} WHERE account = 3 GROUP BY day ORDER BY day"
    assert sql(report, ann).code() == (403, "42501")
    admin.execute(f"GRANT SELECT (account, day, clicks) ON {visits} TO {ann}")
    for _ in range(2):
        hers, all = sql(report, ann).json(), sql(report, SUPERUSER, PASSWORD).json()
        assert hers["rows"] == all["rows"] and len(hers["rows"]) == 9
    assert sql(f"SELECT cost FROM {visits}", ann).code() == (403, "42501")
    admin.execute(f"REVOKE SELECT ON {visits} FROM {ann}")
    assert sql(report, ann).code() == (403, "42501")
    assert sql("CREATE ROLE other", ann).code() == (403, "42501")


def test_a_changed_password_holds_for_the_next_request(admin, sql, role):
    ann = role()
    assert sql("SELECT 1", ann).status == sql("SELECT 1", ann).status == 200
    admin.execute(f"ALTER ROLE {ann} PASSWORD 'brush'")
    assert sql("SELECT 1", ann).code() == (401, "28P01")
    assert sql("SELECT 1", ann, "brush").status == 200
    admin.execute(f"ALTER ROLE {ann} NOLOGIN")
    assert sql("SELECT 1", ann, "brush").code() == (401, "28P01")


def test_a_table_is_described_to_its_readers(admin, curl, role, visits):
    ann, path = role(), f"/v1/tables/public/{visits}"
    assert curl(path, ann).code() == (403, "42501")
    assert curl(f"{path}/files", ann).code() == (403, "42501")
    admin.execute(f"GRANT SELECT (account, day, clicks) ON {visits} TO {ann}")
    columns = lambda who, *password: [c["name"] for c in curl(path, who, *password).json()["columns"]]
    assert columns(ann) == ["account", "day", "clicks"]
    assert columns(SUPERUSER, PASSWORD) == ["account", "day", "clicks", "cost"]
    # Files are shown with the bounds of columns.
    assert curl(f"{path}/files", ann).code() == (403, "42501")
    admin.execute(f"GRANT SELECT ON {visits} TO {ann}")
    assert curl(f"{path}/files", ann).status == 200


def test_rows_that_are_sent_need_insert(admin, curl, role, visits):
    ann = role()
    admin.execute(f"GRANT SELECT ON {visits} TO {ann}")
    path, row = f"/v1/tables/public/{visits}/rows", '{"account": 77}\n'
    assert curl(path, ann, body=row, type="application/x-ndjson").code() == (403, "42501")
    admin.execute(f"REVOKE SELECT ON {visits} FROM {ann}")
    admin.execute(f"GRANT INSERT ON {visits} TO {ann}")
    assert curl(path, ann, body=row, type="application/x-ndjson").json()["rows"] == 1
    assert admin.execute(f"SELECT count(*) FROM {visits} WHERE account = 77").fetchone() == (1,)


def test_the_shell_logs_in_by_its_address(guarded, role):
    def shell(user, password):
        quoted = urllib.parse.quote(password, safe="")
        url = f"http://{user}:{quoted}@127.0.0.1:{guarded.http_port}"
        command = [guarded.stoa, "sql", "--url", url, "--format", "csv", "--no-header", "-c", "SELECT 7"]
        return subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)

    assert shell(SUPERUSER, PASSWORD).stdout.strip() == "7"
    refused = shell(role(), "brush")
    assert refused.returncode != 0 and "28P01" in refused.stderr


def test_hql_and_shapes_are_for_superusers(curl, role):
    ann = role()
    statement = "SHOW TABLES;"
    assert curl("/v1/hql", ann, body=statement, type="text/plain").code() == (403, "42501")
    assert curl("/v1/hql", SUPERUSER, PASSWORD, body=statement, type="text/plain").status == 200
    assert curl("/v1/shapes", ann).code() == (403, "42501")
    assert curl("/v1/shapes", SUPERUSER, PASSWORD).status == 200


def listed(answer):
    return [query for state in ("running", "recent") for query in answer.json()[state]]


def test_queries_of_others_are_not_listed(sql, curl, role):
    ann, bob = role(), role()
    sql("SELECT 'of ann'", ann)
    sql("SELECT 'of bob'", bob)
    users = lambda *who: {query["user"] for query in listed(curl("/v1/queries", *who))}
    assert users(ann) == {ann}
    assert users(bob) == {bob}
    assert {ann, bob} <= users(SUPERUSER, PASSWORD)


def test_queries_of_others_go_on(log_in, curl, role):
    ann, bob = role(), role()
    connection = log_in(ann, "pencil")
    ended = []

    def run():
        try:
            connection.execute(ENDLESS)
        except psycopg.Error as error:
            ended.append(error.sqlstate)

    thread = threading.Thread(target=run)
    thread.start()
    runs = []
    while not runs and thread.is_alive():
        found = curl("/v1/queries", ann).json()["running"]
        # While it is planned, it has another id.
        runs = [query for query in found if query["sql"] == ENDLESS and query["state"] != "planning"]
    path = f"/v1/queries/{runs[0]['id']}"
    # It is listed before it has a plan.
    while curl(f"{path}/plan", ann).status == 404 and thread.is_alive():
        pass
    assert curl(f"{path}/plan", ann).status == 200
    assert curl(f"{path}/plan", bob).code() == (403, "42501")
    assert curl(path, bob, method="DELETE").code() == (403, "42501")
    assert thread.is_alive()
    assert curl(path, ann, method="DELETE").status == 204
    thread.join(30)
    assert ended == ["57014"]
