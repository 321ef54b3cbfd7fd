"""ibis: expressions over tables, tables and views made from them, frames from memory beside tables."""

import os

import ibis
import pandas
import pytest


@pytest.fixture
def con():
    made = ibis.postgres.connect(host=os.environ["PGHOST"], port=int(os.environ["PGPORT"]), user="stoa", database="stoa")
    schema = ibis.schema({"day": "date", "name": "string", "clicks": "int64", "cost": "decimal(12, 2)", "at": "timestamp(6)"})
    made.create_table("ibis_ads", schema=schema, overwrite=True)
    made.raw_sql(
        "INSERT INTO ibis_ads SELECT DATE '2026-01-01' + n::int, 'n' || n % 3, n, n * 1.5, TIMESTAMP '2026-01-01 01:02:03' "
        "FROM generate_series(1, 30) AS s(n)"
    ).close()
    yield made
    made.drop_table("ibis_ads", force=True)
    made.disconnect()


@pytest.fixture
def ads(con):
    return con.table("ibis_ads")


def test_schema(con, ads):
    assert dict(ads.schema().items()) == dict(
        ibis.schema({"day": "date", "name": "string", "clicks": "int64", "cost": "decimal(12, 2)", "at": "timestamp(6)"}).items()
    )
    assert "ibis_ads" in con.list_tables() and "public" in con.list_databases()


def test_expressions(ads):
    sums = ads.group_by("name").aggregate(n=ads.count(), s=ads.clicks.sum(), m=ads.clicks.mean()).order_by("name").execute()
    assert sums["s"].tolist() == [165, 145, 155] and sums["n"].tolist() == [10, 10, 10]
    some = ads.filter(ads.clicks > 28).mutate(y=ads.day.year(), z=ads.name.upper(), r=ads.clicks * 2).order_by("clicks").execute()
    assert some[["y", "z", "r"]].values.tolist() == [[2026, "N2", 58], [2026, "N0", 60]]
    ranked = ads.mutate(r=ibis.row_number().over(order_by=ibis.desc("clicks"))).filter(lambda t: t.r < 2).select("clicks", "r")
    assert ranked.execute().values.tolist() == [[30, 0], [29, 1]]
    months = ads.group_by(ads.at.truncate("M").name("month")).aggregate(n=ads.count()).execute()
    assert months["n"].tolist() == [30] and ads.name.nunique().execute() == 3
    assert ads.limit(3).to_pyarrow().num_rows == 3


def test_tables_views_and_frames(con, ads):
    frame = pandas.DataFrame({"name": ["n0", "n1"], "weight": [1.5, 2.5]})
    con.create_table("ibis_weights", schema=ibis.schema({"name": "string", "weight": "float64"}), overwrite=True)
    con.insert("ibis_weights", frame)
    weights = con.table("ibis_weights")
    joined = ads.join(weights, "name").group_by("name").aggregate(w=lambda t: t.weight.sum()).order_by("name").execute()
    assert joined["w"].tolist() == [15.0, 25.0]
    assert ads.join(ibis.memtable(frame), "name").count().execute() == 20
    view = con.create_view("ibis_few", ads.filter(ads.clicks < 3), overwrite=True)
    assert view.count().execute() == 2
    assert con.sql("SELECT name, count(*) AS n FROM ibis_ads GROUP BY name ORDER BY name").execute()["n"].tolist() == [10, 10, 10]
    con.drop_view("ibis_few")
    con.drop_table("ibis_weights")
