//! What there is, and what the server can do.

use arrow_array::cast::AsArray;
use arrow_flight::sql::{
    CommandGetCrossReference, CommandGetDbSchemas, CommandGetExportedKeys, CommandGetImportedKeys,
    CommandGetPrimaryKeys, CommandGetTables, CommandGetXdbcTypeInfo, SqlInfo,
};
use arrow_flight::{FlightInfo, IpcMessage};
use arrow_schema::{DataType, Schema};

use crate::support::*;

async fn answer(
    client: &mut Client,
    info: Result<FlightInfo, arrow_flight::error::FlightError>,
) -> Vec<String> {
    let info = info.unwrap();
    let told = info.clone().try_decode_schema().unwrap();
    let batches = fetch(client, info).await.unwrap();
    assert!(batches.iter().all(|batch| batch.schema().as_ref() == &told));
    lines(&batches)
}

async fn server_with_tables() -> (Server, Client) {
    let server = Server::start().await;
    let mut client = server.client().await;
    run(&mut client, "CREATE SCHEMA sales").await;
    run(&mut client, "CREATE TABLE one (id bigint NOT NULL, price decimal(9, 2), word text)").await;
    run(&mut client, "CREATE TABLE sales.two (day date)").await;
    (server, client)
}

#[tokio::test]
async fn catalogs_schemas_and_tables_are_listed() {
    let (_server, mut client) = server_with_tables().await;
    let info = client.get_catalogs().await;
    assert_eq!(answer(&mut client, info).await, ["stoa"]);
    let info = client.get_table_types().await;
    assert_eq!(answer(&mut client, info).await, ["TABLE"]);
    let schemas = |pattern: Option<&str>| CommandGetDbSchemas {
        catalog: None,
        db_schema_filter_pattern: pattern.map(str::to_owned),
    };
    let info = client.get_db_schemas(schemas(None)).await;
    assert_eq!(answer(&mut client, info).await, ["stoa,public", "stoa,sales"]);
    let info = client.get_db_schemas(schemas(Some("s%"))).await;
    assert_eq!(answer(&mut client, info).await, ["stoa,sales"]);

    let mut tables = CommandGetTables::default();
    let info = client.get_tables(tables.clone()).await;
    let all = ["stoa,public,one,TABLE", "stoa,sales,two,TABLE"];
    assert_eq!(answer(&mut client, info).await, all);
    tables.table_name_filter_pattern = Some("o_e".to_owned());
    let info = client.get_tables(tables.clone()).await;
    assert_eq!(answer(&mut client, info).await, &all[..1]);
    tables.table_types = vec!["VIEW".to_owned()];
    let info = client.get_tables(tables).await;
    assert_eq!(answer(&mut client, info).await.len(), 0);
    let none = CommandGetTables { catalog: Some("other".to_owned()), ..Default::default() };
    let info = client.get_tables(none).await;
    assert_eq!(answer(&mut client, info).await.len(), 0);
}

#[tokio::test]
async fn tables_come_with_their_columns() {
    let (_server, mut client) = server_with_tables().await;
    let tables = CommandGetTables { include_schema: true, ..Default::default() };
    let info = client.get_tables(tables).await.unwrap();
    let batches = fetch(&mut client, info).await.unwrap();
    let schemas = batches[0].column_by_name("table_schema").unwrap().as_binary::<i32>();
    let one = Schema::try_from(IpcMessage(schemas.value(0).to_vec().into())).unwrap();
    let (id, price) = (one.field(0), one.field(1));
    assert_eq!(
        (id.name().as_str(), id.data_type(), id.is_nullable()),
        ("id", &DataType::Int64, false)
    );
    assert_eq!(price.metadata()["ARROW:FLIGHT:SQL:TYPE_NAME"], "decimal(9, 2)");
    assert_eq!(price.metadata()["ARROW:FLIGHT:SQL:SCALE"], "2");
}

#[tokio::test]
async fn there_are_no_keys() {
    let (_server, mut client) = server_with_tables().await;
    let table = || "one".to_owned();
    let info = client
        .get_primary_keys(CommandGetPrimaryKeys { table: table(), ..Default::default() })
        .await;
    assert_eq!(answer(&mut client, info).await.len(), 0);
    let info = client
        .get_exported_keys(CommandGetExportedKeys { table: table(), ..Default::default() })
        .await;
    assert_eq!(answer(&mut client, info).await.len(), 0);
    let info = client
        .get_imported_keys(CommandGetImportedKeys { table: table(), ..Default::default() })
        .await;
    assert_eq!(answer(&mut client, info).await.len(), 0);
    let info = client.get_cross_reference(CommandGetCrossReference::default()).await;
    assert_eq!(answer(&mut client, info).await.len(), 0);
}

#[tokio::test]
async fn the_server_says_what_it_can_do() {
    let (_server, mut client) = server_with_tables().await;
    let info = client.get_sql_info(vec![SqlInfo::FlightSqlServerName]).await.unwrap();
    assert_eq!(fetch(&mut client, info).await.unwrap()[0].num_rows(), 1);
    let info = client.get_sql_info(Vec::new()).await.unwrap();
    assert!(fetch(&mut client, info).await.unwrap()[0].num_rows() > 80);
    let info = client.get_xdbc_type_info(CommandGetXdbcTypeInfo { data_type: None }).await;
    assert_eq!(answer(&mut client, info).await.len(), 11);
    let info = client.get_xdbc_type_info(CommandGetXdbcTypeInfo { data_type: Some(-5) }).await;
    assert!(answer(&mut client, info).await[0].starts_with("bigint"));
}
