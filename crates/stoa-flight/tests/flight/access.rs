//! Clients that must log in: how often they may try, and what is told to whom.

use arrow_array::Array;
use arrow_flight::sql::{CommandGetTables, CommandStatementIngest};
use stoa_flight::FlightOptions;
use stoa_query::{Outcome, SessionOptions};
use stoa_testkit::vault::{self, Granted};
use tonic::Code;

use crate::support::*;

async fn guarded() -> Server {
    let server = Server::start_guarded(FlightOptions::default()).await;
    let users = ["CREATE USER ann PASSWORD 'pencil'", "CREATE USER bob PASSWORD 'pencil'"];
    for sql in users.into_iter().chain(vault::SETUP) {
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
    for granted in Granted::all() {
        for sql in granted.statements() {
            run_trusted(&server, &sql).await;
        }
        let mut ann = logged_in(&server, "ann").await;
        for sql in vault::QUERIES {
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
            granted.check_values(sql, &told);
            for (name, has) in granted.columns() {
                let hidden = granted.is_nothing() || sql.contains("information_schema") && !has;
                assert!(!hidden || sql.contains(name) || !told.contains(name), "{sql}: {told}");
            }
        }
        for include_schema in [false, true] {
            let tables = CommandGetTables { include_schema, ..Default::default() };
            let info = ann.get_tables(tables).await.unwrap();
            let told = fetch(&mut ann, info).await.unwrap();
            assert_eq!(lines(&told).len(), usize::from(!granted.is_nothing()), "{granted:?}");
            // The columns are in a binary one.
            let schemas = told.iter().flat_map(|batch| batch.columns().iter().cloned());
            let bytes: Vec<u8> = schemas
                .flat_map(|column| column.to_data().buffers().to_vec())
                .flat_map(|buffer| buffer.as_slice().to_vec())
                .collect();
            let told = String::from_utf8_lossy(&bytes).into_owned();
            for (name, has) in granted.columns() {
                assert_eq!(include_schema && has, told.contains(name), "{name}: {granted:?}");
            }
        }
        let append = CommandStatementIngest {
            schema: Some("vault".to_owned()),
            ..into_table("ledger", APPEND)
        };
        let status = ingest(&mut ann, append, vec![people([1])]).await.unwrap_err();
        is_error(&status, Code::PermissionDenied, &["SQLSTATE: 42501"]);
        assert!(vault::COLUMNS.iter().all(|name| !status.message().contains(name)), "{status}");
    }
}
