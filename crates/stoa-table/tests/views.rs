//! Views in a warehouse: made, replaced, altered, renamed, dropped; by several processes, by dying ones, and
//! beside other engines.
#![allow(clippy::unwrap_used)]

mod common;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use arrow_schema::{DataType, Field, Schema, SchemaRef};
use common::{Home, ident, report_spec};
use serde_json::{Value, json};
use stoa_table::{
    FIELD_ID_KEY, TableIdent, View, ViewChange, ViewSpec, ViewSql, Warehouse, WarehouseOptions,
};

/// Columns of these names, of type bigint.
fn columns(names: &[&str]) -> SchemaRef {
    let field = |name: &&str| Field::new(*name, DataType::Int64, true);
    Arc::new(Schema::new(names.iter().map(field).collect::<Vec<_>>()))
}

fn spec(sql: &str) -> ViewSpec {
    ViewSpec::new(columns(&["a", "b"]), sql, "public")
}

fn field_ids(view: &View) -> Vec<(String, String)> {
    let schema = view.schema().unwrap();
    let id = |field: &Arc<Field>| (field.name().clone(), field.metadata()[FIELD_ID_KEY].clone());
    schema.fields().iter().map(id).collect()
}

fn ids(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(name, id)| ((*name).to_owned(), (*id).to_owned())).collect()
}

fn file_of(location: &str) -> PathBuf {
    location.strip_prefix("file://").unwrap().into()
}

fn json_of(view: &View) -> Value {
    serde_json::from_slice(&std::fs::read(file_of(view.metadata_location())).unwrap()).unwrap()
}

/// The metadata files of a view, by name.
fn files_of(view: &View) -> Vec<String> {
    let Ok(files) = std::fs::read_dir(file_of(view.location()).join("metadata")) else {
        return Vec::new();
    };
    let mut names: Vec<_> =
        files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    names.sort_unstable();
    names
}

#[tokio::test]
async fn a_view_lives_from_create_to_drop() {
    let home = Home::new().await;
    let (warehouse, other) = (&home.warehouse, home.reopen().await);
    let mut first = spec("SELECT a, b FROM t");
    first.properties.insert("comment".to_owned(), "two columns".to_owned());
    let made = warehouse.create_view(&ident("v"), &first).await.unwrap();
    assert!(made.metadata_location().starts_with(&format!("{}/metadata/00000-", made.location())));
    assert!(made.metadata_location().ends_with(".metadata.json"));

    let seen = other.view(&ident("v")).await.unwrap();
    assert_eq!((seen.uuid(), seen.version_id()), (made.uuid(), 1));
    assert_eq!(seen.sql().unwrap().sql, "SELECT a, b FROM t");
    assert_eq!((seen.default_namespace().as_str(), seen.default_catalog()), ("public", None));
    assert_eq!(seen.comment(), Some("two columns"));
    assert!(!seen.is_security_invoker().unwrap());
    assert_eq!(field_ids(&seen), ids(&[("a", "1"), ("b", "2")]));
    assert_eq!(other.views("public").await.unwrap(), [ident("v")]);
    assert_eq!(other.tables("public").await.unwrap(), []);

    let next = ViewSpec::new(columns(&["a", "c", "b"]), "SELECT 1, 2, 3", "public");
    let replaced = other.replace_view(&seen, &next).await.unwrap();
    assert_eq!(
        (replaced.uuid(), replaced.version_id(), replaced.comment()),
        (made.uuid(), 2, None)
    );
    assert_eq!(field_ids(&replaced), ids(&[("a", "1"), ("c", "3"), ("b", "2")]));
    assert!(replaced.timestamp_ms() >= made.timestamp_ms());
    // The version in hand stays as it was; the next look finds the new one.
    assert_eq!(seen.sql().unwrap().sql, "SELECT a, b FROM t");
    let lost = warehouse.replace_view(&made, &spec("SELECT 4")).await.unwrap_err();
    assert_eq!(lost.sqlstate(), "40001");
    assert_eq!(files_of(&replaced).len(), 2, "the loser's file is gone");

    warehouse.rename_only_view(&made, &ident("w")).await.unwrap();
    let renamed = warehouse.view(&ident("w")).await.unwrap();
    assert_eq!(renamed.uuid(), made.uuid());
    assert_eq!(warehouse.view(&ident("v")).await.unwrap_err().sqlstate(), "42P01");
    // The plain directory is taken.
    let again = warehouse.create_view(&ident("v"), &first).await.unwrap();
    assert_ne!(again.location(), made.location());
    // `made` is no more under its name.
    assert_eq!(warehouse.drop_only_view(&made).await.unwrap_err().sqlstate(), "42P01");
    warehouse.drop_only_view(&again).await.unwrap();
    warehouse.drop_view(&ident("w")).await.unwrap();
    assert!(files_of(&made).is_empty() && files_of(&again).is_empty());
    assert_eq!(warehouse.views("public").await.unwrap(), []);
}

#[tokio::test]
async fn the_file_is_as_iceberg_specifies_it() {
    let home = Home::new().await;
    home.warehouse.create_namespace("a.b", &BTreeMap::new()).await.unwrap();
    let comment = [("comment".to_owned(), "first".to_owned())].into();
    let field = Field::new("n", DataType::Int64, false).with_metadata(comment);
    let fields = vec![field, Field::new("day", DataType::Date32, true)];
    let mut spec = ViewSpec::new(Arc::new(Schema::new(fields)), "SELECT 1", "a.b");
    spec.properties.insert("security_invoker".to_owned(), "on".to_owned());
    let view = home.warehouse.create_view(&TableIdent::new("a.b", "v"), &spec).await.unwrap();
    assert!(view.is_security_invoker().unwrap());
    assert_eq!(view.default_namespace(), "a.b");
    let time = view.timestamp_ms();
    let expected = json!({
        "view-uuid": view.uuid(),
        "format-version": 1,
        "location": view.location(),
        "properties": {"security_invoker": "on"},
        "schemas": [{"type": "struct", "schema-id": 0, "fields": [
            {"id": 1, "name": "n", "required": true, "type": "long", "doc": "first"},
            {"id": 2, "name": "day", "required": false, "type": "date"},
        ]}],
        "current-version-id": 1,
        "versions": [{
            "version-id": 1,
            "timestamp-ms": time,
            "schema-id": 0,
            "summary": {
                "engine-name": "stoa",
                "engine-version": env!("CARGO_PKG_VERSION"),
                "stoa-last-column-id": "2",
            },
            "default-namespace": ["a", "b"],
            "representations": [{"type": "sql", "sql": "SELECT 1", "dialect": "stoa"}],
        }],
        "version-log": [{"timestamp-ms": time, "version-id": 1}],
    });
    assert_eq!(json_of(&view), expected);
}

#[tokio::test]
async fn what_cannot_be_a_view_is_refused() {
    let home = Home::new().await;
    let check = async |change: fn(&mut ViewSpec), code: &str| {
        let mut spec = spec("SELECT 1, 2");
        change(&mut spec);
        let error = home.warehouse.create_view(&ident("v"), &spec).await.unwrap_err();
        assert_eq!(error.sqlstate(), code, "{error:?}");
        assert!(error.message().contains("public.v"), "{error:?}");
    };
    check(|spec| spec.schema = columns(&[]), "42P16").await;
    check(|spec| spec.schema = columns(&["a", "a"]), "42701").await;
    check(|spec| spec.sql.clear(), "22023").await;
    check(|spec| spec.sql[0].sql = " ".to_owned(), "22023").await;
    check(|spec| spec.sql[0].dialect = String::new(), "22023").await;
    check(|spec| spec.sql.push(ViewSql { dialect: "STOA".into(), sql: "x".into() }), "22023").await;
    check(|spec| spec.default_namespace = String::new(), "22023").await;
    for (key, value) in [
        ("security_invoker", "perhaps"),
        ("version.history.num-entries", "0"),
        ("version.history.num-entries", "many"),
    ] {
        let mut spec = spec("SELECT 1, 2");
        spec.properties.insert(key.to_owned(), value.to_owned());
        let error = home.warehouse.create_view(&ident("v"), &spec).await.unwrap_err();
        assert_eq!(error.sqlstate(), "22023");
        assert!(error.message().contains(key) && error.message().contains(value), "{error:?}");
    }
    let code = async |name: &TableIdent| {
        home.warehouse.create_view(name, &spec("SELECT 1, 2")).await.unwrap_err().sqlstate()
    };
    assert_eq!(code(&ident("a/b")).await, "42602");
    assert_eq!(code(&TableIdent::new("nowhere", "v")).await, "3F000");
    let huge = spec(&"x".repeat(17 << 20));
    let error = home.warehouse.create_view(&ident("v"), &huge).await.unwrap_err();
    assert_eq!(error.sqlstate(), "54000");
    assert!(!home.directory.path().join("public").exists(), "nothing was written");
}

#[tokio::test]
async fn a_name_is_a_table_or_a_view() {
    let home = Home::new().await;
    let warehouse = &home.warehouse;
    let table = warehouse.create_table(&ident("t"), report_spec()).await.unwrap();
    let view = warehouse.create_view(&ident("v"), &spec("SELECT 1, 2")).await.unwrap();
    let check = |result: Result<(), stoa_error::Error>, code: &str, words: &str| {
        let error = result.unwrap_err();
        assert_eq!((error.sqlstate(), error.message()), (code, words));
    };
    let (a_view, a_table) = ("public.v is a view", "public.t is a table");
    let created = warehouse.create_table(&ident("v"), report_spec()).await.map(|_| ());
    check(created, "42P07", "view public.v exists already");
    let created = warehouse.create_view(&ident("t"), &spec("SELECT 1, 2")).await.map(|_| ());
    check(created, "42P07", "table public.t exists already");
    check(warehouse.table(&ident("v")).await.map(|_| ()), "42809", a_view);
    check(warehouse.view(&ident("t")).await.map(|_| ()), "42809", a_table);
    check(warehouse.drop_table(&ident("v"), true).await, "42809", a_view);
    check(warehouse.drop_view(&ident("t")).await, "42809", a_table);
    check(warehouse.rename_table(&ident("v"), &ident("x")).await, "42809", a_view);
    check(warehouse.rename_view(&ident("t"), &ident("x")).await, "42809", a_table);
    check(
        warehouse.rename_view(&ident("v"), &ident("t")).await,
        "42P07",
        "table public.t exists already",
    );

    // Behind the back of who holds them.
    warehouse.drop_table(&ident("t"), true).await.unwrap();
    warehouse.rename_view(&ident("v"), &ident("t")).await.unwrap();
    check(table.reload().await.map(|_| ()), "42809", "public.t is a view");
    check(warehouse.drop_only(&table, true).await, "42809", "public.t is a view");
    warehouse.create_table(&ident("v"), report_spec()).await.unwrap();
    let replaced = warehouse.replace_view(&view, &spec("SELECT 3, 4")).await.map(|_| ());
    check(replaced, "42809", "public.v is a table");
    assert_eq!(files_of(&view).len(), 1, "the file of the refused change is gone");
}

#[tokio::test]
async fn changes_that_leave_the_query_leave_the_version_or_its_text() {
    let home = Home::new().await;
    let warehouse = &home.warehouse;
    let view = warehouse.create_view(&ident("v"), &spec("SELECT 1, 2")).await.unwrap();
    let set = |key: &str, value: Option<&str>| {
        BTreeMap::from([(key.to_owned(), value.map(str::to_owned))])
    };
    let change = ViewChange::Properties(set("comment", Some("new")));
    let view = warehouse.alter_view(&view, &change).await.unwrap();
    assert_eq!((view.comment(), view.version_id()), (Some("new"), 1));
    let change = ViewChange::Properties(set("comment", None));
    let view = warehouse.alter_view(&view, &change).await.unwrap();
    assert_eq!((view.comment(), view.version_id()), (None, 1));
    let change = ViewChange::Properties(set("security_invoker", Some("7")));
    assert_eq!(warehouse.alter_view(&view, &change).await.unwrap_err().sqlstate(), "22023");

    let change = ViewChange::ColumnComments(set("b", Some("the second")));
    let view = warehouse.alter_view(&view, &change).await.unwrap();
    assert_eq!((view.version_id(), view.sql().unwrap().sql.as_str()), (2, "SELECT 1, 2"));
    let comment = |view: &View| view.schema().unwrap().field(1).metadata().get("comment").cloned();
    assert_eq!(comment(&view).as_deref(), Some("the second"));
    let change = ViewChange::ColumnComments(set("c", Some("none")));
    assert_eq!(warehouse.alter_view(&view, &change).await.unwrap_err().sqlstate(), "42703");

    // Comments of columns stay with a replacement, and the same definition is no new version.
    let view = warehouse.replace_view(&view, &spec("SELECT 3, 4")).await.unwrap();
    assert_eq!((view.version_id(), comment(&view).as_deref()), (3, Some("the second")));
    let view = warehouse.replace_view(&view, &spec("SELECT 3, 4")).await.unwrap();
    assert_eq!(view.version_id(), 3);
    let change = ViewChange::ColumnComments(set("b", None));
    let view = warehouse.alter_view(&view, &change).await.unwrap();
    assert_eq!((view.version_id(), comment(&view)), (4, None));
}

/// Versions and files stay few, and an id that a column had is no other column's later.
#[tokio::test]
async fn the_past_is_bounded() {
    let home = Home::new().await;
    let mut view = home.warehouse.create_view(&ident("v"), &spec("SELECT 0, 0")).await.unwrap();
    for round in 1..=40 {
        let column = format!("c{round}");
        let columns = columns(&["a", &column]);
        let next = ViewSpec::new(columns, format!("SELECT {round}, 0"), "public");
        view = home.warehouse.replace_view(&view, &next).await.unwrap();
        assert_eq!(field_ids(&view)[1].1, (round + 2).to_string());
        // A replacement with half of the columns: the other id must not come again.
        let fewer = ViewSpec::new(self::columns(&["a"]), format!("SELECT {round}"), "public");
        view = home.warehouse.replace_view(&view, &fewer).await.unwrap();
    }
    let json = json_of(&view);
    let length = |key: &str| json[key].as_array().unwrap().len();
    assert_eq!((length("versions"), length("version-log"), length("schemas")), (10, 10, 6));
    assert_eq!(json["current-version-id"], 81);
    assert_eq!(files_of(&view).len(), 21);
    assert!(files_of(&view)[20].starts_with("00080-"));

    let mut next = spec("SELECT 1, 2");
    next.properties.insert("version.history.num-entries".to_owned(), "2".to_owned());
    let view = home.warehouse.replace_view(&view, &next).await.unwrap();
    assert_eq!(json_of(&view)["versions"].as_array().unwrap().len(), 2);
    // The file is bounded as well: large versions push out older ones.
    let large = spec(&format!("SELECT '{}', 2", "x".repeat(9 << 20)));
    let view = home.warehouse.replace_view(&view, &large).await.unwrap();
    let view = home.warehouse.replace_view(&view, &spec("SELECT 5, 6")).await.unwrap();
    let large = spec(&format!("SELECT '{}', 2", "y".repeat(9 << 20)));
    let view = home.warehouse.replace_view(&view, &large).await.unwrap();
    let versions: Vec<_> = json_of(&view)["versions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|version| version["version-id"].as_i64().unwrap())
        .collect();
    assert_eq!(versions, [84, 85]);
    assert_eq!(home.reopen().await.view(&ident("v")).await.unwrap().version_id(), 85);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_two_openers_at_one_name_one_wins() {
    let home = Home::new().await;
    let (one, two) = (home.warehouse.clone(), home.reopen().await);
    for round in 0..10 {
        let name = ident(&format!("n{round}"));
        let spec = spec("SELECT 1, 2");
        let (table, view, view_too) = tokio::join!(
            one.create_table(&name, report_spec()),
            two.create_view(&name, &spec),
            one.create_view(&name, &spec),
        );
        let done = [table.map(|_| ()), view.map(|_| ()), view_too.map(|_| ())];
        let codes: Vec<_> =
            done.into_iter().filter_map(Result::err).map(|error| error.sqlstate()).collect();
        assert_eq!(codes, ["42P07", "42P07"]);
    }
    let (tables, views) = (one.tables("public").await.unwrap(), one.views("public").await.unwrap());
    assert_eq!(tables.len() + views.len(), 10);

    let mut view = one.create_view(&ident("v"), &spec("SELECT 0, 0")).await.unwrap();
    for round in 0..10 {
        let (a, b) = (spec(&format!("SELECT {round}, 1")), spec(&format!("SELECT {round}, 2")));
        let (a, b) = tokio::join!(one.replace_view(&view, &a), two.replace_view(&view, &b));
        let (won, lost) = match (a, b) {
            (Ok(won), Err(lost)) | (Err(lost), Ok(won)) => (won, lost),
            both => panic!("{both:?}"),
        };
        assert_eq!(lost.sqlstate(), "40001");
        let now = one.view(&ident("v")).await.unwrap();
        assert_eq!(now.sql().unwrap(), won.sql().unwrap());
        view = won;
    }
    assert_eq!(files_of(&view).len(), 11);
}

/// A view as Spark writes it: packed, in a dialect of its own, with a catalog.
fn spark_view(home: &Home, name: &str, dialects: &[&str]) -> (String, Value) {
    let directory = home.directory.path().join("public").join(name);
    std::fs::create_dir_all(directory.join("metadata")).unwrap();
    let representation = |dialect: &&str| json!({"type": "sql", "sql": format!("SELECT '{dialect}'"), "dialect": dialect});
    let mut representations: Vec<Value> = dialects.iter().map(representation).collect();
    representations.push(json!({"type": "plan", "bytes": [1, 2]}));
    let json = json!({
        "view-uuid": "fa6506c3-7681-40c8-86dc-e36561f83385",
        "format-version": 1,
        "location": format!("file:{}/", directory.display()),
        "properties": {"spark.query-column-names": "n"},
        "schemas": [{"type": "struct", "schema-id": 3, "fields": [
            {"id": 0, "name": "n", "required": false, "type": "string"},
        ]}],
        "current-version-id": 7,
        "versions": [{
            "version-id": 7, "timestamp-ms": 1573518431292_i64, "schema-id": 3, "summary": {},
            "default-catalog": "prod", "default-namespace": ["db"],
            "representations": representations,
        }],
        "version-log": [{"timestamp-ms": 1573518431292_i64, "version-id": 7}],
    });
    let file = directory.join("metadata/00004-7a.gz.metadata.json");
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut packed, json.to_string().as_bytes()).unwrap();
    std::fs::write(&file, packed.finish().unwrap()).unwrap();
    (format!("file:{}", file.display()), json)
}

#[tokio::test]
async fn a_view_of_another_engine_is_read_and_kept() {
    let home = Home::new().await;
    let (location, before) = spark_view(&home, "v", &["Spark", "trino"]);
    home.warehouse.catalog().create_view(&ident("v"), &location).await.unwrap();
    let view = home.warehouse.view(&ident("v")).await.unwrap();
    assert_eq!(view.default_catalog(), Some("prod"));
    assert_eq!(view.sql_in("spark").unwrap().sql, "SELECT 'Spark'");
    let error = view.sql().unwrap_err();
    assert_eq!(
        (error.sqlstate(), error.detail()),
        ("0A000", Some("it has its query for Spark, trino"))
    );

    // What does not touch the query keeps all of it.
    let comment = BTreeMap::from([("comment".to_owned(), Some("x".to_owned()))]);
    let view = home.warehouse.alter_view(&view, &ViewChange::Properties(comment)).await.unwrap();
    assert!(view.metadata_location().contains("/public/v/metadata/00005-"));
    let mut expected = before;
    expected["properties"]["comment"] = json!("x");
    let after = std::fs::read(view.metadata_location().strip_prefix("file:").unwrap()).unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&after).unwrap(), expected);

    // A query that would be lost is not.
    let mut next = ViewSpec::new(columns(&["n"]), "SELECT 1", "public");
    let error = home.warehouse.replace_view(&view, &next).await.unwrap_err();
    assert_eq!(error.sqlstate(), "2BP01");
    assert!(error.message().contains("Spark, trino"), "{error:?}");
    let key = "replace.drop-dialect.allowed".to_owned();
    next.properties.insert(key, "true".to_owned());
    let view = home.warehouse.replace_view(&view, &next).await.unwrap();
    assert_eq!((view.version_id(), field_ids(&view)), (8, ids(&[("n", "0")])));
    assert_eq!(view.sql().unwrap().sql, "SELECT 1");
    home.warehouse.drop_view(&ident("v")).await.unwrap();
    let left = std::fs::read_dir(home.directory.path().join("public/v/metadata"));
    assert!(left.map_or(true, |mut left| left.next().is_none()));
}

#[tokio::test]
async fn postgresql_is_read_and_stoa_first() {
    let home = Home::new().await;
    let (location, _) = spark_view(&home, "v", &["spark", "PostgreSQL"]);
    home.warehouse.catalog().create_view(&ident("v"), &location).await.unwrap();
    assert_eq!(
        home.warehouse.view(&ident("v")).await.unwrap().sql().unwrap().sql,
        "SELECT 'PostgreSQL'"
    );
    let (location, _) = spark_view(&home, "w", &["postgresql", "stoa"]);
    home.warehouse.catalog().create_view(&ident("w"), &location).await.unwrap();
    assert_eq!(home.warehouse.view(&ident("w")).await.unwrap().sql().unwrap().sql, "SELECT 'stoa'");
}

#[tokio::test]
async fn damage_names_the_file_and_the_view_can_be_dropped() {
    let home = Home::new().await;
    let view = home.warehouse.create_view(&ident("v"), &spec("SELECT 1, 2")).await.unwrap();
    let file = file_of(view.metadata_location());
    let whole = std::fs::read_to_string(&file).unwrap();
    let bomb = {
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        std::io::Write::write_all(&mut packed, &vec![b' '; 64 << 20]).unwrap();
        packed.finish().unwrap()
    };
    let cases: [(Vec<u8>, &str); 6] = [
        (whole.as_bytes()[..whole.len() / 2].to_vec(), "XX001"),
        (whole.replace("\"format-version\":1", "\"format-version\":2").into_bytes(), "0A000"),
        (b"\x1f\x8bno".to_vec(), "XX001"),
        (bomb, "54000"),
        (vec![b' '; 17 << 20], "54000"),
        ("[".repeat(100_000).into_bytes(), "XX001"),
    ];
    for (bytes, code) in cases {
        std::fs::write(&file, bytes).unwrap();
        let error = home.reopen().await.view(&ident("v")).await.unwrap_err();
        assert_eq!(error.sqlstate(), code, "{error:?}");
        let name = file.file_name().unwrap().to_str().unwrap();
        assert!(
            error.message().contains(name) && error.message().contains("view public.v"),
            "{error:?}"
        );
    }
    std::fs::remove_file(&file).unwrap();
    let warehouse = home.reopen().await;
    let error = warehouse.view(&ident("v")).await.unwrap_err();
    assert!(error.message().contains("missing"), "{error:?}");
    // A table's file is no view's.
    let table = warehouse.create_table(&ident("t"), report_spec()).await.unwrap();
    warehouse
        .catalog()
        .swap_view(&ident("v"), view.metadata_location(), table.metadata_location())
        .await
        .unwrap();
    assert_eq!(warehouse.view(&ident("v")).await.unwrap_err().sqlstate(), "XX001");
    warehouse.drop_view(&ident("v")).await.unwrap();
    assert_eq!(warehouse.views("public").await.unwrap(), []);
    assert!(table.reload().await.is_ok());
}

/// Spark renames a table and makes a view of its old name: the view is in the table's directory.
#[tokio::test]
async fn cleaning_up_leaves_views_alone() {
    let home = Home::new().await;
    let warehouse = &home.warehouse;
    let alone = warehouse.create_view(&ident("alone"), &spec("SELECT 1, 2")).await.unwrap();
    warehouse.create_table(&ident("v"), report_spec()).await.unwrap();
    warehouse.rename_table(&ident("v"), &ident("t")).await.unwrap();
    let (location, _) = spark_view(&home, "v", &["stoa"]);
    warehouse.catalog().create_view(&ident("v"), &location).await.unwrap();
    let table = warehouse.table(&ident("t")).await.unwrap();
    assert_eq!(table.check().await.unwrap().orphans, []);
    table.remove_orphans(Duration::ZERO).await.unwrap();
    assert_eq!(warehouse.remove_abandoned(Duration::ZERO).await.unwrap().files, 0);
    warehouse.drop_table(&ident("t"), true).await.unwrap();
    for view in [ident("v"), ident("alone")] {
        home.reopen().await.view(&view).await.unwrap();
    }
    assert_eq!(files_of(&alone).len(), 1);

    // And dropping the view leaves a table alone.
    let table = warehouse.create_table(&ident("u"), report_spec()).await.unwrap();
    let (location, _) = spark_view(&home, "u", &["stoa"]);
    warehouse.catalog().create_view(&ident("w"), &location).await.unwrap();
    warehouse.drop_view(&ident("w")).await.unwrap();
    assert_eq!(table.check().await.unwrap().problems, []);
    assert!(file_of(table.metadata_location()).exists());
    assert!(!file_of(&location.replace("file:", "file://")).exists());
}

#[tokio::test]
async fn views_come_back_with_a_new_catalog() {
    let home = Home::new().await;
    let view = home.warehouse.create_view(&ident("v"), &spec("SELECT 1, 2")).await.unwrap();
    let view = home.warehouse.replace_view(&view, &spec("SELECT 3, 4")).await.unwrap();
    home.warehouse.create_table(&ident("t"), report_spec()).await.unwrap();
    let catalog = Some(home.directory.path().join("elsewhere/new.db"));
    let url = home.warehouse.url().clone();
    let catalog = catalog.map(Into::into);
    let options = WarehouseOptions { catalog, new_catalog: true, ..WarehouseOptions::new(url) };
    let anew = Warehouse::open_with(&options).await.unwrap();
    assert_eq!(anew.recover().await.unwrap(), [ident("t"), ident("v")]);
    assert_eq!(anew.tables("public").await.unwrap(), [ident("t")]);
    let found = anew.view(&ident("v")).await.unwrap();
    assert_eq!(found.metadata_location(), view.metadata_location());
    assert_eq!(anew.recover().await.unwrap(), []);
}

/// What a helper process is told: `WAREHOUSE DEED`, one per line.
const HELPER: &str = "STOA_TEST_HELPER";

/// Points that it is told to die at.
const FAILPOINTS: &str = "STOA_FAILPOINTS";

/// Not a test but the process that the next test starts.
#[tokio::test]
#[allow(clippy::disallowed_methods)]
async fn helper() {
    let Ok(orders) = std::env::var(HELPER) else { return };
    stoa_env::failpoint::arm_process(&std::env::var(FAILPOINTS).unwrap()).unwrap();
    let (directory, deed) = orders.split_once('\n').unwrap();
    let warehouse = common::open(std::path::Path::new(directory)).await;
    let new = spec("SELECT 3, 4");
    match deed {
        "create" => drop(warehouse.create_view(&ident("new"), &new).await.unwrap()),
        _ => {
            let old = warehouse.view(&ident("v")).await.unwrap();
            warehouse.replace_view(&old, &new).await.unwrap();
        }
    }
}

#[tokio::test]
async fn views_that_die() {
    for (point, is_new) in [("commit.metadata_written", false), ("commit.swapped", true)] {
        let home = Home::new().await;
        let warehouse = &home.warehouse;
        let old = warehouse.create_view(&ident("v"), &spec("SELECT 1, 2")).await.unwrap();
        for deed in ["create", "replace"] {
            let status = Command::new(std::env::current_exe().unwrap())
                .args(["helper", "--exact", "--nocapture"])
                .env(HELPER, format!("{}\n{deed}", home.directory.path().to_str().unwrap()))
                .env(FAILPOINTS, format!("{point}=abort"))
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status();
            assert!(!status.unwrap().success(), "{deed} did not die at {point}");
        }
        let view = warehouse.view(&ident("v")).await.unwrap();
        let expected = if is_new { "SELECT 3, 4" } else { "SELECT 1, 2" };
        assert_eq!(view.sql().unwrap().sql, expected, "{point}");
        match warehouse.view(&ident("new")).await {
            Ok(new) => assert!(is_new && new.sql().unwrap().sql == "SELECT 3, 4", "{point}"),
            Err(error) => assert_eq!((error.sqlstate(), is_new), ("42P01", false), "{point}"),
        }
        // Both go on.
        let view = warehouse.replace_view(&view, &spec("SELECT 5, 6")).await.unwrap();
        assert_eq!(view.uuid(), old.uuid());
        let again = warehouse.create_view(&ident("new"), &spec("SELECT 5, 6")).await;
        assert_eq!(again.map_err(|error| error.sqlstate()).err(), is_new.then_some("42P07"));
        warehouse.drop_view(&ident("v")).await.unwrap();
        assert!(files_of(&view).is_empty(), "the file of the dead is gone, too");
    }
}
