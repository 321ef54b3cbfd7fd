//! The tables of the JDBC catalog, as Iceberg's Java and PyIceberg create them.

use sqlx::{Row, SqliteConnection};

const TABLES: &str = "CREATE TABLE IF NOT EXISTS iceberg_tables (
    catalog_name VARCHAR(255) NOT NULL,
    table_namespace VARCHAR(255) NOT NULL,
    table_name VARCHAR(255) NOT NULL,
    metadata_location VARCHAR(1000),
    previous_metadata_location VARCHAR(1000),
    iceberg_type VARCHAR(5),
    PRIMARY KEY (catalog_name, table_namespace, table_name))";

const NAMESPACES: &str = "CREATE TABLE IF NOT EXISTS iceberg_namespace_properties (
    catalog_name VARCHAR(255) NOT NULL,
    namespace VARCHAR(255) NOT NULL,
    property_key VARCHAR(255) NOT NULL,
    property_value VARCHAR(1000),
    PRIMARY KEY (catalog_name, namespace, property_key))";

/// Creates what is missing; adds the type column to a database of schema version V0.
pub(crate) async fn ensure(connection: &mut SqliteConnection) -> sqlx::Result<()> {
    sqlx::query(TABLES).execute(&mut *connection).await?;
    sqlx::query(NAMESPACES).execute(&mut *connection).await?;
    let typed: i64 = sqlx::query(
        "SELECT count(*) FROM pragma_table_info('iceberg_tables') WHERE name = 'iceberg_type'",
    )
    .fetch_one(&mut *connection)
    .await?
    .try_get(0)?;
    if typed == 0 {
        sqlx::query("ALTER TABLE iceberg_tables ADD COLUMN iceberg_type VARCHAR(5)")
            .execute(connection)
            .await?;
    }
    Ok(())
}
