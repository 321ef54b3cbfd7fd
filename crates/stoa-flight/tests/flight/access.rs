//! Clients that must log in: how often they may try, and what is told to whom.

use arrow_array::Array;
use arrow_flight::sql::{CommandGetTables, CommandStatementIngest};
use stoa_flight::FlightOptions;
use stoa_query::{Outcome, SessionOptions};
use tonic::Code;

use crate::support::*;

const COLUMNS: [&str; 3] = ["open_a", "open_b", "hidden_c"];
const VALUES: [&str; 3] = ["canary_a", "canary_b", "canary_c"];

async fn guarded() -> Server {
    let server = Server::start_guarded(FlightOptions::default()).await;
    for sql in [
        "CREATE USER ann PASSWORD 'pencil'",
        "CREATE USER bob PASSWORD 'pencil'",
        "CREATE SCHEMA vault",
        "CREATE TABLE vault.ledger (open_a text, open_b text, hidden_c text)",
        "INSERT INTO vault.ledger VALUES ('canary_a', 'canary_b', 'canary_c')",
    ] {
        run_trusted(&server, sql).await;
    }
    server
}

/// Runs a statement as somebody who may do everything.
async fn run_trusted(server: &Server, sql: &str) {
    let trusted = SessionOptions { is_trusted: true, ..SessionOptions::default() };
    if let Outcome::Rows(rows) = server.engine.session(trusted).sql(sql).await.unwrap() {
        rows.collect().await.unwrap();
    }
}

async fn logged_in(server: &Server, role: &str) -> Client {
    let mut client = server.client().await;
    let token = client.handshake(role, "pencil").await.unwrap();
    client.set_token(String::from_utf8(token.to_vec()).unwrap());
    client
}

#[tokio::test]
async fn passwords_are_not_guessed_at_will() {
    let server = guarded().await;
    let mut refused = None;
    // Each try that is looked at after the tenth makes a pause that is twice as long.
    for number in 0..40 {
        let mut client = server.client().await;
        let status = error_of(client.handshake("ann", &format!("{number}")).await);
        if status.contains("53400") {
            assert!(number > 10, "{number}: {status}");
            refused = Some(status);
            break;
        }
        assert!(status.contains("28P01"), "{number}: {status}");
    }
    assert!(refused.is_some(), "no try is refused");
    logged_in(&server, "bob").await;
}

/// What an error of a handshake says.
fn error_of<T, E: std::fmt::Debug>(result: Result<T, E>) -> String {
    match result {
        Ok(_) => panic!("a wrong password was taken"),
        Err(error) => format!("{error:?}"),
    }
}

/// All grants there can be on three columns, on all paths: neither values nor names of the others.
#[tokio::test]
async fn no_canary_is_in_any_answer() {
    let server = guarded().await;
    let statements = [
        "SELECT * FROM vault.ledger",
        "SELECT open_a FROM vault.ledger",
        "SELECT open_b, open_a FROM vault.ledger ORDER BY open_b",
        "SELECT max(hidden_c) FROM vault.ledger",
        "SELECT open_a FROM vault.ledger WHERE hidden_c IS NOT NULL",
        "EXPLAIN ANALYZE SELECT open_b FROM vault.ledger",
        "SELECT * FROM information_schema.columns",
    ];
    for granted in 0_usize..8 {
        let has = |column: usize| (granted >> column) & 1 == 1;
        run_trusted(&server, "REVOKE ALL ON vault.ledger FROM ann").await;
        let names: Vec<&str> = (0..3).filter(|column| has(*column)).map(|c| COLUMNS[c]).collect();
        if !names.is_empty() {
            let grant = format!("GRANT SELECT ({}) ON vault.ledger TO ann", names.join(", "));
            run_trusted(&server, &grant).await;
        }
        let mut ann = logged_in(&server, "ann").await;
        for sql in statements {
            let mut told = match query(&mut ann, sql).await {
                Ok(batches) => format!("{} {batches:?}", lines(&batches).join("\n")),
                Err(status) => format!("{status:?}"),
            };
            // A statement that is only prepared tells of columns, too.
            told.push_str(&match ann.prepare(sql.to_owned(), None).await {
                Ok(mut prepared) => match prepared.execute().await {
                    Ok(info) => format!("{:?}", fetch(&mut ann, info).await),
                    Err(error) => format!("{error:?}"),
                },
                Err(error) => format!("{error:?}"),
            });
            for (column, value) in VALUES.iter().enumerate() {
                assert!(has(column) || !told.contains(value), "{names:?} {sql}: {told}");
            }
            for (column, name) in COLUMNS.iter().enumerate() {
                let hidden = granted == 0 || sql.contains("information_schema") && !has(column);
                assert!(!hidden || sql.contains(name) || !told.contains(name), "{sql}: {told}");
            }
        }
        for include_schema in [false, true] {
            let tables = CommandGetTables { include_schema, ..Default::default() };
            let info = ann.get_tables(tables).await.unwrap();
            let told = fetch(&mut ann, info).await.unwrap();
            assert_eq!(lines(&told).len(), usize::from(granted != 0), "{names:?}");
            // The columns are in a binary one.
            let schemas = told.iter().flat_map(|batch| batch.columns().iter().cloned());
            let bytes: Vec<u8> = schemas
                .flat_map(|column| column.to_data().buffers().to_vec())
                .flat_map(|buffer| buffer.as_slice().to_vec())
                .collect();
            let told = String::from_utf8_lossy(&bytes).into_owned();
            for (column, name) in COLUMNS.iter().enumerate() {
                assert_eq!(include_schema && has(column), told.contains(name), "{name}: {names:?}");
            }
        }
        let append = CommandStatementIngest {
            schema: Some("vault".to_owned()),
            ..into_table("ledger", APPEND)
        };
        let status = ingest(&mut ann, append, vec![people([1])]).await.unwrap_err();
        is_error(&status, Code::PermissionDenied, &["SQLSTATE: 42501"]);
        assert!(COLUMNS.iter().all(|name| !status.message().contains(name)), "{status}");
    }
}
