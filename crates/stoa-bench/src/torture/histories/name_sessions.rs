//! Sessions on names under which tables come and go.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use futures::SinkExt;
use stoa_error::{Error, Result};
use tokio::sync::watch;

use super::link::{Link, Ran};
use super::names::{Life, Period, Write};
use super::op::{End, Moment, Span};
use super::round::{Name, Round};
use super::sessions::flight;
use crate::torture::random::Random;

/// Writes to a name between two changes of it, so that there is something to be lost.
const WRITES_PER_CHANGE: u64 = 6;

/// Makes tables of a name and takes them away, until the round is over or an outcome is not known.
pub(crate) async fn change(round: Arc<Round>, place: usize, link: Link, mut random: Random) {
    let name = &round.names[place];
    let mut changes = 0_u64;
    if !make(&round, name, &link).await {
        return;
    }
    while !round.is_over() && !link.is_closed() {
        wait_for(&round, name.writes.subscribe(), WRITES_PER_CHANGE).await;
        let goes_on = match random.below(if name.is_cells { 2 } else { 3 }) {
            0 => drop_it(&round, name, &link).await && make(&round, name, &link).await,
            1 => {
                changes += 1;
                let kept = format!("{}_kept{changes}", name.name);
                rename(&round, name, &link, &kept).await && make(&round, name, &link).await
            }
            _ => truncate(&round, name, &link).await,
        };
        name.changes.send_modify(|count| *count += 1);
        if !goes_on {
            return;
        }
    }
}

/// Waits until a count has grown by `more`, or the round is over.
async fn wait_for(round: &Round, mut count: watch::Receiver<u64>, more: u64) {
    let target = *count.borrow() + more;
    let mut stop = round.stop.subscribe();
    tokio::select! {
        _ = count.wait_for(|count| *count >= target) => {}
        _ = stop.wait_for(|stop| *stop) => {}
        // Whoever counts may wait for us.
        () = stoa_env::timer::sleep(std::time::Duration::from_millis(300)) => {}
    }
}

async fn run(name: &Name, link: &Link, sql: &str) -> Ran<()> {
    match name.is_cells {
        true => link.note_other(link.address.hql(sql)).await,
        false => link.run(sql).await.map(drop),
    }
}

async fn make(round: &Round, name: &Name, link: &Link) -> bool {
    let sql = match name.is_cells {
        true => format!("CREATE TABLE {} (c)", name.name),
        false => format!(
            "CREATE TABLE {} (k BIGINT NOT NULL, v BIGINT) \
             TBLPROPERTIES ('stoa.flush-rows' = '20', 'stoa.flush-age-ms' = '50')",
            name.name
        ),
    };
    let ran = run(name, link, &sql).await;
    round.noted(&ran, &sql);
    if ran.span.end == End::Refused {
        return true;
    }
    let named = Period { from: ran.span.sent, to: Moment::MAX };
    let life = Life { named, emptied: Vec::new(), rows: Vec::new() };
    name.history.lock().lives.push(life);
    name.kept.lock().push(Some(name.name.clone()));
    ran.is_done()
}

/// Notes what a change that was sent does to the newest life; whether to go on.
fn noted(name: &Name, span: &Span, empties: bool, becomes: Option<String>, leaves: bool) -> bool {
    if span.end == End::Refused {
        return true;
    }
    let is_done = span.end == End::Done;
    let to = if is_done { span.ended } else { Moment::MAX };
    let mut history = name.history.lock();
    let Some(life) = history.lives.last_mut() else { return true };
    if empties {
        life.emptied.push(Period { from: span.sent, to });
    }
    if leaves {
        life.named.to = to;
        if is_done && let Some(last) = name.kept.lock().last_mut() {
            *last = becomes;
        }
    }
    is_done
}

async fn drop_it(round: &Round, name: &Name, link: &Link) -> bool {
    let sql = format!("DROP TABLE {}", name.name);
    let ran = run(name, link, &sql).await;
    round.noted(&ran, &sql);
    noted(name, &ran.span, true, None, true)
}

async fn rename(round: &Round, name: &Name, link: &Link, kept: &str) -> bool {
    let sql = match name.is_cells {
        true => format!("RENAME TABLE {} TO {kept}", name.name),
        false => format!("ALTER TABLE {} RENAME TO {kept}", name.name),
    };
    let ran = run(name, link, &sql).await;
    round.noted(&ran, &sql);
    noted(name, &ran.span, false, Some(kept.to_owned()), true)
}

async fn truncate(round: &Round, name: &Name, link: &Link) -> bool {
    let sql = format!("TRUNCATE {}", name.name);
    let ran = run(name, link, &sql).await;
    round.noted(&ran, &sql);
    noted(name, &ran.span, true, None, false)
}

/// Writes rows to a name, each time anew or with a statement that was prepared long ago.
pub(crate) async fn write(round: Arc<Round>, place: usize, link: Link, mut random: Random) {
    let name = &round.names[place];
    let mut prepared = None;
    while !round.is_over() && !link.is_closed() {
        let rows = round.new_rows(2);
        let form = random.below(5);
        let table = &name.name;
        let begun = round.clock.now();
        let ran = if name.is_cells {
            let sql = format!(
                "INSERT INTO {table} VALUES ('{}', 'c:x', '1'), ('{}', 'c:x', '1')",
                rows[0], rows[1]
            );
            link.note_other(link.address.hql(&sql)).await
        } else if form < 2 {
            let statement = match &prepared {
                Some(statement) => Clone::clone(statement),
                None => {
                    let sql = format!("INSERT INTO {table} VALUES ($1, 0), ($2, 0)");
                    let made = link.note(link.client.prepare(&sql)).await;
                    round.noted(&made, "PREPARE");
                    let Some(statement) = made.answer else {
                        wait_for(&round, name.changes.subscribe(), 1).await;
                        continue;
                    };
                    prepared.insert(statement).clone()
                }
            };
            link.note(link.client.execute(&statement, &[&rows[0], &rows[1]])).await.map(drop)
        } else if form == 2 {
            let sql = format!("INSERT INTO {table} VALUES ({}, 0), ({}, 0)", rows[0], rows[1]);
            link.run(&sql).await.map(drop)
        } else if form == 3 {
            match link.for_copy().await {
                Ok(own) => open_copy(&round, name, &own, &rows).await,
                Err(error) => link.note_other(async { Err(error) }).await,
            }
        } else {
            open_ingest(&round, name, &link, &rows).await
        };
        round.noted(&ran, "a write");
        let Ran { span, code, .. } = ran;
        name.history.lock().writes.push(Write { rows, begun, span, code });
        name.writes.send_modify(|count| *count += 1);
    }
}

/// A COPY that is begun, left open while its table may be changed, and ended.
async fn open_copy(round: &Round, name: &Name, link: &Link, rows: &[i64]) -> Ran<()> {
    let sql = format!("COPY {} FROM STDIN", name.name);
    let opened = link.note(link.client.copy_in::<_, bytes::Bytes>(&sql)).await;
    let Ran { span, answer: Some(sink), .. } = opened else { return opened.map(drop) };
    let _ = span;
    futures::pin_mut!(sink);
    let line = |row: i64| bytes::Bytes::from(format!("{row}\t0\n"));
    let first = sink.send(line(rows[0])).await;
    wait_for(round, name.changes.subscribe(), 1).await;
    // What counts begins with the last row.
    link.note(async {
        first?;
        sink.send(line(rows[1])).await?;
        sink.finish().await.map(|_| ())
    })
    .await
}

/// An ingest over Flight that is left open in the same way.
async fn open_ingest(round: &Round, name: &Name, link: &Link, rows: &[i64]) -> Ran<()> {
    let batches = rows.iter().map(|row| batch(*row)).collect::<Result<Vec<_>>>();
    let Ok(batches) = batches else {
        round.is_broken(Error::internal("rows are no batch"));
        return link.note_other(async { Err(Error::internal("rows are no batch")) }).await;
    };
    let sent = Arc::new(parking_lot::Mutex::new(None));
    let (note, clock) = (Arc::clone(&sent), round.clock);
    let (changes, stop) = (name.changes.subscribe(), round.stop.subscribe());
    let target = *changes.borrow() + 1;
    let later = futures::stream::unfold(batches.into_iter().enumerate(), move |mut rest| {
        let (mut changes, mut stop, note) = (changes.clone(), stop.clone(), Arc::clone(&note));
        async move {
            let (place, batch) = rest.next()?;
            if place > 0 {
                tokio::select! {
                    _ = changes.wait_for(|count| *count >= target) => {}
                    _ = stop.wait_for(|stop| *stop) => {}
                    () = stoa_env::timer::sleep(std::time::Duration::from_millis(300)) => {}
                }
                *note.lock() = Some(clock.now());
            }
            Some((Ok(batch), rest))
        }
    });
    let mut ran = link.note_other(flight(link, &name.name, later)).await;
    if let Some(sent) = *sent.lock() {
        ran.span.sent = sent;
    }
    ran
}

fn batch(row: i64) -> Result<RecordBatch> {
    let k: ArrayRef = Arc::new(Int64Array::from(vec![row]));
    let v: ArrayRef = Arc::new(Int64Array::from(vec![0]));
    RecordBatch::try_from_iter_with_nullable([("k", k, false), ("v", v, true)])
        .map_err(|e| Error::internal("rows are no batch").with_source(e))
}
