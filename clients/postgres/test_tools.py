"""Queries that tools send to read the catalog: none may fail, and SQLAlchemy sees a table as it is."""

import pathlib
import string

import pytest
from sqlalchemy import create_engine, inspect, select, MetaData, Table, types

QUERIES = [
    pytest.param(query, id=f"{path.stem}-{number}")
    for path in sorted((pathlib.Path(__file__).parent / "tools").glob("*.sql"))
    for number, query in enumerate(
        (line for line in path.read_text().splitlines() if not line.startswith("--")), 1
    )
]


@pytest.mark.parametrize("query", QUERIES)
def test_a_tools_query_runs(conn, table, query):
    name = table("id bigint NOT NULL, name text, PRIMARY KEY (id)")
    (oid, schema) = conn.execute(
        "SELECT oid, relnamespace FROM pg_class WHERE relname = %s", [name]
    ).fetchone()
    query = string.Template(query).substitute(table=oid, schema=schema, name=name)
    rows = conn.execute(query.rstrip(";"), prepare=False).fetchall()
    keys = ("pk_name", "PG_GET_INDEXDEF", "tc.relname = ", "AS PRIMARY_KEY")
    if "referential" not in query.lower() and any(part in query for part in (*keys, "c.relname,a.*", "c.oid,c.*,d.", "pg_namespace ORDER", "TABLE_SCHEMA")):
        assert rows


def test_sqlalchemy_sees_a_key(table):
    name = table("a bigint NOT NULL, b text NOT NULL, c int, PRIMARY KEY (b, a)")
    engine = create_engine("postgresql+psycopg://")
    inspector = inspect(engine)
    key = inspector.get_pk_constraint(name)
    # In the order of the table.
    assert (key["name"], key["constrained_columns"]) == (f"{name}_pkey", ["a", "b"])
    # The index of a key is not listed again.
    assert inspector.get_indexes(name) == [] and inspector.get_unique_constraints(name) == []
    reflected = Table(name, MetaData(), autoload_with=engine)
    assert [column.name for column in reflected.primary_key] == ["a", "b"]
    engine.dispose()


def test_sizes_are_told(conn, table):
    name = table("n bigint")
    conn.execute(f"INSERT INTO {name} SELECT n FROM generate_series(1, 100000) s (n)")
    conn.execute(f"FLUSH TABLE {name}")
    size, total = conn.execute(f"SELECT pg_relation_size('{name}'), pg_total_relation_size('{name}'::regclass)").fetchone()
    (whole,) = conn.execute("SELECT pg_database_size('stoa')").fetchone()
    assert 0 < size <= total <= whole


def test_sqlalchemy_reflects_a_table(table):
    name = table("id bigint NOT NULL, price decimal(10, 2), note text, day date, at timestamptz")
    engine = create_engine("postgresql+psycopg://")
    inspector = inspect(engine)
    assert name in inspector.get_table_names()
    assert inspector.has_table(name) and not inspector.has_table("nothing")
    assert "public" in inspector.get_schema_names()
    assert inspector.get_view_names() == []
    columns = {c["name"]: c for c in inspector.get_columns(name)}
    assert list(columns) == ["id", "price", "note", "day", "at"]
    assert isinstance(columns["id"]["type"], types.BIGINT)
    assert not columns["id"]["nullable"] and columns["note"]["nullable"]
    assert (columns["price"]["type"].precision, columns["price"]["type"].scale) == (10, 2)
    assert columns["at"]["type"].timezone
    assert inspector.get_pk_constraint(name)["constrained_columns"] == []
    assert inspector.get_foreign_keys(name) == []
    assert inspector.get_indexes(name) == []
    reflected = Table(name, MetaData(), autoload_with=engine)
    with engine.connect() as connection:
        connection.execute(reflected.insert(), [{"id": 1, "note": "a"}, {"id": 2, "note": None}])
        connection.commit()
        rows = connection.execute(select(reflected.c.id, reflected.c.note).order_by("id")).all()
    assert rows == [(1, "a"), (2, None)]
    engine.dispose()
