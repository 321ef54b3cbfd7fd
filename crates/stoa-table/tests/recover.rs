//! A catalog made anew from what the store holds.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Home, append, ident, report_rows, report_spec};
use stoa_table::{TableIdent, Warehouse, WarehouseOptions};

const NEW_YEAR_2015: i32 = 16_436;

/// The warehouse of `home` with a catalog that is empty.
async fn with_new_catalog(home: &Home) -> Warehouse {
    let url = home.warehouse.url().clone();
    let catalog = Some(home.directory.path().join("elsewhere/new.db"));
    let catalog = catalog.map(Into::into);
    let options = WarehouseOptions { catalog, new_catalog: true, ..WarehouseOptions::new(url) };
    Warehouse::open_with(&options).await.unwrap()
}

/// A new catalog would show none of the tables, and make others of their names beside them.
#[tokio::test]
async fn a_lost_catalog_is_missed() {
    let home = Home::new().await;
    let url = home.warehouse.url().clone();
    let catalog = url.to_file_path().unwrap().join("catalog.db");
    home.warehouse.catalog().close().await;
    let open = async || Warehouse::open_with(&WarehouseOptions::new(url.clone())).await.unwrap();
    // Without tables there is nothing to miss.
    std::fs::remove_file(&catalog).unwrap();
    let warehouse = open().await;
    warehouse.create_table(&ident("t"), report_spec()).await.unwrap();
    warehouse.catalog().close().await;
    let whole = std::fs::read(&catalog).unwrap();
    for lost in [None, Some("")] {
        match lost {
            None => std::fs::remove_file(&catalog).unwrap(),
            Some(text) => std::fs::write(&catalog, text).unwrap(),
        }
        let refused = Warehouse::open_with(&WarehouseOptions::new(url.clone())).await.unwrap_err();
        assert!(refused.message().contains("public.t"), "{refused:?}");
        assert!(refused.message().contains("catalog.db"), "{refused:?}");
        assert!(refused.hint().unwrap().contains("stoa table recover"), "{refused:?}");
    }
    std::fs::write(&catalog, whole).unwrap();
    assert_eq!(open().await.tables("public").await.unwrap(), [ident("t")]);
}

#[tokio::test]
async fn tables_come_back_at_their_newest_version() {
    let home = Home::new().await;
    home.warehouse.create_namespace("other", &Default::default()).await.unwrap();
    let other = TableIdent::new("other", "t");
    home.warehouse.create_table(&other, report_spec()).await.unwrap();
    let mut table = home.warehouse.create_table(&ident("t"), report_spec()).await.unwrap();
    for _ in 0..12 {
        table = append(&table, report_rows(NEW_YEAR_2015, 10)).await;
    }

    let anew = with_new_catalog(&home).await;
    assert_eq!(anew.tables("public").await.unwrap(), []);
    let recovered = anew.recover().await.unwrap();
    assert_eq!(recovered, [other.clone(), ident("t")]);
    let found = anew.table(&ident("t")).await.unwrap();
    assert_eq!(found.metadata_location(), table.metadata_location());
    assert_eq!(found.row_count(), Some(120));
    assert_eq!(found.check().await.unwrap().problems, []);
    assert_eq!(anew.table(&other).await.unwrap().row_count().unwrap_or(0), 0);
    assert_eq!(anew.recover().await.unwrap(), []);
}

#[tokio::test]
async fn a_name_that_is_taken_is_not_taken_away() {
    let home = Home::new().await;
    home.warehouse.create_table(&ident("t"), report_spec()).await.unwrap();
    let anew = with_new_catalog(&home).await;
    // Its directory is taken, so its files are elsewhere.
    let own = anew.create_table(&ident("t"), report_spec()).await.unwrap();
    let error = anew.recover().await.unwrap_err();
    assert_eq!(error.sqlstate(), "42P07");
    assert_eq!(anew.table(&ident("t")).await.unwrap().location(), own.location());
}
