"""What ADBC asks of a database besides queries."""

import pyarrow as pa


def test_objects_with_their_columns(conn, cursor, name):
    cursor.execute(f"CREATE TABLE {name} (id bigint NOT NULL, price decimal(9, 2), day date)")
    objects = conn.adbc_get_objects(depth="all", table_name_filter=name).read_all().to_pylist()
    assert [catalog["catalog_name"] for catalog in objects] == ["stoa"]
    schemas = {s["db_schema_name"]: s["db_schema_tables"] for s in objects[0]["catalog_db_schemas"]}
    (table,) = schemas["public"]
    assert (table["table_name"], table["table_type"]) == (name, "TABLE")
    columns = [(c["column_name"], c["xdbc_type_name"]) for c in table["table_columns"]]
    assert columns == [("id", "bigint"), ("price", "decimal(9, 2)"), ("day", "date")]
    nothing = conn.adbc_get_objects(depth="tables", table_types_filter=["VIEW"]).read_all().to_pylist()
    assert all(not s["db_schema_tables"] for c in nothing for s in c["catalog_db_schemas"])


def test_a_tables_schema(conn, cursor, name):
    cursor.execute(f"CREATE TABLE {name} (id bigint NOT NULL, word text)")
    schema = conn.adbc_get_table_schema(name)
    assert [(f.name, f.type, f.nullable) for f in schema] == [
        ("id", pa.int64(), False),
        ("word", pa.string(), True),
    ]


def test_the_server_names_itself(conn):
    info = conn.adbc_get_info()
    assert info["vendor_name"] == "Stoa"
    assert conn.adbc_get_table_types() == ["TABLE"]
    assert conn.adbc_current_catalog == "stoa"
    assert conn.adbc_current_db_schema == "public"


def test_what_dbapi_does_without_autocommit(recwarn):
    import adbc_driver_flightsql.dbapi as flightsql

    from conftest import URI

    with flightsql.connect(URI) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT 1")
        assert cursor.fetchone() == (1,)
        connection.commit()
    assert any("autocommit" in str(warning.message) for warning in recwarn)
