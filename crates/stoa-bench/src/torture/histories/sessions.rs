//! Sessions on tables that stay.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use arrow_flight::sql::{
    CommandStatementIngest, TableDefinitionOptions, TableExistsOption, TableNotExistOption,
};
use futures::SinkExt;
use stoa_error::{Error, Result};

use super::link::{Link, Ran, changed, integers};
use super::op::{End, wrong};
use super::round::{ACCOUNTS, AT_FIRST, COUNTERS, Round};
use super::set::SetRead;
use crate::torture::random::Random;

/// Kinds of sessions on tables that stay.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    Rows,
    Counters,
    Keeper,
    Family,
    Banker,
}

/// Works until the round is over or the server is gone.
pub(crate) async fn work(kind: Kind, round: Arc<Round>, link: Link, mut random: Random) {
    let mut own = Vec::new();
    while !round.is_over() && !link.is_closed() {
        match kind {
            Kind::Rows => rows(&round, &link, &mut random, &mut own).await,
            Kind::Counters => counters(&round, &link, &mut random).await,
            Kind::Keeper => keep(&round, &link, &mut random).await,
            Kind::Family => family(&round, &link, &mut random).await,
            Kind::Banker => bank(&round, &link, &mut random).await,
        }
    }
}

/// A condition that all rows meet, or none. With one, what is read is a report on one part of a small table, which in
/// a cluster another daemon may answer.
fn all_rows(random: &mut Random) -> &'static str {
    match random.below(2) {
        0 => "",
        _ => " WHERE k >= -1",
    }
}

async fn rows(round: &Round, link: &Link, random: &mut Random, own: &mut Vec<i64>) {
    let table = round.table("s");
    match random.below(8) {
        0 => {
            let ran = link.run(&format!("SELECT k FROM {table}{}", all_rows(random))).await;
            round.noted(&ran, "SELECT");
            if let Some(rows) = &ran.answer {
                let rows = integers(rows, 0);
                round.rows.lock().reads.push(SetRead { span: ran.span, rows, sees_all: false });
            }
        }
        1 if !own.is_empty() => {
            let row = own.swap_remove(random.below(own.len() as u64) as usize);
            let ran = match random.below(2) {
                0 => {
                    link.run(&format!("DELETE FROM {table} WHERE k = {row}")).await.map(changed_by)
                }
                _ => {
                    let sql = format!("DELETE FROM {table} WHERE k = $1");
                    link.note(link.client.execute(&sql, &[&row])).await
                }
            };
            round.noted(&ran, "DELETE");
            if ran.answer.is_some_and(|rows| rows != 1) {
                round.is_broken(wrong(format!("a DELETE of row {row} changed {:?}", ran.answer)));
            }
            round.rows.lock().deletes.push((row, ran.span));
        }
        form => {
            let rows = round.new_rows(1 + random.below(3) as i64);
            let ran = insert(link, &table, &rows, form).await;
            round.noted(&ran, "INSERT");
            if ran.is_done() {
                own.extend(&rows);
            }
            let mut history = round.rows.lock();
            history.inserts.extend(rows.into_iter().map(|row| (row, ran.span)));
        }
    }
}

fn changed_by(messages: Vec<tokio_postgres::SimpleQueryMessage>) -> u64 {
    changed(&messages)
}

/// Adds rows by one of the ways in.
async fn insert(link: &Link, table: &str, rows: &[i64], form: u64) -> Ran<()> {
    let values = || rows.iter().map(|row| format!("({row}, 0)")).collect::<Vec<_>>().join(", ");
    match form {
        2 | 3 => link.run(&format!("INSERT INTO {table} VALUES {}", values())).await.map(drop),
        4 => {
            let marks =
                (1..=rows.len()).map(|n| format!("(${n}, 0)")).collect::<Vec<_>>().join(", ");
            let sql = format!("INSERT INTO {table} VALUES {marks}");
            let parameters: Vec<_> =
                rows.iter().map(|row| row as &(dyn tokio_postgres::types::ToSql + Sync)).collect();
            link.note(link.client.execute(&sql, &parameters)).await.map(drop)
        }
        5 => {
            let lines = rows.iter().map(|row| format!("{row}\t0\n")).collect::<String>();
            match link.for_copy().await {
                Ok(own) => own.note(copy(&own, table, lines)).await,
                Err(error) => link.note_other(async { Err(error) }).await,
            }
        }
        6 => {
            let body = rows.iter().map(|row| format!("{{\"k\":{row},\"v\":0}}\n")).collect();
            link.note_other(post(link, table, body)).await
        }
        _ => link.note_other(ingest(link, table, rows)).await,
    }
}

async fn copy(link: &Link, table: &str, lines: String) -> Result<(), tokio_postgres::Error> {
    let sink = link.client.copy_in(&format!("COPY {table} FROM STDIN")).await?;
    futures::pin_mut!(sink);
    sink.send(bytes::Bytes::from(lines)).await?;
    sink.finish().await.map(drop)
}

async fn post(link: &Link, table: &str, body: String) -> Result<()> {
    let url = format!("{}/v1/tables/public/{table}/rows", link.address.http_url);
    let request = reqwest::Client::new().post(url).header("Content-Type", "application/x-ndjson");
    crate::write::acknowledged(request.body(body)).await
}

async fn ingest(link: &Link, table: &str, rows: &[i64]) -> Result<()> {
    let k: ArrayRef = Arc::new(Int64Array::from(rows.to_vec()));
    let v: ArrayRef = Arc::new(Int64Array::from(vec![0; rows.len()]));
    let batch = RecordBatch::try_from_iter_with_nullable([("k", k, false), ("v", v, true)])
        .map_err(|e| Error::internal("rows are no batch").with_source(e))?;
    flight(link, table, futures::stream::iter([Ok(batch)])).await
}

/// Sends batches as one ingest.
pub(crate) async fn flight(
    link: &Link,
    table: &str,
    batches: impl futures::Stream<Item = Result<RecordBatch, arrow_flight::error::FlightError>>
    + Send
    + 'static,
) -> Result<()> {
    let command = CommandStatementIngest {
        table: table.to_owned(),
        table_definition_options: Some(TableDefinitionOptions {
            if_not_exist: TableNotExistOption::Fail as i32,
            if_exists: TableExistsOption::Append as i32,
        }),
        ..Default::default()
    };
    let mut client = link.address.flight().await?;
    let ended = client.execute_ingest(command, batches).await;
    ended.map(drop).map_err(|e| Error::unavailable("the ingest failed").with_detail(e.to_string()))
}

async fn counters(round: &Round, link: &Link, random: &mut Random) {
    let table = round.table("c");
    let key = random.below(COUNTERS as u64) as i64;
    let form = match random.below(7) {
        form @ (3 | 5 | 6) if round.is_plain => form / 3 * 2,
        form => form,
    };
    if form < 2 {
        let ran = link.run(&format!("SELECT k, v FROM {table}{}", all_rows(random))).await;
        round.noted(&ran, "SELECT");
        if let Some(rows) = &ran.answer {
            let pairs = integers(rows, 0).into_iter().zip(integers(rows, 1)).collect();
            round.counters.lock().reads.push((ran.span, pairs));
        }
        return;
    }
    let sql = match form {
        2 => format!("UPDATE {table} SET v = v + 1 WHERE k = {key}"),
        3 => format!(
            "MERGE INTO {table} AS t USING (SELECT k, v + 1 AS w FROM {table} WHERE k = {key}) AS s \
             ON t.k = s.k WHEN MATCHED THEN UPDATE SET v = s.w"
        ),
        4 => format!("UPDATE {table} SET v = v + $2 WHERE k = $1"),
        5 => format!(
            "MERGE INTO {table} AS t USING (SELECT a.k, max(b.v) + 1 AS w FROM {table} AS a \
             JOIN {table} AS b ON a.k = b.k WHERE a.k = {key} GROUP BY a.k) AS s \
             ON t.k = s.k WHEN MATCHED THEN UPDATE SET v = s.w"
        ),
        _ => format!(
            "INSERT OVERWRITE {table} SELECT k, CASE WHEN k = {key} THEN v + 1 ELSE v END FROM {table}"
        ),
    };
    let ran = match form {
        4 => link.note(link.client.execute(&sql, &[&key, &1_i64])).await,
        _ => link.run(&sql).await.map(changed_by),
    };
    round.noted(&ran, &sql);
    let expected = if form == 6 { COUNTERS as u64 } else { 1 };
    if ran.answer.is_some_and(|rows| rows != expected) {
        round.is_broken(wrong(format!("{sql} changed {:?} rows", ran.answer)));
    }
    round.counters.lock().increments.push((key, ran.span));
}

/// Statements that change files, but no row.
async fn keep(round: &Round, link: &Link, random: &mut Random) {
    let (s, p, k) = (round.table("s"), round.table("p"), round.table("k"));
    let form = if round.is_plain { 6 + random.below(2) } else { random.below(8) };
    let sql = match form {
        0 => format!("DELETE FROM {s} WHERE k NOT IN (SELECT k FROM {s})"),
        1 => format!("INSERT OVERWRITE {s} SELECT k, v FROM {s}"),
        2 => format!(
            "MERGE INTO {s} AS t USING (SELECT k FROM {s}) AS x ON t.k = x.k \
             WHEN NOT MATCHED BY SOURCE THEN DELETE"
        ),
        3 => format!(
            "MERGE INTO {s} AS t USING (SELECT a.k FROM {s} AS a JOIN {s} AS b ON a.k = b.k) AS x \
             ON t.k = x.k WHEN MATCHED THEN UPDATE SET v = 1"
        ),
        // Parents are written at the first server only: the others do not see those in its log.
        4 | 5 if link.server == 0 => format!("DELETE FROM {k} WHERE k NOT IN (SELECT k FROM {p})"),
        6 => format!("COMPACT TABLE {s} FULL"),
        _ => format!("FLUSH TABLE {s}"),
    };
    let ran = link.run(&sql).await;
    round.noted(&ran, &sql);
    let deleted = ran.answer.as_ref().map_or(0, |messages| changed(messages));
    if matches!(form, 0 | 2 | 4 | 5) && sql.contains("DELETE") && deleted > 0 {
        round.is_broken(wrong(format!("{sql} deleted {deleted} rows, and can find none")));
    }
}

/// Each child comes after its parent was acknowledged, or with it, in one transaction.
async fn family(round: &Round, link: &Link, random: &mut Random) {
    let (p, k) = (round.table("p"), round.table("k"));
    let row = match random.below(4) {
        0 if !round.is_plain => return check_family(round, link).await,
        1 => return twins(round, link).await,
        _ => round.new_rows(1)[0],
    };
    for table in [p, k] {
        let ran = link.run(&format!("INSERT INTO {table} VALUES ({row}, 0)")).await;
        round.noted(&ran, "INSERT");
        if ran.span.end != End::Done {
            return;
        }
    }
}

/// A parent and a child, both or none.
async fn twins(round: &Round, link: &Link) {
    let (p, k, row) = (round.table("p"), round.table("k"), round.new_rows(1)[0]);
    let sql = format!(
        "BEGIN; INSERT INTO {k} VALUES ({row}, 1); INSERT INTO {p} VALUES ({row}, 1); COMMIT"
    );
    let ran = link.run(&sql).await;
    round.noted(&ran, "a transaction");
    round.twins.lock().push((row, ran.span));
    if !ran.is_done() {
        let _ = link.client.simple_query("ROLLBACK").await;
    }
}

/// No child is without its parent; of twins none is alone.
pub(crate) async fn check_family(round: &Round, link: &Link) {
    let (p, k) = (round.table("p"), round.table("k"));
    let sql = format!(
        "SELECT (SELECT count(*) FROM {k} WHERE k NOT IN (SELECT k FROM {p})), \
         (SELECT count(*) FROM {p} WHERE v = 1 AND k NOT IN (SELECT k FROM {k}))"
    );
    let ran = link.run(&sql).await;
    round.noted(&ran, &sql);
    let Some(rows) = &ran.answer else { return };
    let alone = (integers(rows, 0), integers(rows, 1));
    if alone != (vec![0], vec![0]) {
        round.is_broken(wrong(format!("{sql} found {alone:?}")));
    }
}

async fn bank(round: &Round, link: &Link, random: &mut Random) {
    let table = round.table("b");
    let (from, to) = (random.below(ACCOUNTS as u64) as i64, random.below(ACCOUNTS as u64) as i64);
    let amount = 1 + random.below(50);
    let moved = format!("CASE WHEN k = {from} THEN -{amount} ELSE {amount} END");
    let sql = match random.below(4) {
        _ if from == to => String::new(),
        0 => format!("UPDATE {table} SET v = v + {moved} WHERE k IN ({from}, {to})"),
        1 if !round.is_plain => format!(
            "MERGE INTO {table} AS t USING (SELECT k, {moved} AS d FROM {table} \
             WHERE k IN ({from}, {to})) AS s ON t.k = s.k WHEN MATCHED THEN UPDATE SET v = t.v + s.d"
        ),
        _ => String::new(),
    };
    if !sql.is_empty() {
        let ran = link.run(&sql).await;
        round.noted(&ran, &sql);
        return;
    }
    check_bank(round, link).await;
}

/// No money comes or goes.
pub(crate) async fn check_bank(round: &Round, link: &Link) {
    let sql = format!("SELECT count(*), sum(v)::bigint FROM {}", round.table("b"));
    let ran = link.run(&sql).await;
    round.noted(&ran, &sql);
    let Some(rows) = &ran.answer else { return };
    let found = (integers(rows, 0), integers(rows, 1));
    if found != (vec![ACCOUNTS], vec![ACCOUNTS * AT_FIRST]) {
        round.is_broken(wrong(format!("{sql} found {found:?}")));
    }
}
