//! What the catalog promises: exact codes, one winner per swap, several openers of one file.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use stoa_catalog::{Catalog, Listing, TableIdent};

use self::common::Database;

mod common;

over_both!(
    errors_have_their_exact_codes,
    a_table_lives_from_create_to_drop,
    namespace_properties_come_back_and_the_namespace_stays,
    of_many_swaps_from_one_location_one_wins,
    a_database_of_schema_version_0_is_brought_up_to_date,
    a_listing_has_all_namespaces_and_what_they_hold,
);

fn ident(name: &str) -> TableIdent {
    TableIdent::new("public", name)
}

async fn with_namespace(database: &Database) -> Catalog {
    let catalog = database.open().await;
    catalog.create_namespace("public", &BTreeMap::new()).await.unwrap();
    catalog
}

async fn errors_have_their_exact_codes(database: Database) {
    let catalog = with_namespace(&database).await;
    let code = |error: stoa_error::Error| error.sqlstate();
    let t = ident("t");
    let none = BTreeMap::new();
    let elsewhere = TableIdent::new("nowhere", "t");

    assert_eq!(code(catalog.create_namespace("public", &none).await.unwrap_err()), "42P06");
    assert_eq!(code(catalog.drop_namespace("nowhere").await.unwrap_err()), "3F000");
    assert_eq!(code(catalog.tables("nowhere").await.unwrap_err()), "3F000");
    assert_eq!(code(catalog.create_table(&elsewhere, "a").await.unwrap_err()), "3F000");
    assert_eq!(code(catalog.pointer(&elsewhere).await.unwrap_err()), "3F000");
    assert_eq!(code(catalog.pointer(&t).await.unwrap_err()), "42P01");
    assert_eq!(code(catalog.swap(&t, "a", "b").await.unwrap_err()), "42P01");
    assert_eq!(code(catalog.rename_table(&t, &ident("u")).await.unwrap_err()), "42P01");
    assert_eq!(code(catalog.drop_table(&t).await.unwrap_err()), "42P01");

    catalog.create_table(&t, "a").await.unwrap();
    assert_eq!(code(catalog.create_table(&t, "b").await.unwrap_err()), "42P07");
    assert_eq!(code(catalog.drop_namespace("public").await.unwrap_err()), "2BP01");
    assert_eq!(code(catalog.swap(&t, "z", "b").await.unwrap_err()), "40001");
    catalog.create_table(&ident("u"), "x").await.unwrap();
    assert_eq!(code(catalog.rename_table(&t, &ident("u")).await.unwrap_err()), "42P07");
    assert_eq!(code(catalog.rename_table(&t, &elsewhere).await.unwrap_err()), "3F000");
}

async fn a_table_lives_from_create_to_drop(database: Database) {
    let catalog = with_namespace(&database).await;
    catalog.create_table(&ident("t"), "a").await.unwrap();
    catalog.swap(&ident("t"), "a", "b").await.unwrap();
    catalog.rename_table(&ident("t"), &ident("u")).await.unwrap();
    assert_eq!(catalog.tables("public").await.unwrap(), ["u"]);
    assert_eq!(catalog.pointer(&ident("u")).await.unwrap(), "b");
    assert_eq!(catalog.drop_table(&ident("u")).await.unwrap(), "b");
    catalog.drop_namespace("public").await.unwrap();
    assert!(catalog.namespaces().await.unwrap().is_empty());
}

async fn namespace_properties_come_back_and_the_namespace_stays(database: Database) {
    let catalog = with_namespace(&database).await;
    let set = BTreeMap::from([("owner".to_owned(), Some("ann".to_owned()))]);
    catalog.set_namespace_properties("public", &set).await.unwrap();
    let properties = catalog.namespace_properties("public").await.unwrap();
    assert_eq!(properties, BTreeMap::from([("owner".to_owned(), "ann".to_owned())]));
    let unset = BTreeMap::from([("owner".to_owned(), None)]);
    catalog.set_namespace_properties("public", &unset).await.unwrap();
    assert!(catalog.namespace_properties("public").await.unwrap().is_empty());
    assert_eq!(catalog.namespaces().await.unwrap(), ["public"]);
}

async fn of_many_swaps_from_one_location_one_wins(database: Database) {
    let first = with_namespace(&database).await;
    first.create_table(&ident("t"), "0").await.unwrap();
    let second = database.open().await;
    let mut wins = 0;
    for round in 0..20 {
        let (from, to) = (format!("{round}"), format!("{}", round + 1));
        let t = ident("t");
        let (a, b, c) = tokio::join!(
            first.swap(&t, &from, &to),
            second.swap(&t, &from, &to),
            first.swap(&t, &from, &to)
        );
        for outcome in [a, b, c] {
            match outcome {
                Ok(()) => wins += 1,
                Err(error) => assert_eq!(error.sqlstate(), "40001"),
            }
        }
    }
    assert_eq!(wins, 20);
    assert_eq!(second.pointer(&ident("t")).await.unwrap(), "20");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_new_file_may_be_opened_by_many_at_once() {
    for _ in 0..30 {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("catalog.db");
        let openers: Vec<_> = (0..8)
            .map(|number: u32| {
                let file = file.clone();
                stoa_env::task::spawn(async move {
                    let catalog = Catalog::open(&file, "stoa").await.unwrap();
                    let name = format!("n{number}");
                    catalog.create_namespace(&name, &BTreeMap::new()).await.unwrap();
                })
            })
            .collect();
        for opener in openers {
            opener.await.unwrap();
        }
        let catalog = Catalog::open(&file, "stoa").await.unwrap();
        assert_eq!(catalog.namespaces().await.unwrap().len(), 8);
    }
}

/// Opens a database without the type column, as older clients leave it; a file is in the rollback journal.
async fn a_database_of_schema_version_0_is_brought_up_to_date(database: Database) {
    database
        .run(
            "CREATE TABLE iceberg_tables (catalog_name VARCHAR(255) NOT NULL,
                table_namespace VARCHAR(255) NOT NULL, table_name VARCHAR(255) NOT NULL,
                metadata_location VARCHAR(1000), previous_metadata_location VARCHAR(1000),
                PRIMARY KEY (catalog_name, table_namespace, table_name));
             INSERT INTO iceberg_tables VALUES ('stoa', 'db', 't', 'here', NULL);
             INSERT INTO iceberg_tables VALUES ('other', 'db', 'u', 'there', NULL)",
        )
        .await;
    let catalog = database.open().await;
    assert_eq!(catalog.namespaces().await.unwrap(), ["db"]);
    assert_eq!(catalog.tables("db").await.unwrap(), ["t"]);
    catalog.swap(&TableIdent::new("db", "t"), "here", "now").await.unwrap();
    assert_eq!(catalog.pointer(&TableIdent::new("db", "t")).await.unwrap(), "now");
}

async fn a_listing_has_all_namespaces_and_what_they_hold(database: Database) {
    let catalog = with_namespace(&database).await;
    let none = BTreeMap::new();
    catalog.create_namespace("empty", &none).await.unwrap();
    catalog.create_namespace("ads", &none).await.unwrap();
    catalog.create_table(&ident("u"), "1").await.unwrap();
    catalog.create_table(&ident("t"), "2").await.unwrap();
    catalog.create_view(&TableIdent::new("ads", "v"), "3").await.unwrap();
    let listing = catalog.listing().await.unwrap();
    let held = |listing: &Listing| {
        (listing.namespace.clone(), listing.tables.join(" "), listing.views.join(" "))
    };
    let expected = [("ads", "", "v"), ("empty", "", ""), ("public", "t u", "")];
    let expected = expected.map(|(a, b, c)| (a.to_owned(), b.to_owned(), c.to_owned()));
    assert_eq!(listing.iter().map(held).collect::<Vec<_>>(), expected);
}
