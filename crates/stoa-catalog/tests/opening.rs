//! Opening a catalog in PostgreSQL: whose tables, in which schema, with which rights; and copies of it.
#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sqlx::{Connection, Executor, PgConnection, Row};
use stoa_access::{Grant, Grantee, Object, Privilege, Role, ScramSecret};
use stoa_catalog::{Catalog, KnownLog, TableIdent};
use stoa_testkit::{Authority, PostgresServer, Usage};
use uuid::Uuid;

use self::common::Database;

mod common;

fn ident(name: &str) -> TableIdent {
    TableIdent::new("public", name)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_catalog_may_be_in_a_schema_of_its_own() {
    let Some(database) = Database::postgres() else { return };
    database.run("CREATE SCHEMA one; CREATE SCHEMA \"Zwei und\"").await;
    let url = database.url();
    for (schema, parameter) in [
        ("one", "options=-csearch_path%3Done"),
        ("Zwei und", "currentSchema=Zwei%20und&application_name=report%20server"),
    ] {
        let catalog = Catalog::connect(&format!("{url}?{parameter}"), "stoa").await.unwrap();
        assert!(catalog.namespaces().await.unwrap().is_empty());
        catalog.create_namespace(schema, &BTreeMap::new()).await.unwrap();
        let mut connection = PgConnection::connect(url).await.unwrap();
        let query = sqlx::query("SELECT count(*) FROM pg_tables WHERE schemaname = $1");
        let row = connection.fetch_one(query.bind(schema)).await.unwrap();
        assert_eq!(row.get::<i64, _>(0), 18);
    }
    assert!(database.open().await.namespaces().await.unwrap().is_empty());
    let error = Catalog::connect(&format!("{url}?currentSchema=none"), "stoa").await.unwrap_err();
    assert_eq!((error.sqlstate(), error.hint().is_some()), ("42704", true), "{error:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_account_that_may_not_create_can_use_tables_that_are_there() {
    let Some(database) = Database::postgres() else { return };
    let name = format!("plain_{}", stoa_env::random::u64());
    database
        .run(&format!("CREATE ROLE {name} LOGIN; REVOKE CREATE ON SCHEMA public FROM PUBLIC"))
        .await;
    let url = database.url().replace("//stoa@", &format!("//{name}:hunter2@"));
    let error = Catalog::connect(&url, "stoa").await.unwrap_err();
    assert_eq!(error.sqlstate(), "42501", "{error:?}");
    assert!(error.hint().unwrap().contains("CREATE on the schema"));
    database.open().await;
    let grant = "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO ";
    database.run(&format!("{grant}{name}")).await;
    let catalog = Catalog::connect(&url, "stoa").await.unwrap();
    catalog.create_namespace("public", &BTreeMap::new()).await.unwrap();
    catalog.create_role(&Role::new("ann")).await.unwrap();
    assert_eq!(catalog.policy_version().await.unwrap(), 1);
    database.run(&format!("REVOKE ALL ON stoa_roles FROM {name}")).await;
    let error = catalog.policy().await.unwrap_err();
    assert_eq!(error.sqlstate(), "42501");
    for text in [format!("{error:?}"), error.message_with_sources(), format!("{catalog:?}")] {
        assert!(!text.contains("hunter2"), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_cannot_be_opened_says_why() {
    let Some(database) = Database::postgres() else { return };
    let url = database.url().replace("//stoa@", "//stoa:hunter2@");
    let (base, _) = url.rsplit_once('/').unwrap();
    for (url, code) in [
        (format!("{base}/none"), "42704"),
        (url.replace("//stoa:", "//nobody:"), "42501"),
        (format!("{url}?sslmode=verify-full"), "57P03"),
        (format!("{url}?sslmod=require"), "22023"),
        ("postgres://stoa:hunter2@127.0.0.1:1/none".to_owned(), "57P03"),
    ] {
        let error = Catalog::connect(&url, "stoa").await.unwrap_err();
        assert_eq!(error.sqlstate(), code, "{error:?}");
        assert!(error.hint().is_some(), "{error:?}");
        assert!(!format!("{error:?} {}", error.message_with_sources()).contains("hunter2"));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn tls_is_as_the_url_demands() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new(folder.path(), "ours");
    let other = Authority::new(folder.path(), "other");
    let certificate = authority.issue("localhost", Usage::Server);
    let Some(server) = PostgresServer::start_with_tls(&certificate) else { return };
    let base = format!("postgres://stoa:hunter2@localhost:{}/postgres", server.port());
    let root = |authority: &Authority| format!("&sslrootcert={}", authority.cert().display());
    for (mode, root, is_let_in) in [
        ("require", String::new(), true),
        ("verify-full", root(&authority), true),
        ("verify-full", root(&other), false),
        ("verify-full", String::new(), false),
        ("disable", String::new(), false),
    ] {
        let opened = Catalog::connect(&format!("{base}?sslmode={mode}{root}"), "stoa").await;
        assert_eq!(opened.is_ok(), is_let_in, "{mode} {root} {opened:?}");
        if let Err(error) = opened {
            assert!(!format!("{error:?}").contains("hunter2"));
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn long_locations_fit_and_long_names_are_refused() {
    let Some(database) = Database::postgres() else { return };
    let catalog = database.open().await;
    catalog.create_namespace("public", &BTreeMap::new()).await.unwrap();
    let long = format!("s3://bucket/{}", "ä".repeat(1024));
    catalog.create_table(&ident("t"), &long).await.unwrap();
    catalog.swap(&ident("t"), &long, &format!("{long}2")).await.unwrap();
    let name = "n".repeat(256);
    let error = catalog.create_table(&ident(&name), "a").await.unwrap_err();
    assert_eq!(error.sqlstate(), "22001");
    // Where another engine has made the tables.
    let narrow = "ALTER TABLE iceberg_tables ALTER COLUMN metadata_location TYPE VARCHAR(1100);";
    database.run(narrow).await;
    let error =
        catalog.swap(&ident("t"), &format!("{long}2"), &"x".repeat(1101)).await.unwrap_err();
    assert_eq!(error.sqlstate(), "22001", "{error:?}");
    assert!(error.hint().unwrap().contains("ALTER TABLE iceberg_tables"));
    let error = catalog.create_namespace("a\0b", &BTreeMap::new()).await.unwrap_err();
    assert_eq!(error.kind(), stoa_error::ErrorKind::Invalid, "{error:?}");
    assert_eq!(catalog.pointer(&ident("t")).await.unwrap(), format!("{long}2"));
}

/// A catalog with something of everything.
async fn fill(catalog: &Catalog) {
    let owner = BTreeMap::from([("owner".to_owned(), "ann".to_owned())]);
    catalog.create_namespace("public", &owner).await.unwrap();
    catalog.create_table(&ident("t"), "1").await.unwrap();
    catalog.swap(&ident("t"), "1", "2").await.unwrap();
    catalog.create_view(&ident("v"), "3").await.unwrap();
    let secret = ScramSecret::from_password("pw", b"0123456789abcdef", 2.try_into().unwrap());
    let ann = Role { can_login: true, secret: Some(secret), ..Role::new("ann") };
    catalog.create_role(&ann).await.unwrap();
    catalog.create_role(&Role::new("staff")).await.unwrap();
    catalog.grant_role("staff", "ann").await.unwrap();
    let to = Grantee::Role("ann".to_owned());
    let on = Object::Table(Uuid::from_u128(1));
    catalog.grant(&[Grant::new(to, Privilege::Select, on).on_columns([1, 2])]).await.unwrap();
    catalog.set_owner(Uuid::from_u128(1), "ann").await.unwrap();
    for closed_at in [None, Some(7)] {
        let id = format!("log{closed_at:?}");
        catalog.note_log(&KnownLog { id, place: "here".to_owned(), closed_at }).await.unwrap();
    }
    catalog.create_sequence(Uuid::from_u128(2), i64::MAX - 9, -1).await.unwrap();
}

/// All that a catalog says of itself.
async fn contents(catalog: &Catalog) -> String {
    let policy = catalog.policy().await.unwrap();
    let roles: Vec<_> = policy.roles().collect();
    let grants: Vec<_> = policy.grants().collect();
    format!(
        "{:?} {:?} {} {roles:?} {grants:?} {:?} {:?} {} {:?} {:?}",
        catalog.listing().await.unwrap(),
        catalog.namespace_properties("public").await.unwrap(),
        catalog.pointer(&ident("t")).await.unwrap(),
        policy.owners().collect::<BTreeMap<_, _>>(),
        policy.memberships().iter().collect::<Vec<_>>(),
        policy.version(),
        catalog.known_logs().await.unwrap(),
        catalog.login_key().await.unwrap(),
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_copy_there_and_back_is_equal() {
    let Some(database) = Database::postgres() else { return };
    let (file, other_file) = (Database::sqlite(), Database::sqlite());
    let first = file.open().await;
    fill(&first).await;
    let said = contents(&first).await;
    let there = database.open_as("copy").await;
    database.open().await.create_namespace("of another catalog", &BTreeMap::new()).await.unwrap();
    let copied = first.copy_to(&there).await.unwrap();
    assert_eq!(copied.rows.iter().map(|(_, rows)| rows).sum::<u64>(), 15, "{copied:?}");
    assert_eq!(contents(&there).await, said);
    let back = other_file.open().await;
    assert_eq!(there.copy_to(&back).await.unwrap(), copied);
    assert_eq!(contents(&back).await, said);
    assert_eq!(back.take_numbers(Uuid::from_u128(2), 2).await.unwrap(), (i64::MAX - 9, -1));
    for full in [&there, &back] {
        let error = first.copy_to(full).await.unwrap_err();
        assert_eq!(error.sqlstate(), "42710");
        assert!(error.message().contains("is not empty") && error.hint().is_some(), "{error:?}");
        assert!(error.detail().unwrap().contains("iceberg_tables has 2 rows"), "{error:?}");
    }
}

/// Of a catalog that is changed all the time, a copy has one moment.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_copy_is_of_one_moment() {
    let Some(_) = PostgresServer::shared() else { return };
    for from in Database::each() {
        let (source, writer) = (from.open().await, from.open().await);
        source.create_namespace("public", &BTreeMap::new()).await.unwrap();
        let enough = Arc::new(AtomicBool::new(false));
        let writing = stoa_env::task::spawn({
            let enough = Arc::clone(&enough);
            async move {
                let mut number = 0;
                while !enough.load(Ordering::Relaxed) {
                    // One after another, so that a moment has all of them up to one.
                    writer.create_table(&ident(&format!("t{number:06}")), "0").await.unwrap();
                    writer.create_role(&Role::new(format!("r{number:06}"))).await.unwrap();
                    number += 1;
                }
            }
        });
        let mut sizes = BTreeSet::new();
        // As many as see the catalog grow, however fast one or the other is.
        while sizes.len() < 5 {
            assert!(!writing.is_finished(), "the writer failed: {:?}", writing.await);
            let target = Database::sqlite();
            let target = target.open().await;
            source.copy_to(&target).await.unwrap();
            let tables = target.tables("public").await.unwrap().len();
            let policy = target.policy().await.unwrap();
            let roles = policy.roles().len();
            assert!(tables == roles || tables == roles + 1, "{tables} tables, {roles} roles");
            assert_eq!(policy.version(), roles as u64);
            sizes.insert(tables);
        }
        enough.store(true, Ordering::Relaxed);
        writing.await.unwrap();
    }
}
