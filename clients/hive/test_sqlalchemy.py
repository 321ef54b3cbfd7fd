"""SQLAlchemy's dialect of Hive, which Superset uses: reflection, and queries that it writes."""

import pytest
import sqlalchemy
from conftest import PORT
from sqlalchemy import MetaData, Table, func, inspect, select
from sqlalchemy.exc import NoSuchTableError


@pytest.fixture(scope="module")
def engine():
    engine = sqlalchemy.create_engine(f"hive://me@127.0.0.1:{PORT}/default")
    with engine.connect() as connection:
        for sql in [
            "DROP TABLE IF EXISTS alchemy",
            "CREATE TABLE alchemy (account bigint, clicks bigint, word string) PARTITIONED BY (day date)",
            "INSERT INTO alchemy VALUES (17, 3, 'it\\'s', '2025-12-01'), (17, 4, NULL, '2025-12-02')",
        ]:
            connection.execute(sqlalchemy.text(sql))
    yield engine
    with engine.connect() as connection:
        connection.execute(sqlalchemy.text("DROP TABLE alchemy"))
    engine.dispose()


def test_reflection(engine):
    found = inspect(engine)
    assert "default" in found.get_schema_names()
    assert "alchemy" in found.get_table_names() and "alchemy" in found.get_table_names("default")
    assert found.has_table("alchemy") and not found.has_table("nowhere")
    columns = [(column["name"], str(column["type"])) for column in found.get_columns("alchemy", "default")]
    assert columns == [("account", "BIGINT"), ("clicks", "BIGINT"), ("word", "VARCHAR"), ("day", "DATE")]
    indexes = found.get_indexes("alchemy")
    assert [index["column_names"] for index in indexes] == [["day"]]
    with pytest.raises(NoSuchTableError):
        found.get_columns("nowhere", "default")


def test_queries(engine):
    table = Table("alchemy", MetaData(), autoload_with=engine)
    sums = select(table.c.account, func.sum(table.c.clicks).label("Total Clicks")).group_by(table.c.account)
    with engine.connect() as connection:
        assert connection.execute(sums).fetchall() == [(17, 7)]
        word = connection.execute(select(table.c.day).where(table.c.word == "it's")).scalar()
        assert str(word) == "2025-12-01"
        # The dialect refuses to write dates.
        late = select(table.c.clicks).where(table.c.day > sqlalchemy.literal_column("DATE '2025-12-01'"))
        assert connection.execute(late).scalar() == 4
