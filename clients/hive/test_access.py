"""A server with access control: who is let in over each transport, and what they may do."""

import uuid

import pytest
from access_server import PASSWORD, SUPERUSER
from conftest import connect, rows
from pyhive.exc import OperationalError


@pytest.fixture
def role(admin):
    name = f"r_{uuid.uuid4().hex[:12]}"
    admin.execute(f"CREATE USER {name} PASSWORD 'pencil'")
    yield name
    admin.execute(f"DROP ROLE IF EXISTS {name}")


@pytest.fixture
def visits(admin):
    name = f"t_{uuid.uuid4().hex[:12]}"
    admin.execute(f"CREATE TABLE {name} (account bigint, cost decimal(9, 2))")
    admin.execute(f"INSERT INTO {name} VALUES (1, 1.25), (2, 2.25)")
    yield name
    admin.execute(f"DROP TABLE {name}")


@pytest.mark.parametrize("transport", ["ldap", "http"])
def test_a_right_password_is_let_in_and_a_wrong_one_is_not(guarded, role, transport):
    connection = connect(guarded.hive_port, transport, username=role, password="pencil")
    assert rows(connection.cursor(), "SELECT 1") == [(1,)]
    connection.close()
    with pytest.raises(Exception, match="password authentication failed|Unauthorized|401"):
        connect(guarded.hive_port, transport, username=role, password="wrong")


def test_without_a_password_nobody_is_let_in(guarded):
    for transport in ("nosasl", "none"):
        with pytest.raises(Exception):
            connect(guarded.hive_port, transport)


def test_rights_hold_column_by_column(guarded, admin, role, visits):
    connection = connect(guarded.hive_port, "ldap", username=role, password="pencil")
    cursor = connection.cursor()
    with pytest.raises(OperationalError):
        cursor.execute(f"SELECT account FROM {visits}")
    assert (visits,) not in rows(cursor, "SHOW TABLES")
    admin.execute(f"GRANT SELECT (account) ON {visits} TO {role}")
    assert rows(cursor, f"SELECT sum(account) FROM {visits}") == [(3,)]
    with pytest.raises(OperationalError, match="permission denied"):
        cursor.execute(f"SELECT cost FROM {visits}")
    assert (visits,) in rows(cursor, "SHOW TABLES")
    assert rows(cursor, f"DESCRIBE {visits}") == [("account", "bigint", "")]
    connection.close()


def test_roles_in_the_spelling_of_hive(guarded, admin, role, visits):
    group = f"g_{uuid.uuid4().hex[:12]}"
    admin.execute("SET stoa.dialect=hive")
    admin.execute(f"CREATE ROLE {group}")
    admin.execute(f"GRANT SELECT ON TABLE {visits} TO ROLE {group}")
    admin.execute(f"GRANT ROLE {group} TO USER {role}")
    connection = connect(guarded.hive_port, "ldap", dialect="hive", username=role, password="pencil")
    cursor = connection.cursor()
    assert rows(cursor, f"SELECT count(*) FROM {visits}") == [(2,)]
    assert rows(cursor, "SHOW CURRENT ROLES") == [(group,), ("public",)]
    cursor.execute(f"SET ROLE {group}")
    with pytest.raises(OperationalError, match="doesn't belong to role admin"):
        cursor.execute("SET ROLE admin")
    granted = ("default", visits, "", "", group, "ROLE", "SELECT", False, None, None)
    assert rows(cursor, f"SHOW GRANT ON TABLE {visits}") == [granted]
    assert [column[0] for column in cursor.description] == [
        "database", "table", "partition", "column", "principal_name", "principal_type",
        "privilege", "grant_option", "grant_time", "grantor",
    ]  # fmt: skip
    assert rows(admin, f"SHOW ROLE GRANT USER {role}") == [(group, False, None, None), ("public", False, None, None)]
    assert rows(admin, f"SHOW PRINCIPALS {group}") == [(role, "USER", False, None, None, None)]
    assert (group,) in rows(admin, "SHOW ROLES")
    admin.execute(f"REVOKE ROLE {group} FROM USER {role}")
    with pytest.raises(OperationalError, match="does not exist|permission denied"):
        cursor.execute(f"SELECT count(*) FROM {visits}")
    connection.close()
    admin.execute(f"REVOKE SELECT ON TABLE {visits} FROM ROLE {group}")
    admin.execute(f"DROP ROLE {group}")
    admin.execute("SET stoa.dialect=postgres")


def test_nobody_acts_as_somebody_else(guarded, role):
    with pytest.raises(OperationalError, match="cannot act as"):
        configuration = {"hive.server2.proxy.user": SUPERUSER}
        connect(guarded.hive_port, "ldap", username=role, password="pencil", configuration=configuration)


def test_a_handle_is_of_its_role(guarded, role):
    own = connect(guarded.hive_port, "ldap", username=SUPERUSER, password=PASSWORD)
    other = connect(guarded.hive_port, "ldap", username=role, password="pencil")
    other._sessionHandle = own._sessionHandle
    with pytest.raises(OperationalError, match="Invalid SessionHandle"):
        other.cursor().execute("SELECT 1")
    own.close()


def test_no_value_of_a_hidden_column_is_in_any_answer(guarded, admin, role):
    vault = f"v_{uuid.uuid4().hex[:12]}"
    admin.execute(f"CREATE TABLE {vault} (open_a text, open_b text, hidden_c text) PARTITIONED BY (hidden_c)")
    admin.execute(f"INSERT INTO {vault} VALUES ('canary_a1', 'canary_b1', 'canary_c1')")
    statements = [
        "SELECT * FROM {}",
        "SELECT `open_a` FROM `default`.`{}`",
        "SELECT open_b, open_a FROM {} ORDER BY open_b",
        "SELECT max(hidden_c) FROM {}",
        "SELECT open_a FROM {} WHERE hidden_c IS NOT NULL",
        "SELECT 1 / (length(hidden_c) - 9), hidden_c::bigint FROM {}",
        "DESCRIBE {}",
        "DESCRIBE FORMATTED {}",
        "SHOW PARTITIONS FROM {}",
        "SHOW FILES FROM {}",
        "SELECT * FROM system.queries",
    ]
    connection = connect(guarded.hive_port, "ldap", username=role, password="pencil")
    cursor = connection.cursor()

    def told(sql):
        try:
            said = str(rows(cursor, sql))
        except Exception as error:
            said = repr(error)
        return said + str(cursor.fetch_logs() if cursor._operationHandle else "")

    for granted in range(8):
        columns = [column for bit, column in enumerate(("open_a", "open_b", "hidden_c")) if granted >> bit & 1]
        admin.execute(f"REVOKE ALL ON {vault} FROM {role}")
        if columns:
            admin.execute(f"GRANT SELECT ({', '.join(columns)}) ON {vault} TO {role}")
        for sql in statements:
            for _ in range(2):
                said = told(sql.format(vault))
                for column in ("open_a", "open_b", "hidden_c"):
                    assert column in columns or f"canary_{column[-1]}" not in said, (columns, sql, said)
    connection.close()
    admin.execute(f"DROP TABLE {vault}")
