//! A server whose clients must log in, its two protocols of text: values of columns that a role may not
//! read are in no byte that it is sent, and no file is made outside of the warehouse.

use std::collections::BTreeSet;
use std::path::PathBuf;

use futures::StreamExt;
use tokio_postgres::{Client, NoTls};

use crate::harness::{Place, Server, files_below, request};

const COLUMNS: [&str; 3] = ["open_a", "open_b", "hidden_c"];
const VALUES: [&str; 3] = ["canary_a", "canary_b", "canary_c"];

/// Makes roles and rows without a server.
fn prepare(place: &Place) {
    for sql in [
        "CREATE USER ann PASSWORD 'pencil'",
        "CREATE USER boss SUPERUSER PASSWORD 'pencil'",
        "CREATE SCHEMA vault",
        "CREATE TABLE vault.ledger (open_a text, open_b text, hidden_c text) PARTITIONED BY (hidden_c)",
        "INSERT INTO vault.ledger VALUES ('canary_a1', 'canary_b1', 'canary_c1')",
        "CREATE TABLE heap (t text)",
        "GRANT SELECT, INSERT ON heap TO ann",
    ] {
        place.query(sql);
    }
}

fn statements(place: &Place) -> Vec<String> {
    let outside = place.path("outside").display().to_string();
    let mut all: Vec<String> = [
        "SELECT * FROM vault.ledger",
        "SELECT open_a FROM vault.ledger",
        "SELECT open_b, open_a FROM vault.ledger ORDER BY open_b",
        "SELECT max(hidden_c) FROM vault.ledger",
        "SELECT open_a, count(*) FROM vault.ledger WHERE open_a >= 'b' GROUP BY open_a",
        "SELECT open_a FROM vault.ledger WHERE hidden_c IS NOT NULL",
        "EXPLAIN ANALYZE SELECT open_b FROM vault.ledger WHERE hidden_c > 'a'",
        "COPY vault.ledger TO STDOUT",
        "INSERT INTO heap SELECT hidden_c FROM vault.ledger",
        "SELECT * FROM heap",
        "DELETE FROM vault.ledger WHERE hidden_c > 'z'",
        "SHOW PARTITIONS FROM vault.ledger",
        "SHOW FILES FROM vault.ledger",
        "DESCRIBE EXTENDED vault.ledger",
        "SELECT * FROM system.queries",
        "SELECT * FROM system.tables",
        "SELECT * FROM information_schema.columns",
        "SELECT * FROM pg_class",
        "SELECT * FROM pg_attribute",
    ]
    .map(str::to_owned)
    .into();
    all.push(format!("COPY (SELECT 1) TO '{outside}/one.csv'"));
    all.push(format!("EXPLAIN ANALYZE COPY (SELECT 1) TO '{outside}/two.csv' STORED AS CSV"));
    all.push(format!("COPY heap FROM STDIN WITH (reject_file '{outside}/three.csv')"));
    all
}

/// All that PostgreSQL's protocol says to a statement, both ways.
async fn over_postgresql(client: &Client, sql: &str) -> String {
    if sql.contains("FROM STDIN") {
        return match client.copy_in::<_, bytes::Bytes>(sql).await {
            Ok(sink) => format!("{:?}", std::pin::pin!(sink).finish().await),
            Err(error) => format!("{error:?}"),
        };
    }
    if sql.ends_with("TO STDOUT") {
        return match client.copy_out(sql).await {
            Ok(rows) => format!("{:?}", rows.collect::<Vec<_>>().await),
            Err(error) => format!("{error:?}"),
        };
    }
    let simple = format!("{:?}", client.simple_query(sql).await);
    let extended = match client.prepare(sql).await {
        Ok(statement) => {
            let columns = format!("{:?}", statement.columns());
            let rows = client.query(&statement, &[]).await;
            let texts = rows.map(|rows| {
                let text = |row: &tokio_postgres::Row| {
                    let cells = (0..row.len()).map(|cell| row.try_get::<_, Option<String>>(cell));
                    format!("{:?}", cells.collect::<Vec<_>>())
                };
                rows.iter().map(text).collect::<Vec<_>>()
            });
            format!("{columns} {texts:?}")
        }
        Err(error) => format!("{error:?}"),
    };
    simple + &extended
}

fn over_http(server: &Server, head: &str, body: &str) -> String {
    // ann:pencil
    let text = format!(
        "{head} HTTP/1.0\r\nHost: localhost\r\nConnection: close\r\n\
         Authorization: Basic YW5uOnBlbmNpbA==\r\nContent-Type: text/plain\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    request(server.http_port(), &text).expect("an answer").1
}

async fn connect(server: &Server, role: &str) -> Client {
    let port = server.pg_port();
    let config = format!("host=127.0.0.1 port={port} user={role} password=pencil dbname=stoa");
    let (client, connection) = tokio_postgres::connect(&config, NoTls).await.unwrap();
    stoa_env::task::spawn(connection);
    client
}

/// Files where a server has none to make.
fn foreign_files(place: &Place) -> BTreeSet<PathBuf> {
    files_below(&place.path("outside")).into_iter().collect()
}

/// All grants there can be on three columns.
#[test]
fn no_canary_is_in_any_byte_and_no_file_is_made_outside() {
    let place = Place::new();
    prepare(&place);
    std::fs::create_dir(place.path("outside")).unwrap();
    let server = Server::start(&place, &["--access-control"]);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let statements = statements(&place);
    let (boss, ann) =
        runtime.block_on(async { (connect(&server, "boss").await, connect(&server, "ann").await) });
    for granted in 0_usize..8 {
        let has = |column: usize| (granted >> column) & 1 == 1;
        let names: Vec<&str> = (0..3).filter(|column| has(*column)).map(|c| COLUMNS[c]).collect();
        let mut changes = vec![
            "REVOKE ALL ON vault.ledger FROM ann".to_owned(),
            "TRUNCATE TABLE heap".to_owned(),
        ];
        if !names.is_empty() {
            changes.push(format!("GRANT SELECT ({}) ON vault.ledger TO ann", names.join(", ")));
        }
        for sql in changes {
            runtime.block_on(boss.batch_execute(&sql)).unwrap();
        }
        let check = |told: &str, sql: &str| {
            for (column, value) in VALUES.iter().enumerate() {
                assert!(has(column) || !told.contains(value), "{names:?} {sql}: {told}");
            }
        };
        for sql in &statements {
            for _ in 0..2 {
                check(&runtime.block_on(over_postgresql(&ann, sql)), sql);
                check(&over_http(&server, "POST /v1/sql", sql), sql);
            }
        }
        for path in [
            "/v1/tables",
            "/v1/tables/vault/ledger",
            "/v1/tables/vault/ledger/files",
            "/v1/status",
            "/v1/queries",
            "/v1/shapes",
            "/metrics",
        ] {
            let told = over_http(&server, &format!("GET {path}"), "");
            check(&told, path);
            if granted == 0 && path != "/v1/queries" && !path.contains("ledger") {
                assert!(!told.contains("ledger"), "{path}: {told}");
            }
        }
    }
    assert_eq!(foreign_files(&place), BTreeSet::new());
}
