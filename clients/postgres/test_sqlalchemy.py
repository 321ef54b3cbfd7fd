"""SQLAlchemy 2.0 with three drivers: the inspector, reflection, ORM with RETURNING; pandas with `to_sql`."""

import datetime as dt
import os
from decimal import Decimal

import pandas
import pytest
import sqlalchemy as sa
from sqlalchemy import orm

DRIVERS = ["psycopg", "pg8000", "asyncpg"]


def url(driver):
    return f"postgresql+{driver}://stoa@{os.environ['PGHOST']}:{os.environ['PGPORT']}/stoa"


@pytest.fixture(params=DRIVERS[:2])
def engine(request):
    made = sa.create_engine(url(request.param))
    yield made
    made.dispose()


class Base(orm.DeclarativeBase):
    pass


class User(Base):
    __tablename__ = "sa_users"
    id: orm.Mapped[int] = orm.mapped_column(sa.BigInteger, primary_key=True, autoincrement=False)
    name: orm.Mapped[str]
    at: orm.Mapped[dt.datetime | None]
    amount: orm.Mapped[Decimal | None] = orm.mapped_column(sa.Numeric(12, 2))


@pytest.fixture
def users(engine):
    Base.metadata.drop_all(engine)
    Base.metadata.create_all(engine)
    yield engine
    Base.metadata.drop_all(engine)


def test_inspector(engine, table):
    name = table(
        "day date, name text NOT NULL, clicks bigint, cost numeric(12,2), ts timestamp, tz timestamptz, ok boolean, "
        "d double precision, r real, tags text[]"
    )
    found = sa.inspect(engine)
    columns = {column["name"]: (str(column["type"]), column["nullable"]) for column in found.get_columns(name)}
    assert columns == {
        "day": ("DATE", True), "name": ("TEXT", False), "clicks": ("BIGINT", True), "cost": ("NUMERIC(12, 2)", True),
        "ts": ("TIMESTAMP", True), "tz": ("TIMESTAMP", True), "ok": ("BOOLEAN", True),
        "d": ("DOUBLE PRECISION", True), "r": ("REAL", True), "tags": ("ARRAY", True),
    }  # fmt: skip
    assert found.get_columns(name)[5]["type"].timezone
    assert "public" in found.get_schema_names()
    assert name in found.get_table_names() and found.has_table(name) and not found.has_table("nope")
    assert found.get_pk_constraint(name)["constrained_columns"] == []
    for nothing in (found.get_foreign_keys, found.get_indexes, found.get_unique_constraints, found.get_check_constraints):
        assert nothing(name) == []
    assert found.get_sequence_names() == [] and found.get_enums() == []
    assert found.get_temp_table_names() == [] and found.get_materialized_view_names() == []


def test_views_and_comments(engine, conn, table):
    name = table("a bigint")
    conn.execute(f"CREATE VIEW {name}_v AS SELECT a + 1 AS b FROM {name}")
    conn.execute(f"COMMENT ON TABLE {name} IS 'of numbers'")
    try:
        found = sa.inspect(engine)
        assert f"{name}_v" in found.get_view_names() and name not in found.get_view_names()
        assert [column["name"] for column in found.get_columns(f"{name}_v")] == ["b"]
        assert found.get_table_comment(name) == {"text": "of numbers"}
        metadata = sa.MetaData()
        metadata.reflect(engine, views=True)
        assert {name, f"{name}_v"} <= set(metadata.tables)
    finally:
        conn.execute(f"DROP VIEW {name}_v")


def test_reflected_table_answers(engine, conn, table):
    name = table("k text, clicks bigint")
    conn.execute(f"INSERT INTO {name} VALUES ('a', 1), ('b', 2), ('a', 3)")
    reflected = sa.Table(name, sa.MetaData(), autoload_with=engine)
    query = sa.select(reflected.c.k, sa.func.sum(reflected.c.clicks)).group_by(reflected.c.k).order_by(reflected.c.k)
    with engine.connect() as connection:
        answer = connection.execute(query)
        assert list(answer.keys()) == ["k", "sum_1"]
        assert answer.all() == [("a", 4), ("b", 2)]


def test_orm(users):
    with orm.Session(users) as session:
        session.add_all([User(id=k, name=f"n{k}", amount=Decimal("1.25") * k) for k in range(1, 6)])
        session.commit()
        assert session.scalar(sa.select(sa.func.count()).select_from(User)) == 5
        session.get(User, 2).name = "changed"
        session.commit()
        session.delete(session.get(User, 3))
        session.commit()
        rows = session.execute(sa.select(User.id, User.name, User.amount).order_by(User.id)).all()
    assert rows == [
        (1, "n1", Decimal("1.25")), (2, "changed", Decimal("2.50")), (4, "n4", Decimal("5.00")), (5, "n5", Decimal("6.25")),
    ]  # fmt: skip


def test_returning(users):
    with orm.Session(users) as session:
        rows = [{"id": k, "name": "r"} for k in (10, 11, 12)]
        made = session.scalars(sa.insert(User).returning(User), rows).all()
        assert sorted(user.id for user in made) == [10, 11, 12]
        session.commit()
        changed = session.execute(sa.update(User).where(User.id > 10).values(name="x").returning(User.id, User.name))
        assert sorted(changed.all()) == [(11, "x"), (12, "x")]
        session.commit()
        gone = session.execute(sa.delete(User).where(User.id == 12).returning(User.name)).all()
        assert gone == [("x",)]
        session.commit()
        assert session.scalar(sa.select(sa.func.count()).select_from(User)) == 2


def test_upsert(users):
    from sqlalchemy.dialects.postgresql import insert

    new = insert(User).values([{"id": 1, "name": "new"}, {"id": 2, "name": "two"}])
    new = new.on_conflict_do_update(index_elements=["id"], set_={"name": new.excluded.name})
    with users.begin() as connection:
        connection.execute(sa.insert(User).values(id=1, name="old"))
    with users.begin() as connection:
        assert sorted(connection.execute(new.returning(User.id, User.name)).all()) == [(1, "new"), (2, "two")]
    again = insert(User).values(id=1, name="not").on_conflict_do_nothing()
    with users.begin() as connection:
        connection.execute(again)
        assert connection.execute(sa.select(User.name).order_by(User.id)).scalars().all() == ["new", "two"]


def test_pandas(engine, conn):
    frame = pandas.DataFrame(
        {"a": [1, 2], "b": ["x", None], "c": [1.5, None], "d": pandas.to_datetime(["2026-01-01 00:00:00", "2026-01-02 03:04:05"])}
    )
    try:
        frame.to_sql("sa_frame", engine, index=False, if_exists="replace")
        frame.to_sql("sa_frame", engine, index=False, if_exists="replace")
        frame.to_sql("sa_frame", engine, index=False, if_exists="append", method="multi")
        back = pandas.read_sql_table("sa_frame", engine)
        assert back.shape == (4, 4)
        both = back.sort_values("a", ignore_index=True).astype(frame.dtypes.to_dict())
        assert both.iloc[::2].reset_index(drop=True).equals(frame.astype(both.dtypes.to_dict()))
        counted = pandas.read_sql("SELECT a, count(*), sum(c) FROM sa_frame GROUP BY a ORDER BY a", engine)
        assert list(counted.columns) == ["a", "count", "sum"]
        assert counted["count"].tolist() == [2, 2]
    finally:
        conn.execute("DROP TABLE IF EXISTS sa_frame")


def test_asyncpg(table):
    import asyncio

    from sqlalchemy.ext.asyncio import create_async_engine

    name = table("a bigint")

    async def run():
        engine = create_async_engine(url("asyncpg"))
        async with engine.begin() as connection:
            await connection.execute(sa.text(f"INSERT INTO {name} VALUES (:a)"), [{"a": 1}, {"a": 2}])
            rows = (await connection.execute(sa.text(f"SELECT sum(a) FROM {name}"))).scalar()
            names = await connection.run_sync(lambda sync: sa.inspect(sync).get_table_names())
        await engine.dispose()
        return rows, names

    rows, names = asyncio.run(run())
    assert rows == 3 and name in names
