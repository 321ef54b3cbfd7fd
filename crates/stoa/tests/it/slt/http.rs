//! HTTP: each statement is a request of its own, answered as JSON.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;
use stoa_testkit::slt::{Answer, Cell, Connection, Failure, Protocol};

use super::run_on_server;
use crate::harness::request;

struct Http {
    port: u16,
}

#[async_trait]
impl Protocol for Http {
    fn name(&self) -> &'static str {
        "http"
    }

    async fn connect(&self) -> Result<Box<dyn Connection>, Failure> {
        Ok(Box::new(Requests { port: self.port, settings: Vec::new() }))
    }
}

/// Requests of one user.
struct Requests {
    port: u16,
    /// Statements that set something: a session ends with its request, so they are sent before each.
    settings: Vec<String>,
}

#[async_trait]
impl Connection for Requests {
    async fn run(&mut self, sql: &str) -> Result<Answer, Failure> {
        let before = self.settings.iter().flat_map(|setting| [setting.as_str(), ";\n"]);
        let body = before.chain([sql]).collect::<String>();
        let text = format!(
            "POST /v1/sql?format=json HTTP/1.0\r\nHost: localhost\r\nConnection: close\r\n\
             Content-Type: text/plain\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let (status, body) =
            request(self.port, &text).ok_or_else(|| Failure::broken("the server is gone"))?;
        let document: Value = serde_json::from_str(&body)
            .map_err(|error| Failure::broken(format!("status {status}, {error}: {body}")))?;
        if let Some(error) = document.get("error") {
            return Err(failure(error));
        }
        if sets_something(sql) {
            self.settings.push(sql.to_owned());
        }
        Ok(answer(&document))
    }
}

fn sets_something(sql: &str) -> bool {
    let first = sql.split_whitespace().next().unwrap_or_default();
    ["SET", "RESET", "USE"].iter().any(|word| first.eq_ignore_ascii_case(word))
}

fn failure(error: &Value) -> Failure {
    let part = |name: &str| error[name].as_str().unwrap_or_default();
    let message = [part("message"), part("detail"), part("hint")].join("\n");
    Failure { sqlstate: part("code").to_owned(), message }
}

fn answer(document: &Value) -> Answer {
    let columns = document["columns"].as_array().unwrap();
    if columns.is_empty() && document.get("command").is_some() {
        return Answer::Done(document["rows_affected"].as_u64().unwrap_or_default());
    }
    let kinds: Vec<Cell> =
        columns.iter().map(|column| Cell::named(column["type"].as_str().unwrap())).collect();
    let row = |row: &Value| {
        let values = row.as_array().unwrap();
        assert_eq!(values.len(), kinds.len(), "{row}");
        values.iter().zip(&kinds).map(|(value, kind)| cell(value, kind)).collect()
    };
    Answer::Rows(document["rows"].as_array().unwrap().iter().map(row).collect())
}

fn cell(value: &Value, kind: &Cell) -> String {
    match shown(value, kind) {
        text if text.is_empty() => "(empty)".to_owned(),
        text => text,
    }
}

/// A value as Arrow shows it: lists in brackets, structs and maps in braces.
fn shown(value: &Value, kind: &Cell) -> String {
    match value {
        Value::Null => "NULL".to_owned(),
        Value::String(text) => kind.shown(text),
        Value::Array(items) => {
            let element = match kind {
                Cell::Array(element) => element,
                _ => kind,
            };
            let items: Vec<String> = items.iter().map(|item| shown(item, element)).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(members) => {
            let member =
                |(name, value): (&String, &Value)| format!("{name}: {}", shown(value, &Cell::Text));
            format!("{{{}}}", members.iter().map(member).collect::<Vec<_>>().join(", "))
        }
        other => kind.shown(&other.to_string()),
    }
}

async fn run_file(name: &str) {
    run_on_server(name, |server| Arc::new(Http { port: server.http_port() })).await;
}

stoa_testkit::slt_tests!(run_file);
