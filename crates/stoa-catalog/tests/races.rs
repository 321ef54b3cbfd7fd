//! Several catalogs of one database at once: what each has checked still holds when it commits.
#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};

use sqlx::{Connection, Executor, PgConnection, Row};
use stoa_access::{Grant, Grantee, Object, Privilege, Role};
use stoa_catalog::{Catalog, Swap, TableIdent};
use stoa_env::task::spawn;
use uuid::Uuid;

use self::common::Database;

mod common;

over_both!(
    a_schema_is_not_dropped_while_a_table_is_made_in_it,
    a_role_is_not_dropped_while_it_is_granted_something,
    a_pointer_is_not_moved_while_its_table_is_dropped_or_renamed,
    swaps_of_the_same_tables_in_any_order_wait_for_no_other,
    a_number_is_given_out_once,
    a_login_key_is_made_once,
    what_was_committed_is_seen_by_whoever_asks_then,
    many_openers_at_once_make_one_catalog,
);

const ROUNDS: usize = 20;

fn ident(name: &str) -> TableIdent {
    TableIdent::new("public", name)
}

async fn two(database: &Database) -> (Catalog, Catalog) {
    let first = database.open().await;
    first.create_namespace("public", &BTreeMap::new()).await.unwrap();
    (first, database.open().await)
}

async fn a_schema_is_not_dropped_while_a_table_is_made_in_it(database: Database) {
    let (first, second) = two(&database).await;
    let t = TableIdent::new("s", "t");
    for _ in 0..ROUNDS {
        first.create_namespace("s", &BTreeMap::new()).await.unwrap();
        let (made, dropped) = tokio::join!(first.create_table(&t, "a"), second.drop_namespace("s"));
        match (made, dropped) {
            (Ok(()), Err(error)) => {
                assert_eq!(error.sqlstate(), "2BP01");
                second.drop_table(&t).await.unwrap();
                first.drop_namespace("s").await.unwrap();
            }
            (Err(error), Ok(())) => assert_eq!(error.sqlstate(), "3F000"),
            other => panic!("{other:?}"),
        }
        assert!(!second.namespace_exists("s").await.unwrap());
    }
}

async fn a_role_is_not_dropped_while_it_is_granted_something(database: Database) {
    let (first, second) = two(&database).await;
    let grant = Grant::new(
        Grantee::Role("ann".to_owned()),
        Privilege::Select,
        Object::Table(Uuid::from_u128(1)),
    );
    for round in 0..ROUNDS {
        let version = first.policy_version().await.unwrap();
        first.create_role(&Role::new("ann")).await.unwrap();
        let grants = std::slice::from_ref(&grant);
        let owner = Uuid::from_u128(7);
        let (granted, dropped) = match round % 2 {
            0 => tokio::join!(
                async { first.grant(grants).await.map(|_| ()) },
                second.drop_role("ann")
            ),
            _ => tokio::join!(
                async { first.set_owner(owner, "ann").await.map(|_| ()) },
                second.drop_role("ann")
            ),
        };
        match (granted, dropped) {
            (Ok(()), Err(error)) => {
                assert_eq!(error.sqlstate(), "2BP01");
                first.revoke(grants).await.unwrap();
                first.forget_table(owner).await.unwrap();
                second.drop_role("ann").await.unwrap();
                assert_eq!(first.policy_version().await.unwrap(), version + 4);
            }
            (Err(error), Ok(())) => assert_eq!(error.sqlstate(), "42704"),
            other => panic!("{other:?}"),
        }
        // What is stored is a policy at every moment.
        second.policy().await.unwrap();
    }
}

async fn a_pointer_is_not_moved_while_its_table_is_dropped_or_renamed(database: Database) {
    let (first, second) = two(&database).await;
    let (t, u) = (ident("t"), ident("u"));
    for round in 0..ROUNDS {
        first.create_table(&t, "a").await.unwrap();
        let gone = async {
            match round % 2 {
                0 => second.drop_table_at(&t, "a").await,
                _ => second.rename_table_at(&t, "a", &u).await,
            }
        };
        let (moved, gone) = tokio::join!(first.swap(&t, "a", "b"), gone);
        match (moved, gone) {
            (Ok(()), Err(error)) => {
                assert_eq!(error.sqlstate(), "40001");
                assert_eq!(first.drop_table(&t).await.unwrap(), "b");
            }
            (Err(error), Ok(())) => {
                assert_eq!(error.sqlstate(), "42P01");
                if round % 2 == 1 {
                    assert_eq!(second.drop_table(&u).await.unwrap(), "a");
                }
            }
            other => panic!("{other:?}"),
        }
    }
}

async fn swaps_of_the_same_tables_in_any_order_wait_for_no_other(database: Database) {
    let (first, second) = two(&database).await;
    let (t, u) = (ident("t"), ident("u"));
    first.create_table(&t, "0").await.unwrap();
    first.create_table(&u, "0").await.unwrap();
    for round in 0..ROUNDS {
        let (old, new) = (round.to_string(), (round + 1).to_string());
        let swap = |ident| Swap { ident, expected: &old, new: Some(&new) };
        let check = |ident| Swap { ident, expected: &old, new: None };
        let (one, other, third) = (
            [swap(&t), swap(&u)],
            [swap(&u), swap(&t)],
            // It holds where nobody has moved yet.
            [check(&u), check(&t)],
        );
        let (one, other, third) =
            tokio::join!(first.swap_all(&one), second.swap_all(&other), second.swap_all(&third));
        assert!(one.is_ok() != other.is_ok(), "{one:?} {other:?}");
        for error in [one.err(), other.err(), third.err()].into_iter().flatten() {
            assert_eq!(error.sqlstate(), "40001");
            assert!(error.message().ends_with("was changed by somebody else"), "{error:?}");
        }
        for ident in [&t, &u] {
            assert_eq!(first.pointer(ident).await.unwrap(), new);
        }
    }
}

async fn a_number_is_given_out_once(database: Database) {
    let (first, second) = two(&database).await;
    let id = Uuid::from_u128(1);
    first.create_sequence(id, 1, 1).await.unwrap();
    let takers = [first.clone(), second, first].map(|catalog| {
        spawn(async move {
            let mut taken = Vec::new();
            for count in 1..=ROUNDS as u32 {
                let (start, step) = catalog.take_numbers(id, count).await.unwrap();
                taken.extend((0..i64::from(count)).map(|number| start + number * step));
            }
            taken
        })
    });
    let mut all = Vec::new();
    for taker in takers {
        all.extend(taker.await.unwrap());
    }
    let different: BTreeSet<i64> = all.iter().copied().collect();
    assert_eq!((different.len(), different.last()), (all.len(), Some(&(all.len() as i64))));
}

async fn a_login_key_is_made_once(database: Database) {
    let (first, second) = two(&database).await;
    let (a, b, c) = tokio::join!(first.login_key(), second.login_key(), first.login_key());
    let a = a.unwrap();
    assert_eq!([b.unwrap(), c.unwrap()], [a, a]);
    assert_eq!(database.open().await.login_key().await.unwrap(), a);
}

async fn what_was_committed_is_seen_by_whoever_asks_then(database: Database) {
    let (writer, reader) = two(&database).await;
    let t = ident("t");
    writer.create_table(&t, "0").await.unwrap();
    writer.create_role(&Role::new("ann")).await.unwrap();
    for round in 0..100 {
        let (old, new) = (round.to_string(), (round + 1).to_string());
        let before = reader.policy_version().await.unwrap();
        writer.swap(&t, &old, &new).await.unwrap();
        assert!(writer.set_owner(Uuid::from_u128(round), "ann").await.unwrap());
        let readers: Vec<_> = (0..16)
            .map(|_| {
                let (reader, t) = (reader.clone(), t.clone());
                spawn(async move {
                    (reader.pointer(&t).await.unwrap(), reader.policy_version().await.unwrap())
                })
            })
            .collect();
        for reader in readers {
            assert_eq!(reader.await.unwrap(), (new.clone(), before + 1));
        }
    }
}

async fn many_openers_at_once_make_one_catalog(database: Database) {
    let catalogs = futures::future::join_all((0..10).map(|_| database.open())).await;
    let made = futures::future::join_all(catalogs.iter().enumerate().map(
        |(number, catalog)| async move {
            catalog.create_namespace(&format!("n{number}"), &BTreeMap::new()).await.unwrap();
        },
    ));
    made.await;
    assert_eq!(catalogs[3].namespaces().await.unwrap().len(), 10);
}

/// A change of the catalog that takes long keeps other such changes waiting, but no swap and no read.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn swaps_do_not_wait_for_changes_that_check() {
    let Some(database) = Database::postgres() else { return };
    let (first, second) = two(&database).await;
    first.create_table(&ident("t"), "0").await.unwrap();
    let mut other = PgConnection::connect(database.url()).await.unwrap();
    other.execute("BEGIN; LOCK TABLE stoa_roles IN ACCESS EXCLUSIVE MODE").await.unwrap();
    let slow = spawn({
        let first = first.clone();
        async move { first.create_role(&Role::new("ann")).await }
    });
    let waits = "SELECT count(*) > 0 FROM pg_locks
         WHERE NOT granted AND locktype = $1
           AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
    let mut look = PgConnection::connect(database.url()).await.unwrap();
    let mut some_wait = async |kind: &str| {
        while !look.fetch_one(sqlx::query(waits).bind(kind)).await.unwrap().get::<bool, _>(0) {
            stoa_env::timer::sleep(std::time::Duration::from_millis(2)).await;
        }
    };
    some_wait("relation").await;
    let next = spawn({
        let second = second.clone();
        async move { second.create_namespace("n", &BTreeMap::new()).await }
    });
    some_wait("advisory").await;
    for round in 0..20 {
        second.swap(&ident("t"), &round.to_string(), &(round + 1).to_string()).await.unwrap();
        assert_eq!(first.pointer(&ident("t")).await.unwrap(), (round + 1).to_string());
    }
    assert!(!slow.is_finished() && !next.is_finished());
    other.execute("COMMIT").await.unwrap();
    slow.await.unwrap().unwrap();
    next.await.unwrap().unwrap();
}

/// Changes whose callers have gone, at whatever point, are not made, and keep nothing from later ones.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn changes_that_nobody_waits_for_leave_nothing_behind() {
    let Some(database) = Database::postgres() else { return };
    let (first, second) = two(&database).await;
    let t = ident("t");
    first.create_table(&t, "0").await.unwrap();
    let mut other = PgConnection::connect(database.url()).await.unwrap();
    other.execute("BEGIN; UPDATE iceberg_tables SET metadata_location = '0'").await.unwrap();
    let waiting: Vec<_> = (0..20)
        .map(|number| {
            let (first, t) = (first.clone(), t.clone());
            spawn(async move {
                match number % 2 {
                    0 => first.swap(&t, "0", "lost").await,
                    _ => first.drop_table_at(&t, "0").await,
                }
            })
        })
        .collect();
    let waits = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'
         AND datname = current_database()";
    // Seven swaps and a drop: of drops all but one wait in the process.
    let mut look = PgConnection::connect(database.url()).await.unwrap();
    while look.fetch_one(waits).await.unwrap().get::<i64, _>(0) < 7 {
        stoa_env::timer::sleep(std::time::Duration::from_millis(2)).await;
    }
    for task in &waiting {
        task.abort();
    }
    for task in waiting {
        assert!(task.await.unwrap_err().is_cancelled());
    }
    other.execute("ROLLBACK").await.unwrap();
    // No commit was sent for any of them.
    first.swap(&t, "0", "at 0").await.unwrap();
    for round in 0..40 {
        let (old, new) = (format!("at {round}"), format!("at {}", round + 1));
        // The caller goes at once, or a little later. If the commit was sent by then, it may still
        // be made, at any moment after.
        let micros = std::time::Duration::from_micros(round * 10);
        let _ = stoa_env::timer::timeout(micros, first.swap(&t, &old, "lost")).await;
        if let Err(error) = second.swap(&t, &old, &new).await {
            assert_eq!(error.sqlstate(), "40001");
            second.swap(&t, "lost", &new).await.unwrap();
        }
        assert_eq!(first.pointer(&t).await.unwrap(), new);
    }
    first.drop_table(&t).await.unwrap();
}
