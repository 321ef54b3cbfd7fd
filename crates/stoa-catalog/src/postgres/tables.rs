//! The tables of `schema` in PostgreSQL, and those that only PostgreSQL has.

use sqlx::{Executor, PgConnection, Row};

use super::rows::run;
use crate::schema::{ADD_TYPE, OTHERS, TABLES};

/// In PostgreSQL only: the last change that each connection has committed, by which another one learns
/// what became of it.
const WRITERS: &str = "CREATE TABLE IF NOT EXISTS stoa_writers (
    writer VARCHAR(36) NOT NULL PRIMARY KEY,
    change BIGINT NOT NULL,
    changed_at TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp())";

/// In PostgreSQL only: what daemons that share the catalog agree on, see [`crate::Cluster`]. Times are
/// microseconds since the Unix epoch on the database's clock; ids and hashes are the bits of unsigned numbers.
/// A copy of the catalog leaves these tables out: daemons join the new database anew.
const CLUSTER: [&str; 4] = [
    // removed: the highest incarnation of all rows that were removed from stoa_daemons.
    "CREATE TABLE IF NOT EXISTS stoa_cluster (
        catalog_name VARCHAR(255) NOT NULL PRIMARY KEY,
        epoch BIGINT NOT NULL,
        removed BIGINT NOT NULL,
        format BIGINT NOT NULL)",
    // state: 0 joining, 1 up, 2 draining, 3 dead. until: when its lease expires; 0 after it has left. number: that of no
    // other living daemon, as small as could be.
    "CREATE TABLE IF NOT EXISTS stoa_daemons (
        catalog_name VARCHAR(255) NOT NULL,
        daemon BIGINT NOT NULL,
        incarnation BIGINT NOT NULL,
        state SMALLINT NOT NULL,
        until BIGINT NOT NULL,
        joined_at BIGINT NOT NULL,
        state_since BIGINT NOT NULL,
        number INTEGER NOT NULL,
        host_name TEXT NOT NULL,
        peer_address TEXT NOT NULL,
        pg_address TEXT NOT NULL,
        http_address TEXT NOT NULL,
        flight_address TEXT NOT NULL,
        zone TEXT NOT NULL,
        build TEXT NOT NULL,
        protocol_min INTEGER NOT NULL,
        protocol_max INTEGER NOT NULL,
        cores BIGINT NOT NULL,
        cache_bytes BIGINT NOT NULL,
        certificate BYTEA NOT NULL,
        PRIMARY KEY (catalog_name, daemon))",
    "CREATE TABLE IF NOT EXISTS stoa_suspicions (
        catalog_name VARCHAR(255) NOT NULL,
        daemon BIGINT NOT NULL,
        suspected_by BIGINT NOT NULL,
        noted_at BIGINT NOT NULL,
        PRIMARY KEY (catalog_name, daemon, suspected_by))",
    // about: what the lease is for, for people.
    "CREATE TABLE IF NOT EXISTS stoa_leases (
        catalog_name VARCHAR(255) NOT NULL,
        name VARCHAR(255) NOT NULL,
        about TEXT NOT NULL,
        daemon BIGINT NOT NULL,
        incarnation BIGINT NOT NULL,
        epoch BIGINT NOT NULL,
        until BIGINT NOT NULL,
        PRIMARY KEY (catalog_name, name))",
];

/// The lock under which tables are made in PostgreSQL. Any number that nobody else uses.
pub(super) const SCHEMA_LOCK: i64 = 0x73746f61_00000001;

/// Creates what is missing; any number of daemons may do so at once. Only what is missing needs the
/// right to create: `CREATE TABLE IF NOT EXISTS` would need it even if there is nothing to do.
pub(super) async fn ensure(connection: &mut PgConnection) -> sqlx::Result<()> {
    let begin = format!("BEGIN; SELECT pg_advisory_xact_lock({SCHEMA_LOCK})");
    run(connection, &begin).await?;
    for table in [TABLES, WRITERS].into_iter().chain(OTHERS).chain(CLUSTER) {
        if !has_table(connection, name_of(table)).await? {
            // Metadata locations in S3 may be longer than 1,000 characters, which SQLite does not count.
            let table = table
                .replace("VARCHAR(1000)", "TEXT")
                .replace("VARCHAR(2000)", "TEXT")
                .replace("BLOB", "BYTEA");
            run(connection, &table).await?;
        }
    }
    let query = sqlx::query(
        "SELECT EXISTS (SELECT 1 FROM pg_attribute
                        WHERE attrelid = to_regclass('iceberg_tables')
                          AND attname = 'iceberg_type' AND NOT attisdropped)",
    );
    let typed: bool = connection.fetch_one(query).await?.try_get(0)?;
    if !typed {
        run(connection, ADD_TYPE).await?;
    }
    // Connections that ended long ago: nobody asks about them any more.
    run(connection, "DELETE FROM stoa_writers WHERE changed_at < now() - interval '7 days'; COMMIT")
        .await
}

/// In the schemas of the search path, whatever the account's rights.
async fn has_table(connection: &mut PgConnection, name: &str) -> sqlx::Result<bool> {
    let query = sqlx::query("SELECT to_regclass($1) IS NOT NULL").bind(name);
    connection.fetch_one(query).await?.try_get(0)
}

/// The name in a statement that creates a table.
fn name_of(table: &'static str) -> &'static str {
    table.split_whitespace().nth(5).unwrap_or_default()
}
