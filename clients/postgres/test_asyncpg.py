"""asyncpg: binary values of all types both ways, cursors, COPY, pools."""

import asyncio
import datetime as dt
import os
import uuid
from decimal import Decimal

import asyncpg
import pytest


def run(work):
    """Runs a coroutine function with a connection."""

    async def connected():
        connection = await asyncpg.connect(host=os.environ["PGHOST"], port=os.environ["PGPORT"])
        try:
            return await work(connection)
        finally:
            await connection.close()

    return asyncio.run(connected())


def test_values_of_all_types_go_there_and_back(table):
    columns = {
        "i": "int", "l": "bigint", "d": "double precision", "n": "numeric(12,2)", "t": "text", "b": "boolean",
        "day": "date", "at": "timestamp", "seen": "timestamptz", "raw": "bytea", "names": "text[]",
    }  # fmt: skip
    name = table(", ".join(f"{column} {of}" for column, of in columns.items()))
    row = (
        1, 2**40, 0.5, Decimal("12.50"), "it's", True, dt.date(2026, 1, 2), dt.datetime(2026, 1, 2, 3, 4, 5, 6),
        dt.datetime(2026, 1, 2, 3, tzinfo=dt.timezone.utc), b"\x00\xff", ["a, b", None, "{}"],
    )  # fmt: skip
    empty = (None,) * len(columns)

    async def work(connection):
        places = ", ".join(f"${number}" for number in range(1, len(columns) + 1))
        await connection.executemany(f"INSERT INTO {name} VALUES ({places})", [row, empty])
        rows = await connection.fetch(f"SELECT * FROM {name} ORDER BY i NULLS LAST")
        assert [tuple(found) for found in rows] == [row, empty]
        found = await connection.fetchval(f"SELECT count(*) FROM {name} WHERE i = $1 AND t = ANY($2::text[])", 1, ["it's", None])
        assert found == 1
        return await connection.fetchval("SELECT $1::text[]", ["x", None])

    assert run(work) == ["x", None]


def test_transactions_and_cursors(table):
    name = table("n bigint")

    async def work(connection):
        async with connection.transaction():
            await connection.executemany(f"INSERT INTO {name} VALUES ($1)", [(n,) for n in range(100)])
            numbers = [r["n"] async for r in connection.cursor(f"SELECT n FROM {name} ORDER BY n", prefetch=7)]
        assert numbers == list(range(100))
        with pytest.raises(asyncpg.DivisionByZeroError):
            async with connection.transaction():
                await connection.execute(f"INSERT INTO {name} VALUES (100)")
                await connection.fetch("SELECT 1 / 0")
        return await connection.fetchval(f"SELECT count(*) FROM {name}")

    assert run(work) == 100


def test_records_are_copied_in_and_rows_out(table, tmp_path):
    name = table("n bigint, t text, at timestamptz")
    at = dt.datetime(2026, 1, 2, tzinfo=dt.timezone.utc)

    async def work(connection):
        records = [(n, f"row {n}", at) for n in range(1000)]
        assert await connection.copy_records_to_table(name, records=records) == "COPY 1000"
        out = tmp_path / "rows.csv"
        assert await connection.copy_from_query(f"SELECT n FROM {name} WHERE n < $1 ORDER BY n", 3, output=out) == "COPY 3"
        assert out.read_text().split() == ["0", "1", "2"]
        return await connection.fetchrow(f"SELECT count(*), max(at) FROM {name}")

    assert tuple(run(work)) == (1000, at)


def test_a_pool_resets_its_connections(table):
    name = table("n bigint")

    async def work():
        options = {"host": os.environ["PGHOST"], "port": os.environ["PGPORT"], "min_size": 1, "max_size": 4}
        async with asyncpg.create_pool(**options) as pool:
            async def add(n):
                async with pool.acquire() as connection:
                    await connection.execute("SET application_name = 'dirty'")
                    await connection.execute(f"INSERT INTO {name} VALUES ($1)", n)

            await asyncio.gather(*(add(n) for n in range(20)))
            async with pool.acquire() as connection:
                assert await connection.fetchval("SHOW application_name") != "dirty"
                return await connection.fetchval(f"SELECT sum(n)::bigint FROM {name}")

    assert asyncio.run(work()) == sum(range(20))


def test_errors_have_their_class_and_the_connection_goes_on():
    async def work(connection):
        with pytest.raises(asyncpg.UndefinedTableError):
            await connection.fetch("SELECT * FROM nothing")
        with pytest.raises(asyncpg.PostgresSyntaxError):
            await connection.execute("SELEC 1")
        with pytest.raises(asyncio.TimeoutError):
            await connection.fetch("SELECT count(*) FROM generate_series(1, 100000000000)", timeout=0.2)
        return await connection.fetchval("SELECT 1")

    assert run(work) == 1


def test_json_and_uuid_come_in_binary():
    async def work(connection):
        row = await connection.fetchrow(
            "SELECT '{\"b\":1,\"a\":null}'::jsonb, '[1, 2]'::json, NULL::jsonb, 'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'::uuid"
        )
        answer = await connection.fetchval("SELECT $1::jsonb ->> 'k'", '{"k": "v"}')
        return tuple(row), answer

    row, answer = run(work)
    assert row[:3] == ('{"a": null, "b": 1}', "[1, 2]", None)
    assert str(row[3]) == "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"
    assert answer == "v"
