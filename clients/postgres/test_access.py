"""Access control as psycopg, psql and JDBC meet it: logging in, what was granted, and what was not."""

import os
import pathlib
import pty
import subprocess

import psycopg
import pytest

from access_server import PASSWORD, SUPERUSER

HERE = pathlib.Path(__file__).parent
REPORT = "SELECT day, sum(clicks) AS clicks FROM {} WHERE account = %s GROUP BY day ORDER BY day"


@pytest.fixture
def psql(guarded):
    """Runs psql as a role; what it printed, errors too."""

    def run(role, password, *commands, **variables):
        environment = {**os.environ, "PGPORT": str(guarded.pg_port), "PGUSER": role}
        environment.update({"PGPASSWORD": password} if password is not None else {})
        arguments = [f"--set={name}={value}" for name, value in variables.items()]
        arguments += [part for command in commands for part in ("-c", command)]
        done = subprocess.run(
            ["psql", "-X", "-w", "-A", "-t", *arguments],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        return done.stdout.rstrip("\n")

    return run


def refused(connection, sql, *values, **options):
    """The error of a statement that must not be answered."""
    with pytest.raises(psycopg.errors.InsufficientPrivilege) as caught:
        connection.execute(sql, *values, **options).fetchall()
    assert caught.value.sqlstate == "42501"
    return caught.value.diag


def test_the_right_password_logs_in(psql, log_in, role):
    ann = role()
    assert log_in(ann, "pencil").execute("SELECT 1").fetchone() == (1,)
    assert psql(ann, "pencil", "SELECT 2") == "2"
    assert psql(SUPERUSER, PASSWORD, "SELECT 3") == "3"


def test_psql_says_why_one_is_not_let_in(psql, role):
    ann, group = role(), role("NOLOGIN PASSWORD 'pencil'")
    # Nobody learns which names there are: all these read alike.
    for name, password in [(ann, "brush"), ("nobody", "pencil"), (group, "pencil")]:
        said = psql(name, password, "SELECT 1")
        assert f'FATAL:  password authentication failed for user "{name}"' in said
        assert "HINT:  the server has access_control on" in said
    assert "no password supplied" in psql(ann, None, "SELECT 1")


def test_the_session_is_of_who_logged_in(log_in, role):
    ann = role()
    row = log_in(ann, "pencil").execute("SELECT current_user, session_user").fetchone()
    assert row == (ann, ann)


@pytest.mark.parametrize("binary", [False, True], ids=["text", "binary"])
def test_a_granted_report_is_the_superusers(admin, log_in, role, visits, binary):
    ann = role()
    admin.execute(f"GRANT SELECT (account, day, clicks) ON {visits} TO {ann}")
    connection = log_in(ann, "pencil")
    for _ in range(3):
        hers, all = (
            who.execute(REPORT.format(visits), [3], prepare=True, binary=binary).fetchall()
            for who in (connection, admin)
        )
        assert hers == all and len(hers) == 9


def test_a_column_that_was_not_granted(admin, psql, log_in, role, visits):
    ann = role()
    connection = log_in(ann, "pencil")
    said = refused(connection, f"SELECT count(*) FROM {visits}")
    assert said.message_primary == f"permission denied for table public.{visits}"
    admin.execute(f"GRANT SELECT (account, day, clicks) ON {visits} TO {ann}")
    for sql in (f"SELECT cost FROM {visits}", f"SELECT * FROM {visits}", f"COPY {visits} TO STDOUT"):
        said = refused(connection, sql)
        assert said.message_primary == f"permission denied for column cost of table public.{visits}"
        assert f'GRANT SELECT (cost) ON public.{visits} TO "{ann}"' in said.message_hint
    assert psql(ann, "pencil", f"SELECT cost FROM {visits}", VERBOSITY="sqlstate") == "ERROR:  42501"
    assert connection.execute(f"SELECT count(*) FROM {visits}").fetchone() == (100,)


def test_a_revoked_report_fails_when_it_is_executed_next(admin, log_in, role, visits):
    ann = role()
    connection = log_in(ann, "pencil")
    for sql in (REPORT, REPORT.replace("sum(clicks)", "sum(clicks) + 1")):
        sql = sql.format(visits)
        run = lambda: connection.execute(sql, [3], prepare=True).fetchall()
        admin.execute(f"GRANT SELECT ON {visits} TO {ann}")
        assert len(run()) == len(run()) == 9
        admin.execute(f"REVOKE SELECT ON {visits} FROM {ann}")
        refused(connection, sql, [3], prepare=True)
        admin.execute(f"GRANT SELECT (account, day, clicks) ON {visits} TO {ann}")
        assert len(run()) == 9
        admin.execute(f"REVOKE SELECT (clicks) ON {visits} FROM {ann}")
        refused(connection, sql, [3], prepare=True)
        admin.execute(f"REVOKE ALL ON {visits} FROM {ann}")


def test_a_cursor_goes_on_with_the_rights_it_began_with(admin, log_in, role, visits):
    ann = role()
    admin.execute(f"GRANT SELECT ON {visits} TO {ann}")
    connection = log_in(ann, "pencil")
    with connection.transaction(), connection.cursor("c") as cursor:
        cursor.execute(f"SELECT clicks FROM {visits} ORDER BY clicks")
        assert cursor.fetchone() == (0,)
        admin.execute(f"REVOKE SELECT ON {visits} FROM {ann}")
        assert len(cursor.fetchall()) == 99
    refused(connection, f"SELECT clicks FROM {visits}")


def test_rights_by_role_schema_and_everybody(admin, log_in, role, visits):
    ann, readers = role(), role("")
    connection = log_in(ann, "pencil")
    admin.execute(f"GRANT {readers} TO {ann}")
    for to, on in [(readers, visits), (ann, "SCHEMA public"), ("PUBLIC", f"TABLE {visits}")]:
        refused(connection, f"SELECT cost FROM {visits}")
        admin.execute(f"GRANT SELECT ON {on} TO {to}")
        assert len(connection.execute(f"SELECT cost FROM {visits}").fetchall()) == 100
        admin.execute(f"REVOKE SELECT ON {on} FROM {to}")
    refused(connection, f"SELECT cost FROM {visits}")


def test_writing_over_copy_and_insert(admin, log_in, role, visits):
    ann = role()
    connection = log_in(ann, "pencil")

    def copy():
        with connection.cursor() as cursor, cursor.copy(f"COPY {visits} (account) FROM STDIN") as rows:
            rows.write_row((77,))

    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        copy()
    refused(connection, f"INSERT INTO {visits} (account) VALUES (77)")
    admin.execute(f"GRANT INSERT ON {visits} TO {ann}")
    copy()
    connection.execute(f"INSERT INTO {visits} (account) VALUES (77)")
    assert admin.execute(f"SELECT count(*) FROM {visits} WHERE account = 77").fetchone() == (2,)
    refused(connection, f"SELECT account FROM {visits}")
    refused(connection, f"DELETE FROM {visits} WHERE account = 77")


def test_the_owner_alters_grants_and_drops(admin, log_in, role, visits):
    ann, bob = role(), role()
    connection = log_in(ann, "pencil")
    refused(connection, f"ALTER TABLE {visits} ADD COLUMN note text")
    refused(connection, "CREATE TABLE hers (n int)")
    admin.execute(f"ALTER TABLE {visits} OWNER TO {ann}")
    connection.execute(f"ALTER TABLE {visits} ADD COLUMN note text")
    connection.execute(f"GRANT SELECT (note) ON {visits} TO {bob}")
    assert len(log_in(bob, "pencil").execute(f"SELECT note FROM {visits}").fetchall()) == 100
    connection.execute(f"DROP TABLE {visits}")


def test_command_tags_are_postgresqls(psql, visits):
    statements = [
        ("CREATE ROLE tag_readers", "CREATE ROLE"),
        ("CREATE USER tag_ann PASSWORD 'pencil'", "CREATE ROLE"),
        ("ALTER ROLE tag_readers NOLOGIN", "ALTER ROLE"),
        ("ALTER USER tag_ann WITH ENCRYPTED PASSWORD 'brush'", "ALTER ROLE"),
        ("GRANT tag_readers TO tag_ann", "GRANT ROLE"),
        (f"GRANT SELECT (day, clicks) ON TABLE {visits} TO tag_readers, PUBLIC", "GRANT"),
        (f"GRANT ALL PRIVILEGES ON {visits} TO tag_ann", "GRANT"),
        ("GRANT SELECT ON ALL TABLES IN SCHEMA public TO tag_readers", "GRANT"),
        ("REVOKE SELECT ON SCHEMA public FROM tag_readers", "REVOKE"),
        (f"REVOKE ALL ON {visits} FROM tag_ann, tag_readers, PUBLIC", "REVOKE"),
        ("REVOKE tag_readers FROM tag_ann", "REVOKE ROLE"),
        (f"ALTER TABLE {visits} OWNER TO {SUPERUSER}", "ALTER TABLE"),
        ("DROP ROLE tag_readers, tag_ann", "DROP ROLE"),
    ]
    said = psql(SUPERUSER, PASSWORD, *(statement for statement, _ in statements))
    assert said.splitlines() == [tag for _, tag in statements]
    assert psql(SUPERUSER, PASSWORD, "DROP USER IF EXISTS tag_ann").splitlines() == [
        'NOTICE:  role "tag_ann" does not exist, skipping',
        "DROP ROLE",
    ]


def test_errors_of_statements_about_roles(admin, role):
    ann = role()
    for sql, state in [
        (f"CREATE ROLE {ann}", "42710"),
        ("DROP ROLE no_such_role", "42704"),
        (f"GRANT SELECT ON no_such_table TO {ann}", "42P01"),
        (f"GRANT {ann} TO {ann}", "0LP01"),
        (f"CREATE ROLE {ann}2 PASSWORD ''", "22023"),
    ]:
        with pytest.raises(psycopg.Error) as caught:
            admin.execute(sql)
        assert caught.value.sqlstate == state, sql


def test_a_secret_is_taken_in_place_of_a_password(admin, log_in, role):
    ann = role()
    secret = admin.pgconn.encrypt_password(b"brush", ann.encode(), b"scram-sha-256").decode()
    assert secret.startswith("SCRAM-SHA-256$4096:")
    admin.execute(f"ALTER USER {ann} PASSWORD '{secret}'")
    assert log_in(ann, "brush").execute("SELECT 1").fetchone() == (1,)
    for wrong in ("pencil", secret):
        with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
            log_in(ann, wrong)
    # A role changes its own password, and nothing else of itself.
    own = log_in(ann, "brush")
    own.execute(f"ALTER USER {ann} PASSWORD 'crayon'")
    refused(own, f"ALTER USER {ann} SUPERUSER")
    log_in(ann, "crayon")


@pytest.mark.parametrize("by", ["itself", "superuser"])
def test_the_command_password_of_psql(guarded, log_in, role, by):
    ann = role()
    role_and_password, command = {
        "itself": ((ann, "pencil"), r"\password"),
        "superuser": ((SUPERUSER, PASSWORD), rf"\password {ann}"),
    }[by]
    said, status = type_password(guarded, *role_and_password, command, "crayon")
    assert status == 0, said
    assert f'for user "{ann}"' in said
    log_in(ann, "crayon")


def type_password(server, user, password, command, typed):
    """Runs a command of psql on a terminal, and answers each prompt."""
    child, terminal = pty.fork()
    if child == 0:
        os.environ.update(PGPORT=str(server.pg_port), PGUSER=user, PGPASSWORD=password)
        os.execvp("psql", ["psql", "-X", "-w", "-c", command])
    said, answered = "", 0
    while True:
        try:
            said += os.read(terminal, 4096).decode()
        except OSError:  # The terminal's other end is closed.
            break
        if said.endswith(": ") and said.count(": ") > answered:
            answered += 1
            os.write(terminal, f"{typed}\n".encode())
    os.close(terminal)
    return said, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_passwords_are_shown_nowhere(admin, role):
    ann = role()
    admin.execute(f"ALTER ROLE {ann} PASSWORD 'paintbrush'")
    for sql in ("SELECT sql FROM system.queries", "SELECT * FROM system.roles"):
        assert "paintbrush" not in str(admin.execute(sql).fetchall())


def test_roles_and_grants_are_tables(admin, log_in, role, visits):
    ann, readers = role(), role("")
    admin.execute(f"GRANT {readers} TO {ann}")
    admin.execute(f"GRANT SELECT (day, account), INSERT ON {visits} TO {readers}")
    admin.execute(f"ALTER TABLE {visits} OWNER TO {ann}")
    rows = admin.execute(
        "SELECT role, login, superuser, password, member_of FROM system.roles"
        " WHERE role IN (%s, %s, %s) ORDER BY member_of, login",
        [ann, readers, SUPERUSER],
    ).fetchall()
    assert rows == [
        (readers, False, False, False, ""),
        (SUPERUSER, True, True, True, ""),
        (ann, True, False, True, readers),
    ]
    rows = admin.execute(
        'SELECT grantee, privilege, namespace, columns FROM system.grants WHERE "table" = %s'
        " ORDER BY privilege",
        [visits],
    ).fetchall()
    assert rows == [
        (readers, "INSERT", "public", None),
        (ann, "OWNER", "public", None),
        (readers, "SELECT", "public", "account, day"),
    ]


def test_statements_of_others_are_seen_by_superusers(admin, log_in, role):
    ann = role()
    connection = log_in(ann, "pencil")
    connection.execute("SELECT 'of ann'")
    own = connection.execute('SELECT DISTINCT "user" FROM system.queries').fetchall()
    assert own == [(ann,)]
    seen = admin.execute('SELECT DISTINCT "user" FROM system.queries').fetchall()
    assert {(ann,), (SUPERUSER,)} <= set(seen)
    refused(connection, "SELECT * FROM system.query_shapes")


def test_whoever_is_dropped_may_nothing_more(admin, log_in, role, visits):
    ann = role()
    admin.execute(f"GRANT SELECT ON {visits} TO PUBLIC")
    connection = log_in(ann, "pencil")
    assert connection.execute(f"SELECT count(*) FROM {visits}").fetchone() == (100,)
    admin.execute(f"DROP ROLE {ann}")
    refused(connection, f"SELECT count(*) FROM {visits}")


def test_other_processes_on_the_catalog_are_heard(admin, guarded, log_in, role, visits):
    ann = role()
    connection = log_in(ann, "pencil")
    refused(connection, f"SELECT clicks FROM {visits}")
    guarded.alone(f"GRANT SELECT ON {visits} TO {ann}")
    assert len(connection.execute(f"SELECT clicks FROM {visits}").fetchall()) == 100


def test_roles_of_other_processes_log_in(guarded, log_in):
    guarded.alone("CREATE USER late PASSWORD 'pencil'")
    log_in("late", "pencil")
    guarded.alone("ALTER USER late NOLOGIN")
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        log_in("late", "pencil")
    guarded.alone("DROP ROLE late")


def test_jdbc(guarded, role, visits):
    jar = pathlib.Path(os.environ["STOA_TOOLS"], "postgres", "postgresql.jar")
    url = f"jdbc:postgresql://127.0.0.1:{guarded.pg_port}/stoa"
    done = subprocess.run(
        ["java", "-cp", str(jar), str(HERE / "JdbcAccess.java"), url, SUPERUSER, PASSWORD, role(), "pencil", visits],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
