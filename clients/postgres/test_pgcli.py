"""pgcli: what it reads for its completion when it connects, and its backslash commands."""

import os

import pytest

pgcli = pytest.importorskip("pgcli.pgexecute")


@pytest.fixture(scope="module")
def execute():
    executor = pgcli.PGExecute(
        database="stoa", user="stoa", host=os.environ["PGHOST"], port=os.environ["PGPORT"]
    )
    yield executor
    executor.conn.close()


def test_what_it_completes(execute, table, conn):
    name = table("id bigint NOT NULL, note text, PRIMARY KEY (id)")
    conn.execute(f"CREATE VIEW {name}_view AS SELECT id FROM {name}")
    try:
        assert ("public", name) in list(execute.tables())
        assert ("public", f"{name}_view") in list(execute.views())
        columns = {column[1:4] for column in execute.table_columns()}
        assert {(name, "id", "bigint"), (name, "note", "text")} <= columns
        assert (f"{name}_view", "id", "bigint") in {column[1:4] for column in execute.view_columns()}
        assert name in execute.view_definition(f"{name}_view")
    finally:
        conn.execute(f"DROP VIEW {name}_view")
    assert "public" in execute.schemata() and execute.search_path()[-1:] == ["public"]
    assert "stoa" in execute.databases()
    functions = list(execute.functions())
    assert any(function.func_name == "upper" for function in functions) or not functions
    list(execute.datatypes())
    list(execute.foreignkeys())
    assert execute.get_timezone()
    assert execute.server_version


@pytest.mark.parametrize(
    "command",
    ["\\l", "\\d", "\\dt", "\\dt+", "\\dv", "\\dm", "\\di", "\\ds", "\\df", "\\dT", "\\dn", "\\du", "\\dp", "\\db",
     "\\dx", "\\dD", "\\dE", "\\ddp", "\\d $name", "\\d+ $name"],
)  # fmt: skip
def test_its_commands(execute, table, command):
    name = table("id bigint NOT NULL, note text, PRIMARY KEY (id)")
    from pgspecial.main import PGSpecial

    for title, rows, headers, status, *_ in execute.run(command.replace("$name", name), pgspecial=PGSpecial()):
        rows = list(rows or [])
        if command in ("\\d", "\\dt"):
            assert any(name in row for row in rows)
        if "$name" in command:
            assert [row[0] for row in rows] == ["id", "note"]
            assert "bigint" in rows[0] and "PRIMARY KEY" in (status or "")
