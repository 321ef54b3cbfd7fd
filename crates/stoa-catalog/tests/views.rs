//! Views in the catalog: they share their names with tables, and are never taken for one.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use stoa_access::{Grant, Grantee, Object, Privilege, Role};
use stoa_catalog::{Catalog, RelationKind, TableIdent};
use uuid::Uuid;

use self::common::Database;

mod common;

over_both!(
    a_view_lives_from_create_to_drop,
    a_name_is_a_table_or_a_view_and_never_both,
    an_unknown_kind_is_told,
    of_a_table_and_a_view_made_at_once_under_one_name_one_is_there,
    of_many_replacements_of_one_version_one_wins,
    a_view_has_an_owner_and_grants_as_a_table_has,
);

fn ident(name: &str) -> TableIdent {
    TableIdent::new("public", name)
}

/// A catalog with the table `t` and the view `v`.
async fn with_both(database: &Database) -> Catalog {
    let catalog = database.open().await;
    catalog.create_namespace("public", &BTreeMap::new()).await.unwrap();
    catalog.create_table(&ident("t"), "a").await.unwrap();
    catalog.create_view(&ident("v"), "b").await.unwrap();
    catalog
}

async fn a_view_lives_from_create_to_drop(database: Database) {
    let catalog = with_both(&database).await;
    let other = database.open().await;
    assert_eq!(other.view_pointer(&ident("v")).await.unwrap(), "b");
    catalog.swap_view(&ident("v"), "b", "c").await.unwrap();
    assert_eq!(other.view_pointer(&ident("v")).await.unwrap(), "c");
    catalog.rename_view(&ident("v"), &ident("w")).await.unwrap();
    assert_eq!(other.views("public").await.unwrap(), ["w"]);
    assert_eq!(other.tables("public").await.unwrap(), ["t"]);
    assert_eq!(other.view_pointers().await.unwrap(), ["c"]);
    assert_eq!(other.relation(&ident("w")).await.unwrap().kind, RelationKind::View);
    assert_eq!(other.relation(&ident("t")).await.unwrap().kind, RelationKind::Table);
    let code = |error: stoa_error::Error| error.sqlstate();
    assert_eq!(code(catalog.drop_view_at(&ident("w"), "b").await.unwrap_err()), "40001");
    catalog.rename_view_at(&ident("w"), "c", &ident("x")).await.unwrap();
    catalog.drop_view_at(&ident("x"), "c").await.unwrap();
    assert!(other.views("public").await.unwrap().is_empty());
    assert_eq!(code(other.view_pointer(&ident("x")).await.unwrap_err()), "42P01");
    assert_eq!(code(catalog.views("nowhere").await.unwrap_err()), "3F000");
}

/// PostgreSQL's codes: 42P07 for a name that is taken, 42809 for the other kind, 42P01 for none.
async fn a_name_is_a_table_or_a_view_and_never_both(database: Database) {
    let catalog = with_both(&database).await;
    let (t, v, none) = (ident("t"), ident("v"), ident("none"));
    let check = |result: Result<(), stoa_error::Error>, code: &str, words: &str| {
        let error = result.unwrap_err();
        assert_eq!((error.sqlstate(), error.message()), (code, words));
    };
    check(catalog.create_table(&v, "x").await, "42P07", "view public.v exists already");
    check(catalog.create_view(&v, "x").await, "42P07", "view public.v exists already");
    check(catalog.create_view(&t, "x").await, "42P07", "table public.t exists already");
    check(catalog.check_free(&v).await, "42P07", "view public.v exists already");
    check(catalog.rename_table(&t, &v).await, "42P07", "view public.v exists already");
    check(catalog.rename_view(&v, &t).await, "42P07", "table public.t exists already");
    catalog.check_free(&none).await.unwrap();
    // Twice: the second time from what is remembered.
    for _ in 0..2 {
        check(catalog.pointer(&v).await.map(|_| ()), "42809", "public.v is a view");
        check(catalog.view_pointer(&t).await.map(|_| ()), "42809", "public.t is a table");
    }
    check(catalog.swap(&v, "b", "x").await, "42809", "public.v is a view");
    check(catalog.rename_table(&v, &none).await, "42809", "public.v is a view");
    check(catalog.drop_table(&v).await.map(|_| ()), "42809", "public.v is a view");
    check(catalog.drop_table_at(&v, "b").await, "42809", "public.v is a view");
    check(catalog.swap_view(&t, "a", "x").await, "42809", "public.t is a table");
    check(catalog.rename_view(&t, &none).await, "42809", "public.t is a table");
    check(catalog.drop_view(&t).await.map(|_| ()), "42809", "public.t is a table");
    check(catalog.swap_view(&none, "a", "x").await, "42P01", "view public.none does not exist");
    check(
        catalog.swap_view(&v, "a", "x").await,
        "40001",
        "view public.v was changed by somebody else",
    );
    check(catalog.drop_view(&none).await.map(|_| ()), "42P01", "view public.none does not exist");
    // Nothing of all that did anything.
    assert_eq!(catalog.pointer(&t).await.unwrap(), "a");
    assert_eq!(catalog.view_pointer(&v).await.unwrap(), "b");
    catalog.drop_table(&t).await.unwrap();
    let held = catalog.drop_namespace("public").await.unwrap_err();
    assert_eq!((held.sqlstate(), held.detail()), ("2BP01", Some("it holds v")));
}

/// Another engine's kind of relation is neither, and its name is taken.
async fn an_unknown_kind_is_told(database: Database) {
    let catalog = with_both(&database).await;
    let insert = "INSERT INTO iceberg_tables VALUES ('stoa', 'public', 'f', 'x', NULL, 'FUNC')";
    database.run(insert).await;
    let f = ident("f");
    for error in [
        catalog.pointer(&f).await.unwrap_err(),
        catalog.drop_view(&f).await.unwrap_err(),
        catalog.create_view(&f, "y").await.unwrap_err(),
    ] {
        assert!(error.message().contains("\"FUNC\""), "{error:?}");
    }
    assert_eq!(catalog.tables("public").await.unwrap(), ["t"]);
    assert_eq!(catalog.views("public").await.unwrap(), ["v"]);
}

async fn of_a_table_and_a_view_made_at_once_under_one_name_one_is_there(database: Database) {
    let first = with_both(&database).await;
    let second = database.open().await;
    for round in 0..30 {
        let name = ident(&format!("n{round}"));
        let (table, view, view_too) = tokio::join!(
            first.create_table(&name, "t"),
            second.create_view(&name, "v"),
            first.create_view(&name, "w"),
        );
        let done: Vec<bool> = [table, view, view_too]
            .into_iter()
            .map(|result| result.map_err(|error| assert_eq!(error.sqlstate(), "42P07")).is_ok())
            .collect();
        assert_eq!(done.iter().filter(|done| **done).count(), 1, "{done:?}");
        let kind = if done[0] { RelationKind::Table } else { RelationKind::View };
        assert_eq!(second.relation(&name).await.unwrap().kind, kind);
    }
    let both =
        first.tables("public").await.unwrap().len() + first.views("public").await.unwrap().len();
    assert_eq!(both, 32);
}

async fn of_many_replacements_of_one_version_one_wins(database: Database) {
    let first = with_both(&database).await;
    let second = database.open().await;
    first.swap_view(&ident("v"), "b", "0").await.unwrap();
    for round in 0..20 {
        let (from, to) = (format!("{round}"), format!("{}", round + 1));
        let v = ident("v");
        let (a, b) =
            tokio::join!(first.swap_view(&v, &from, &to), second.swap_view(&v, &from, &to));
        let lost = [a, b].into_iter().filter_map(Result::err).collect::<Vec<_>>();
        assert_eq!(lost.iter().map(|error| error.sqlstate()).collect::<Vec<_>>(), ["40001"]);
    }
    assert_eq!(second.view_pointer(&ident("v")).await.unwrap(), "20");
}

async fn a_view_has_an_owner_and_grants_as_a_table_has(database: Database) {
    let catalog = with_both(&database).await;
    catalog.create_role(&Role::new("ann")).await.unwrap();
    let view = Uuid::from_u128(7);
    assert!(catalog.set_owner(view, "ann").await.unwrap());
    let grant = Grant::new(Grantee::Public, Privilege::Select, Object::Table(view));
    assert_eq!(catalog.grant(&[grant]).await.unwrap(), 1);
    assert_eq!(catalog.policy().await.unwrap().owner(view), Some("ann"));
    assert_eq!(catalog.forget_table(view).await.unwrap(), 2);
}
