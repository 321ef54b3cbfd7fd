//! Arrow Flight SQL: statements with rows are queries with a ticket, all others are updates.

use std::sync::Arc;

use arrow_flight::error::FlightError;
use arrow_flight::sql::client::FlightSqlServiceClient;
use async_trait::async_trait;
use futures::TryStreamExt;
use stoa_testkit::slt::{Answer, Connection, Failure, Protocol, cells};
use tonic::transport::{Channel, Endpoint};

use super::run_on_server;

/// First words of statements that give rows.
const WITH_ROWS: [&str; 8] =
    ["SELECT", "WITH", "VALUES", "SHOW", "DESCRIBE", "DESC", "EXPLAIN", "EXECUTE"];

struct Flight {
    url: String,
}

#[async_trait]
impl Protocol for Flight {
    fn name(&self) -> &'static str {
        "flight"
    }

    async fn connect(&self) -> Result<Box<dyn Connection>, Failure> {
        let endpoint = Endpoint::from_shared(self.url.clone()).map_err(Failure::broken)?;
        let channel = endpoint.connect().await.map_err(Failure::broken)?;
        Ok(Box::new(Client(FlightSqlServiceClient::new(channel))))
    }
}

struct Client(FlightSqlServiceClient<Channel>);

#[async_trait]
impl Connection for Client {
    async fn run(&mut self, sql: &str) -> Result<Answer, Failure> {
        let has_rows = gives_rows(sql);
        let answer = if has_rows { self.query(sql).await } else { self.update(sql).await };
        answer.map_err(failure)
    }
}

impl Client {
    async fn query(&mut self, sql: &str) -> Result<Answer, FlightError> {
        let info = self.0.execute(sql.to_owned(), None).await?;
        let mut rows = Vec::new();
        for ticket in info.endpoint.into_iter().filter_map(|endpoint| endpoint.ticket) {
            let mut batches = self.0.do_get(ticket).await?;
            while let Some(batch) = batches.try_next().await? {
                rows.extend(cells(&batch));
            }
        }
        Ok(Answer::Rows(rows))
    }

    async fn update(&mut self, sql: &str) -> Result<Answer, FlightError> {
        let changed = self.0.execute_update(sql.to_owned(), None).await?;
        Ok(Answer::Done(u64::try_from(changed).unwrap_or_default()))
    }
}

fn gives_rows(sql: &str) -> bool {
    let text = sql.trim_start_matches(|c: char| c == '(' || c.is_whitespace());
    let word: String = text.chars().take_while(char::is_ascii_alphabetic).collect();
    text.contains(" RETURNING ") || WITH_ROWS.iter().any(|first| word.eq_ignore_ascii_case(first))
}

/// The SQLSTATE is on a line of its own at the end of the message.
fn failure(error: FlightError) -> Failure {
    let message = match error {
        FlightError::Tonic(status) => status.message().to_owned(),
        other => other.to_string(),
    };
    let sqlstate = message.rsplit_once("SQLSTATE: ").map_or("", |(_, code)| code.trim());
    Failure { sqlstate: sqlstate.to_owned(), message }
}

async fn run_file(name: &str) {
    run_on_server(name, |server| {
        let port = server.listening["flight_port"].as_u64().unwrap();
        Arc::new(Flight { url: format!("http://127.0.0.1:{port}") })
    })
    .await;
}

stoa_testkit::slt_tests!(run_file);
