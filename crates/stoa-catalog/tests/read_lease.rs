//! Reads that ask nobody, beside programs that move pointers in every way PostgreSQL has: the oracle is what those programs
//! were told.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use sqlx::{Connection, Executor, PgConnection};
use stoa_catalog::{Catalog, TableIdent};
use stoa_env::task::spawn;
use stoa_env::{random, timer};
use stoa_testkit::until;

use self::common::Database;

mod common;

fn ident(name: &str) -> TableIdent {
    TableIdent::new("public", name)
}

async fn with_table(database: &Database) -> Catalog {
    let catalog = database.open().await;
    catalog.create_namespace("public", &BTreeMap::new()).await.unwrap();
    catalog.create_table(&ident("t"), "0").await.unwrap();
    catalog
}

/// Reads until nobody is asked any more.
async fn until_known(catalog: &Catalog) {
    let t = ident("t");
    for _ in 0..5000 {
        let known = catalog.state().reads_known;
        catalog.pointer(&t).await.unwrap();
        if catalog.state().reads_known > known {
            return;
        }
        timer::sleep(Duration::from_millis(2)).await;
    }
    panic!("every read asks: {:?}", catalog.state());
}

/// Statements that move the pointer from one number to the next; each way is another program's.
fn moves(way: u64, from: u64, to: u64) -> Vec<String> {
    let update = |to: u64| {
        format!(
            "UPDATE iceberg_tables SET metadata_location = '{to}'
             WHERE table_name = 't' AND metadata_location = '{from}'"
        )
    };
    let all: &[String] = &match way {
        0 => vec![update(to)],
        1 => vec!["BEGIN".to_owned(), update(to), "COMMIT".to_owned()],
        // Its snapshot may be from before any daemon was noted.
        2 => vec![
            "BEGIN ISOLATION LEVEL REPEATABLE READ".to_owned(),
            "SELECT count(*) FROM iceberg_tables".to_owned(),
            update(to),
            "COMMIT".to_owned(),
        ],
        3 => vec!["BEGIN".to_owned(), update(to + 1_000_000), "ROLLBACK".to_owned(), update(to)],
        4 => vec![
            "BEGIN".to_owned(),
            "SAVEPOINT s".to_owned(),
            update(to + 1_000_000),
            "ROLLBACK TO s".to_owned(),
            update(to),
            "COMMIT".to_owned(),
        ],
        _ => vec![
            "BEGIN".to_owned(),
            "DELETE FROM iceberg_tables WHERE table_name = 't'".to_owned(),
            format!(
                "INSERT INTO iceberg_tables VALUES ('stoa', 'public', 't', '{to}', NULL, 'TABLE')"
            ),
            "COMMIT".to_owned(),
        ],
    };
    all.to_vec()
}

/// What movers were told: the last number that was begun, and the last that was done.
#[derive(Default)]
struct Ledger {
    begun: AtomicU64,
    done: AtomicU64,
    is_over: AtomicBool,
}

/// Reads one number again and again: never less than what was done before, nor more than what was begun by then.
async fn compare(ledger: Arc<Ledger>, read: impl AsyncFn() -> u64) -> u64 {
    let mut reads = 0;
    while !ledger.is_over.load(Ordering::SeqCst) {
        let least = ledger.done.load(Ordering::SeqCst);
        let seen = read().await;
        let most = ledger.begun.load(Ordering::SeqCst);
        assert!((least..=most).contains(&seen), "{seen} is not in {least}..={most}");
        reads += 1;
        timer::sleep(Duration::from_micros(random::u64() % 300)).await;
    }
    reads
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_move_is_seen_by_all_who_read_after_it() {
    const MOVES: u64 = 120;
    let Some(database) = Database::postgres() else { return };
    let catalogs = [with_table(&database).await, database.open().await];
    let ledger = Arc::new(Ledger::default());
    let readers: Vec<_> = catalogs
        .iter()
        .cloned()
        .map(|catalog| {
            let ledger = Arc::clone(&ledger);
            let pointer = async move || -> u64 {
                let pointer = catalog.pointer(&ident("t")).await.unwrap();
                pointer.parse().unwrap()
            };
            spawn(compare(ledger, pointer))
        })
        .collect();
    let third = database.open().await;
    let mut other = PgConnection::connect(database.url()).await.unwrap();
    for number in 0..MOVES {
        // Long enough now and then for reads that ask nobody.
        timer::sleep(Duration::from_millis(random::u64() % 60)).await;
        ledger.begun.store(number + 1, Ordering::SeqCst);
        match number % 7 {
            6 => {
                let (from, to) = (number.to_string(), (number + 1).to_string());
                third.swap(&ident("t"), &from, &to).await.unwrap();
            }
            way => {
                for statement in moves(way, number, number + 1) {
                    other.execute(statement.as_str()).await.unwrap();
                    if number % 3 == 0 {
                        timer::sleep(Duration::from_millis(random::u64() % 50)).await;
                    }
                }
            }
        }
        ledger.done.store(number + 1, Ordering::SeqCst);
    }
    for catalog in &catalogs {
        until_known(catalog).await;
    }
    ledger.is_over.store(true, Ordering::SeqCst);
    for reader in readers {
        assert!(reader.await.unwrap() > MOVES);
    }
    for catalog in catalogs {
        let state = catalog.state();
        assert!(state.reads_known > MOVES && state.reads_asked > 0, "{state:?}");
        assert_eq!(catalog.pointer(&ident("t")).await.unwrap(), MOVES.to_string());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_change_of_the_policy_is_seen_by_all_who_read_after_it() {
    let Some(database) = Database::postgres() else { return };
    let (first, second) = (with_table(&database).await, database.open().await);
    // None was ever counted: 0 is known, too, and the first change is an INSERT.
    for number in 0..30_u64 {
        timer::sleep(Duration::from_millis(random::u64() % 40)).await;
        let known = second.state().reads_known;
        let before = second.policy_version().await.unwrap();
        first.create_role(&stoa_access::Role::new(format!("r{number}"))).await.unwrap();
        assert!(second.policy_version().await.unwrap() > before, "the {number}th change");
        for _ in 0..1000 {
            second.policy_version().await.unwrap();
            if second.state().reads_known > known {
                break;
            }
            timer::sleep(Duration::from_millis(2)).await;
        }
    }
    assert!(second.state().reads_known > 0, "{:?}", second.state());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn reads_of_what_nobody_moves_ask_nobody() {
    let Some(database) = Database::postgres() else { return };
    let catalog = with_table(&database).await;
    until_known(&catalog).await;
    // A question would wait for this lock; the first that finds no lease to read under does.
    let mut other = PgConnection::connect(database.url()).await.unwrap();
    other.execute("BEGIN; LOCK TABLE iceberg_tables IN ACCESS EXCLUSIVE MODE").await.unwrap();
    let asked = catalog.state().reads_asked;
    let reading = {
        let catalog = catalog.clone();
        spawn(async move {
            for _ in 0..100_000 {
                catalog.pointer(&ident("t")).await.unwrap();
            }
        })
    };
    let is_known = || catalog.state().reads_known > 2000 || catalog.state().reads_asked > asked;
    until("reads are answered", is_known).await;
    other.execute("ROLLBACK").await.unwrap();
    reading.await.unwrap();
    let state = catalog.state();
    assert!(state.reads_known > 50_000, "{state:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_move_that_was_under_way_before_is_waited_for() {
    let Some(database) = Database::postgres() else { return };
    let first = with_table(&database).await;
    let mut other = PgConnection::connect(database.url()).await.unwrap();
    let update = "UPDATE iceberg_tables SET metadata_location = '1' WHERE table_name = 't'";
    for wait in [0, 5, 20, 60, 200] {
        database.run("UPDATE iceberg_tables SET metadata_location = '0'").await;
        other.execute("BEGIN").await.unwrap();
        other.execute(update).await.unwrap();
        // It has announced its move, waited for nobody, and does not commit.
        let second = database.open().await;
        let end = timer::now() + Duration::from_millis(wait);
        while timer::now() < end {
            assert_eq!(second.pointer(&ident("t")).await.unwrap(), "0");
            assert_eq!(first.pointer(&ident("t")).await.unwrap(), "0");
            timer::sleep(Duration::from_millis(1)).await;
        }
        assert_eq!(second.state().reads_known, 0, "{:?}", second.state());
        other.execute("COMMIT").await.unwrap();
        for catalog in [&first, &second] {
            assert_eq!(catalog.pointer(&ident("t")).await.unwrap(), "1");
        }
        until_known(&second).await;
        assert_eq!(second.pointer(&ident("t")).await.unwrap(), "1");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nobody_waits_for_readers_that_there_are_not() {
    let Some(database) = Database::postgres() else { return };
    let catalog = with_table(&database).await;
    let asked = "SELECT count(*) FROM stoa_read_leases";
    let mut other = PgConnection::connect(database.url()).await.unwrap();
    let noted: i64 = sqlx::query_scalar(asked).fetch_one(&mut other).await.unwrap();
    assert_eq!(noted, 0, "nobody has read anything");
    until_known(&catalog).await;
    let noted: i64 = sqlx::query_scalar(asked).fetch_one(&mut other).await.unwrap();
    assert_eq!(noted, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn without_announcements_every_read_asks() {
    let Some(database) = Database::postgres() else { return };
    let first = with_table(&database).await;
    until_known(&first).await;
    database
        .run("DROP TABLE stoa_read_leases; DROP SEQUENCE stoa_moves; DROP FUNCTION stoa_announce_move_1 CASCADE")
        .await;
    // An account that may not make them: the owner of the tables is another one.
    let name = format!("plain_{}", random::u64());
    let grant = "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO";
    database.run(&format!("CREATE ROLE {name} LOGIN; {grant} {name}")).await;
    let url = database.url().replace("//stoa@", &format!("//{name}@"));
    let second = Catalog::connect(&url, "stoa").await.unwrap();
    for (from, to) in [("0", "1"), ("1", "2"), ("2", "3")] {
        first.swap(&ident("t"), from, to).await.unwrap();
        for catalog in [&first, &second] {
            assert_eq!(catalog.pointer(&ident("t")).await.unwrap(), to);
        }
        timer::sleep(Duration::from_millis(30)).await;
    }
    assert_eq!(second.state().reads_known, 0);
    // Who may makes them again; the other one may not look at them.
    let third = database.open().await;
    until_known(&third).await;
    for (from, to) in [("3", "4"), ("4", "5")] {
        second.swap(&ident("t"), from, to).await.unwrap();
        for catalog in [&first, &second, &third] {
            assert_eq!(catalog.pointer(&ident("t")).await.unwrap(), to);
        }
        until_known(&third).await;
    }
    assert_eq!(second.state().reads_known, 0);
}
