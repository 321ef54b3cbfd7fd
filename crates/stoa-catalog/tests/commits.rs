//! Commits to PostgreSQL whose connection is cut, or whose server is killed: what is said of them is so.
#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use sqlx::{Connection, Executor, PgConnection, Row};
use stoa_access::Role;
use stoa_catalog::{Catalog, TableIdent};
use stoa_env::task::spawn;
use stoa_testkit::{PostgresServer, until};

use self::common::Database;
use self::common::proxy::{Cut, Proxy};

mod common;

fn ident(name: &str) -> TableIdent {
    TableIdent::new("public", name)
}

/// A catalog by way of a proxy, one that goes straight to the server, and the proxy.
async fn with_proxy() -> Option<(Catalog, Catalog, Proxy)> {
    let database = Database::postgres()?;
    let proxy = Proxy::before(PostgresServer::shared()?.port()).await;
    let direct = database.open().await;
    direct.create_namespace("public", &BTreeMap::new()).await.unwrap();
    direct.create_table(&ident("t"), "0").await.unwrap();
    let url = proxy.url(database.url()).replace("stoa@", "stoa:hunter2@");
    Some((Catalog::connect(&url, "stoa").await.unwrap(), direct, proxy))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_commit_that_is_cut_off_is_looked_up() {
    let Some((catalog, direct, proxy)) = with_proxy().await else { return };
    let mut at = 0;
    let cuts = [Cut::BeforeCommit, Cut::AfterCommit, Cut::AfterCommitUnnoticed];
    for (round, cut) in (0..30).zip(cuts.into_iter().cycle()) {
        proxy.set(cut);
        let is_done = cut != Cut::BeforeCommit;
        let said = match round % 2 {
            0 => {
                let (old, new) = (at.to_string(), (at + 1).to_string());
                let said = catalog.swap(&ident("t"), &old, &new).await;
                at += i32::from(is_done);
                assert_eq!(direct.pointer(&ident("t")).await.unwrap(), at.to_string());
                said
            }
            _ => {
                let name = format!("r{round}");
                let said = catalog.create_role(&Role::new(name.clone())).await;
                assert_eq!(direct.policy().await.unwrap().role(&name).is_some(), is_done);
                said
            }
        };
        assert_eq!(proxy.cuts(), round + 1);
        match said {
            Ok(()) => assert!(is_done, "{cut:?}"),
            Err(error) => {
                assert!(!is_done, "{cut:?}: {error:?}");
                assert_eq!(error.sqlstate(), "57P03");
                assert!(error.is_retryable());
                assert!(!format!("{error:?}").contains("hunter2"));
            }
        }
    }
    // Cut connections are no outage.
    assert_eq!((catalog.state().reachable, catalog.state().reconnections), (true, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_commit_that_cannot_be_looked_up_is_of_unknown_outcome() {
    let Some((catalog, direct, proxy)) = with_proxy().await else { return };
    proxy.set(Cut::AfterCommitAndAll);
    let error = catalog.swap(&ident("t"), "0", "1").await.unwrap_err();
    assert_eq!(error.sqlstate(), "08007");
    assert!(!error.is_retryable());
    assert!(!format!("{error:?}").contains("hunter2"));
    assert_eq!(direct.pointer(&ident("t")).await.unwrap(), "1");
    assert!(!catalog.state().reachable);
    // And then it is back.
    proxy.set(Cut::Never);
    catalog.swap(&ident("t"), "1", "2").await.unwrap();
    assert_eq!(catalog.state().reconnections, 1);
}

/// What was said of each new location.
type Ledger = HashMap<String, &'static str>;

/// Swaps until it is told to stop: of a table of its own and of one that all share, in turn.
async fn swap_on(
    catalog: Catalog,
    number: usize,
    stop: Arc<AtomicBool>,
    done: Arc<AtomicU64>,
) -> Ledger {
    let (own, shared) = (ident(&format!("t{number}")), ident("shared"));
    let mut ledger = Ledger::new();
    let mut round = 0;
    while !stop.load(Ordering::SeqCst) {
        round += 1;
        let table = if round % 3 == 0 { &shared } else { &own };
        let Ok(from) = catalog.pointer(table).await else { continue };
        let to = format!("{number}-{round}");
        let said = match catalog.swap(table, &from, &to).await {
            Ok(()) => "done",
            Err(error) if error.sqlstate() == "08007" => "unknown",
            Err(error) => {
                assert!(["57P03", "40001"].contains(&error.sqlstate()), "{error:?}");
                "undone"
            }
        };
        done.fetch_add(u64::from(said == "done"), Ordering::SeqCst);
        ledger.insert(to, said);
    }
    ledger
}

/// Every move of a pointer is written down by a trigger, in the transaction that moves it.
const HISTORY: &str = "
    CREATE TABLE history (name text, old text, new text, at bigserial);
    CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        INSERT INTO history VALUES (OLD.table_name, OLD.metadata_location, NEW.metadata_location);
        RETURN NEW; END $$;
    CREATE TRIGGER note AFTER UPDATE ON iceberg_tables FOR EACH ROW EXECUTE FUNCTION note();";

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_server_that_is_killed_loses_no_swap_and_doubles_none() {
    const TASKS: usize = 8;
    // Two daemons, so that not all wait for each other in one process.
    let Some(server) = PostgresServer::start(&["fsync=off"]) else { return };
    let url = server.database();
    let catalogs = [
        Catalog::connect(&url, "stoa").await.unwrap(),
        Catalog::connect(&url, "stoa").await.unwrap(),
    ];
    catalogs[0].create_namespace("public", &BTreeMap::new()).await.unwrap();
    for number in 0..TASKS {
        catalogs[0].create_table(&ident(&format!("t{number}")), "start").await.unwrap();
    }
    catalogs[0].create_table(&ident("shared"), "start").await.unwrap();
    PgConnection::connect(&url).await.unwrap().execute(HISTORY).await.unwrap();
    let (stop, done) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let tasks: Vec<_> = (0..TASKS)
        .map(|number| {
            let catalog = catalogs[number % 2].clone();
            spawn(swap_on(catalog, number, Arc::clone(&stop), Arc::clone(&done)))
        })
        .collect();
    for _ in 0..6 {
        let before = done.load(Ordering::SeqCst);
        until("swaps go on", || done.load(Ordering::SeqCst) > before + 100).await;
        server.kill();
        server.begin();
    }
    let before = done.load(Ordering::SeqCst);
    until("swaps go on", || done.load(Ordering::SeqCst) > before + 100).await;
    stop.store(true, Ordering::SeqCst);
    let mut said = Ledger::new();
    for task in tasks {
        said.extend(task.await.unwrap());
    }
    let mut connection = PgConnection::connect(&url).await.unwrap();
    let moves =
        connection.fetch_all("SELECT name, old, new FROM history ORDER BY at").await.unwrap();
    let mut at: HashMap<String, String> = HashMap::new();
    let mut times: HashMap<String, u32> = HashMap::new();
    for row in moves {
        let (name, old, new): (String, String, String) = (row.get(0), row.get(1), row.get(2));
        assert_eq!(*at.get(&name).unwrap_or(&"start".to_owned()), old, "{name}");
        at.insert(name, new.clone());
        *times.entry(new).or_default() += 1;
    }
    let mut counts: BTreeMap<&str, u32> = BTreeMap::new();
    for (location, said) in &said {
        let times = times.remove(location).unwrap_or(0);
        match *said {
            "done" => assert_eq!(times, 1, "{location}"),
            "undone" => assert_eq!(times, 0, "{location}"),
            _ => assert!(times <= 1, "{location}"),
        }
        *counts.entry(said).or_default() += 1;
    }
    assert!(times.is_empty(), "nobody asked for {times:?}");
    for (name, location) in at {
        assert_eq!(catalogs[1].pointer(&ident(&name)).await.unwrap(), location);
    }
    assert!(catalogs[0].state().reconnections > 0);
    eprintln!("swaps by what was said of them: {counts:?}");
}
