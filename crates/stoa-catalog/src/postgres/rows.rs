//! Statements and rows as PostgreSQL's protocol has them.

use std::io;
use std::time::Duration;

use futures::StreamExt;
use sqlx::postgres::{PgArguments, PgRow};
use sqlx::query::Query;
use sqlx::{Either, Executor, PgConnection, Postgres, Row as _, TypeInfo, ValueRef};
use stoa_env::timer;

use crate::database::{Row, Statement, Value};

/// Runs statements without values, all in one message.
pub(super) async fn run(connection: &mut PgConnection, text: &str) -> sqlx::Result<()> {
    connection.execute(text).await.map(|_| ())
}

pub(super) async fn execute(
    connection: &mut PgConnection,
    statement: Statement,
) -> sqlx::Result<u64> {
    Ok(connection.execute(prepare(statement)).await?.rows_affected())
}

pub(super) async fn fetch(
    connection: &mut PgConnection,
    statement: Statement,
) -> sqlx::Result<Vec<Row>> {
    let rows = connection.fetch_all(prepare(statement)).await?;
    rows.iter().map(row_of).collect()
}

/// Runs statements without values, all in one message; gives the rows of each.
pub(super) async fn run_each(
    connection: &mut PgConnection,
    text: &str,
) -> sqlx::Result<Vec<Vec<Row>>> {
    let mut answers = connection.fetch_many(text);
    let (mut all, mut rows) = (Vec::new(), Vec::new());
    while let Some(answer) = answers.next().await {
        match answer? {
            Either::Right(row) => rows.push(row_of(&row)?),
            Either::Left(_) => all.push(std::mem::take(&mut rows)),
        }
    }
    Ok(all)
}

/// What `work` gives; an error of the connection where it takes longer.
pub(super) async fn within<T>(
    limit: Duration,
    work: impl Future<Output = sqlx::Result<T>>,
) -> sqlx::Result<T> {
    timer::timeout(limit, work).await.unwrap_or_else(|_| {
        let text = format!("PostgreSQL did not answer within {} s", limit.as_secs());
        Err(sqlx::Error::Io(io::Error::new(io::ErrorKind::TimedOut, text)))
    })
}

fn prepare(statement: Statement) -> Query<'static, Postgres, PgArguments> {
    statement.values.into_iter().fold(sqlx::query(statement.sql), |query, value| match value {
        Value::Text(text) => query.bind(text),
        Value::Integer(number) => query.bind(number),
        Value::Bytes(bytes) => query.bind(bytes),
    })
}

fn row_of(row: &PgRow) -> sqlx::Result<Row> {
    (0..row.len()).map(|index| value_of(row, index)).collect::<sqlx::Result<_>>().map(Row)
}

fn value_of(row: &PgRow, index: usize) -> sqlx::Result<Value> {
    let raw = row.try_get_raw(index)?;
    let info = raw.type_info();
    Ok(match info.name() {
        "BOOL" => Value::Integer(row.try_get::<Option<bool>, _>(index)?.map(i64::from)),
        "INT2" => Value::Integer(row.try_get::<Option<i16>, _>(index)?.map(i64::from)),
        "INT4" => Value::Integer(row.try_get::<Option<i32>, _>(index)?.map(i64::from)),
        "INT8" => Value::Integer(row.try_get(index)?),
        "BYTEA" => Value::Bytes(row.try_get(index)?),
        _ => Value::Text(row.try_get(index)?),
    })
}
