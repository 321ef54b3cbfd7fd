//! The tables of the JDBC catalog, as Iceberg's Java and PyIceberg create them, and those of roles,
//! grants and resource plans, which are Stoa's.

use sqlx::{Row, SqliteConnection};

/// The tables and views.
pub(crate) const TABLES: &str = "CREATE TABLE IF NOT EXISTS iceberg_tables (
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

/// The tables of the policy. All have the catalog's name in their keys, as Iceberg's have.
const POLICY: [&str; 5] = [
    // secret: PostgreSQL's text of a SCRAM-SHA-256 secret.
    "CREATE TABLE IF NOT EXISTS stoa_roles (
        catalog_name VARCHAR(255) NOT NULL,
        role_name VARCHAR(255) NOT NULL,
        can_login INTEGER NOT NULL,
        is_superuser INTEGER NOT NULL,
        secret VARCHAR(2000),
        PRIMARY KEY (catalog_name, role_name))",
    "CREATE TABLE IF NOT EXISTS stoa_role_members (
        catalog_name VARCHAR(255) NOT NULL,
        role_name VARCHAR(255) NOT NULL,
        member_name VARCHAR(255) NOT NULL,
        PRIMARY KEY (catalog_name, role_name, member_name))",
    // object_type: 'table' (object: the UUID of a table or view) or 'namespace' (its name). grantee: '' is PUBLIC.
    // field_id: -1 is the whole object; otherwise one row for each column.
    "CREATE TABLE IF NOT EXISTS stoa_grants (
        catalog_name VARCHAR(255) NOT NULL,
        object_type VARCHAR(9) NOT NULL,
        object VARCHAR(255) NOT NULL,
        grantee VARCHAR(255) NOT NULL,
        privilege VARCHAR(6) NOT NULL,
        field_id INTEGER NOT NULL,
        PRIMARY KEY (catalog_name, object_type, object, grantee, privilege, field_id))",
    "CREATE TABLE IF NOT EXISTS stoa_owners (
        catalog_name VARCHAR(255) NOT NULL,
        table_uuid VARCHAR(36) NOT NULL,
        role_name VARCHAR(255) NOT NULL,
        PRIMARY KEY (catalog_name, table_uuid))",
    // No row: version 0, of a policy that was never changed.
    "CREATE TABLE IF NOT EXISTS stoa_policy_version (
        catalog_name VARCHAR(255) NOT NULL PRIMARY KEY,
        version BIGINT NOT NULL)",
];

/// Written to where nothing but a commit is wanted.
const SETTLED: &str = "CREATE TABLE IF NOT EXISTS stoa_settled (
    catalog_name VARCHAR(255) NOT NULL PRIMARY KEY,
    times INTEGER NOT NULL)";

/// closed_at: NULL while the log may hold rows that are in no file.
const LOGS: &str = "CREATE TABLE IF NOT EXISTS stoa_logs (
    catalog_name VARCHAR(255) NOT NULL,
    log_id VARCHAR(255) NOT NULL,
    place VARCHAR(1000) NOT NULL,
    closed_at BIGINT,
    PRIMARY KEY (catalog_name, log_id))";

/// From which salts of roles that cannot log in are made; one row, never changed.
const LOGIN_KEY: &str = "CREATE TABLE IF NOT EXISTS stoa_login_key (
    catalog_name VARCHAR(255) NOT NULL PRIMARY KEY,
    login_key BLOB NOT NULL)";

/// Numbers that identity columns have not given out yet.
const SEQUENCES: &str = "CREATE TABLE IF NOT EXISTS stoa_sequences (
    catalog_name VARCHAR(255) NOT NULL,
    sequence_id VARCHAR(36) NOT NULL,
    next_value BIGINT NOT NULL,
    step BIGINT NOT NULL,
    PRIMARY KEY (catalog_name, sequence_id))";

/// definition: the text of `stoa_workload::ResourcePlan`.
const RESOURCE_PLANS: &str = "CREATE TABLE IF NOT EXISTS stoa_resource_plans (
    catalog_name VARCHAR(255) NOT NULL,
    plan_name VARCHAR(255) NOT NULL,
    definition TEXT NOT NULL,
    PRIMARY KEY (catalog_name, plan_name))";

/// All tables but [`TABLES`] that both databases have.
pub(crate) const OTHERS: [&str; 11] = [
    NAMESPACES,
    POLICY[0],
    POLICY[1],
    POLICY[2],
    POLICY[3],
    POLICY[4],
    SETTLED,
    LOGS,
    LOGIN_KEY,
    SEQUENCES,
    RESOURCE_PLANS,
];

/// Brings [`TABLES`] of schema version V0 to V1.
pub(crate) const ADD_TYPE: &str = "ALTER TABLE iceberg_tables ADD COLUMN iceberg_type VARCHAR(5)";

/// Creates what is missing; adds the type column to a database of schema version V0.
pub(crate) async fn ensure_in_sqlite(connection: &mut SqliteConnection) -> sqlx::Result<()> {
    for table in [TABLES].into_iter().chain(OTHERS) {
        sqlx::query(table).execute(&mut *connection).await?;
    }
    let typed: i64 = sqlx::query(
        "SELECT count(*) FROM pragma_table_info('iceberg_tables') WHERE name = 'iceberg_type'",
    )
    .fetch_one(&mut *connection)
    .await?
    .try_get(0)?;
    if typed == 0 {
        sqlx::query(ADD_TYPE).execute(connection).await?;
    }
    Ok(())
}
