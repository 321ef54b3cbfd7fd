//! PostgreSQL that is away for a while: reads go on from memory, changes wait, all is read anew after.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::time::Duration;

use sqlx::{Connection, Executor, PgConnection, Row};
use stoa_access::Role;
use stoa_catalog::{Catalog, TableIdent};
use stoa_env::clock;
use stoa_env::task::spawn;
use stoa_env::timer;
use stoa_testkit::{PostgresServer, until};

use self::common::Database;
use self::common::proxy::{Cut, Proxy};

mod common;

fn ident(name: &str) -> TableIdent {
    TableIdent::new("public", name)
}

/// A server of the test's own, and a catalog with the tables `t` and `u`, both at `0`.
async fn with_server() -> Option<(PostgresServer, String, Catalog)> {
    let server = PostgresServer::start(&["fsync=off"])?;
    let url = server.database();
    let catalog = Catalog::connect(&url, "stoa").await.unwrap();
    catalog.create_namespace("public", &BTreeMap::new()).await.unwrap();
    for name in ["t", "u"] {
        catalog.create_table(&ident(name), "0").await.unwrap();
    }
    catalog.create_role(&Role::new("ann")).await.unwrap();
    Some((server, url, catalog))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn reads_are_answered_from_memory_and_changes_wait() {
    let Some((server, url, catalog)) = with_server().await else { return };
    let (t, u) = (ident("t"), ident("u"));
    assert_eq!(catalog.pointer(&t).await.unwrap(), "0");
    let version = catalog.policy_version().await.unwrap();
    let policy = catalog.policy().await.unwrap();
    let listing = catalog.listing().await.unwrap();
    assert!(catalog.state().reachable);
    let before = clock::now();
    server.stop();

    for _ in 0..3 {
        assert_eq!(catalog.pointer(&t).await.unwrap(), "0");
        assert_eq!(catalog.policy_version().await.unwrap(), version);
        assert_eq!(catalog.policy().await.unwrap().role("ann"), policy.role("ann"));
        assert_eq!(catalog.listing().await.unwrap(), listing);
    }
    let state = catalog.state();
    assert!(!state.reachable && state.since >= before && state.last_error.is_some(), "{state:?}");
    assert!(state.remembered_until.unwrap() > clock::now() + Duration::from_secs(590));
    // What was never asked for is not known.
    let error = catalog.pointer(&u).await.unwrap_err();
    assert_eq!(error.sqlstate(), "57P03");
    assert!(error.message().contains("cannot be reached") && error.hint().is_some(), "{error:?}");
    // A change waits, and is made when the server is back.
    let waiting = {
        let (catalog, t) = (catalog.clone(), t.clone());
        spawn(async move { catalog.swap(&t, "0", "1").await })
    };
    server.begin();
    waiting.await.unwrap().unwrap();
    until("it is noted", || catalog.state().reachable).await;
    let state = catalog.state();
    assert_eq!((state.reconnections, state.remembered_until), (1, None));
    assert_eq!(catalog.pointer(&t).await.unwrap(), "1");

    // Somebody else moves it after an outage in which this one had remembered it: the old pointer
    // never comes back, even if the server goes away again before anybody has asked.
    server.stop();
    assert_eq!(catalog.pointer(&t).await.unwrap(), "1");
    server.begin();
    until("it is back", || catalog.state().reachable).await;
    let mut other = PgConnection::connect(&url).await.unwrap();
    other
        .execute("UPDATE iceberg_tables SET metadata_location = '2' WHERE table_name = 't'")
        .await
        .unwrap();
    server.stop();
    assert_eq!(catalog.pointer(&t).await.unwrap_err().sqlstate(), "57P03");
    server.begin();
    until("it is back", || catalog.state().reachable).await;
    assert_eq!(catalog.pointer(&t).await.unwrap(), "2");
}

/// A server that was restarted while nobody asked is no outage: only its connections are dead.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn connections_that_have_died_are_replaced_unnoticed() {
    let Some((server, _, catalog)) = with_server().await else { return };
    for round in 0..4 {
        let (old, new) = (round.to_string(), (round + 1).to_string());
        catalog.pointer(&ident("t")).await.unwrap();
        catalog.listing().await.unwrap();
        server.stop();
        server.begin();
        match round % 2 {
            0 => catalog.swap(&ident("t"), &old, &new).await.unwrap(),
            _ => {
                assert_eq!(catalog.pointer(&ident("t")).await.unwrap(), old);
                catalog.listing().await.unwrap();
                catalog.create_role(&Role::new(format!("r{round}"))).await.unwrap();
                catalog.swap(&ident("t"), &old, &new).await.unwrap();
            }
        }
    }
    assert_eq!(catalog.pointer(&ident("t")).await.unwrap(), "4");
    assert_eq!(catalog.state().reconnections, 0);
}

/// What this process has changed is not answered from what it had read before.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn memory_has_nothing_that_was_changed_since() {
    let Some((server, _, catalog)) = with_server().await else { return };
    let (t, u) = (ident("t"), ident("u"));
    for ident in [&t, &u] {
        catalog.pointer(ident).await.unwrap();
    }
    catalog.policy_version().await.unwrap();
    catalog.swap(&t, "0", "1").await.unwrap();
    catalog.drop_role("ann").await.unwrap();
    server.stop();
    let (known, moved, version) =
        tokio::join!(catalog.pointer(&u), catalog.pointer(&t), catalog.policy_version());
    assert_eq!(known.unwrap(), "0");
    assert_eq!(moved.unwrap_err().sqlstate(), "57P03");
    assert_eq!(version.unwrap_err().sqlstate(), "57P03");
}

/// What is remembered is asked for again every ten seconds, whether or not anybody wants it.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_is_remembered_is_kept_up_to_date() {
    let Some((server, url, catalog)) = with_server().await else { return };
    assert_eq!(catalog.pointer(&ident("t")).await.unwrap(), "0");
    let mut other = PgConnection::connect(&url).await.unwrap();
    let change = "UPDATE iceberg_tables SET metadata_location = '1' WHERE table_name = 't'";
    other.execute(change).await.unwrap();
    let asked = "SELECT count(*) FROM pg_stat_activity
         WHERE application_name = 'stoa' AND query LIKE '%WITH ORDINALITY%' AND state = 'idle'
           AND query_start > $1::text::timestamptz";
    let now: String = other.fetch_one("SELECT now()::text").await.unwrap().try_get(0).unwrap();
    let wait = async {
        loop {
            let row = other.fetch_one(sqlx::query(asked).bind(&now)).await.unwrap();
            if row.get::<i64, _>(0) > 0 {
                return;
            }
            timer::sleep(Duration::from_millis(20)).await;
        }
    };
    // It asks every ten seconds. A busy machine may look only when the connection has asked something else since.
    timer::timeout(Duration::from_secs(180), wait).await.unwrap();
    server.stop();
    assert_eq!(catalog.pointer(&ident("t")).await.unwrap(), "1");
    assert!(!catalog.state().reachable);
}

/// An outage is noted although nobody asks.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_outage_is_noted_although_nobody_asks() {
    let Some((server, _, catalog)) = with_server().await else { return };
    server.stop();
    until("it is noted", || !catalog.state().reachable).await;
    server.begin();
    until("it is back", || catalog.state().reachable).await;
}

/// The longest that a change waits is 30 seconds.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_change_that_has_waited_too_long_says_what_to_do() {
    let Some(database) = Database::postgres() else { return };
    let proxy = Proxy::before(PostgresServer::shared().unwrap().port()).await;
    let url = proxy.url(database.url()).replace("stoa@", "stoa:hunter2@");
    let catalog = Catalog::connect(&url, "stoa").await.unwrap();
    proxy.set(Cut::All);
    let none = BTreeMap::new();
    let (one, other) =
        tokio::join!(catalog.create_namespace("a", &none), catalog.forget_log("no log"));
    for error in [one.unwrap_err(), other.unwrap_err()] {
        assert_eq!(error.sqlstate(), "57P03");
        assert!(error.message().contains("postgres://stoa@127.0.0.1"), "{error:?}");
        assert!(error.hint().unwrap().contains("check that PostgreSQL is running"), "{error:?}");
        assert!(!format!("{error:?}").contains("hunter2"));
    }
    assert!(!format!("{:?} {:?}", catalog, catalog.state()).contains("hunter2"));
    proxy.set(Cut::Never);
    catalog.create_namespace("a", &none).await.unwrap();
}

/// Another cluster under the same address is not taken for the old one.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn another_cluster_under_the_same_address_is_refused() {
    let Some((server, url, catalog)) = with_server().await else { return };
    catalog.pointer(&ident("t")).await.unwrap();
    server.stop();
    server.make_anew();
    server.begin();
    assert_eq!(url, server.database());
    let error = catalog.pointer(&ident("u")).await.unwrap_err();
    assert_eq!(error.sqlstate(), "57P03");
    assert!(error.detail().unwrap().contains("another PostgreSQL answers"), "{error:?}");
}
