//! The catalog of a server that is none: three tables, and two who ask.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::util::display::array_value_to_string;
use async_trait::async_trait;
use datafusion::catalog::{
    CatalogProvider, MemoryCatalogProvider, MemorySchemaProvider, SchemaProvider, TableProvider,
};
use datafusion::datasource::empty::EmptyTable;
use datafusion::prelude::{SessionConfig, SessionContext};
use stoa_access::Policy;
use stoa_error::{Error, Result};
use uuid::Uuid;

use crate::relations::{RelationInfo, Relations};
use crate::server::{
    Asker, Running, Server, SessionSettings, Setting, TableDetails, TableInfo, Told,
};

/// The table `open`.
pub(crate) const OPEN: Uuid = Uuid::from_u128(1);
/// The table `hidden`, which has a column `secret`.
const HIDDEN: Uuid = Uuid::from_u128(2);

/// Who asks: for everything, or for what may be known of two tables that can be read (all of `open` but
/// the column `b`, nothing of `hidden`) and of one that cannot (`broken`).
#[derive(Debug)]
pub(crate) struct Fake {
    may_know_all: bool,
}

impl Fake {
    pub(crate) fn all() -> Self {
        Self { may_know_all: true }
    }

    fn some() -> Self {
        Self { may_know_all: false }
    }

    fn told(&self, uuid: Uuid, columns: &SchemaRef) -> Told {
        let Some(known) = self.known(columns) else { return Told::Nothing };
        Told::Details(TableDetails {
            uuid,
            columns: Arc::clone(columns),
            field_ids: (1..).map(Some).take(columns.fields().len()).collect(),
            known: Some(known),
            defaults: BTreeMap::new(),
            key: (0..columns.fields().len()).collect(),
            rows: Some(7),
            bytes: Some(1000),
            comment: Some("a table".to_owned()),
            definition: None,
        })
    }

    fn known(&self, columns: &Schema) -> Option<BTreeSet<usize>> {
        let all = columns.fields().iter().enumerate();
        if self.may_know_all {
            return Some(all.map(|(place, _)| place).collect());
        }
        let is_hidden = columns.field_with_name("secret").is_ok();
        let known = all.filter(|(_, field)| field.name() != "b").map(|(place, _)| place);
        (!is_hidden).then(|| known.collect())
    }
}

fn columns(names: &[&str]) -> SchemaRef {
    let field = |name: &&str| Field::new(*name, DataType::Int64, true);
    Arc::new(Schema::new(names.iter().map(field).collect::<Vec<_>>()))
}

#[async_trait]
impl Asker for Fake {
    fn may_know_all(&self) -> bool {
        self.may_know_all
    }

    async fn namespaces(&self) -> Result<Vec<String>> {
        Ok(vec!["public".to_owned()])
    }

    async fn tables(&self, namespace: &str, with_details: bool) -> Result<Vec<TableInfo>> {
        assert_eq!(namespace, "public");
        let broken = if self.may_know_all { Told::Name } else { Told::Nothing };
        let told = [
            ("broken", broken),
            ("hidden", self.told(HIDDEN, &columns(&["secret"]))),
            ("open", self.told(OPEN, &columns(&["a", "b"]))),
        ];
        let table = |(name, told): (&str, Told)| {
            let told = if with_details || !self.may_know_all { told } else { Told::Name };
            TableInfo { name: name.to_owned(), is_view: false, told }
        };
        Ok(told.into_iter().map(table).collect())
    }

    async fn policy(&self) -> Result<Arc<Policy>> {
        Ok(Arc::default())
    }

    fn running(&self) -> Vec<Running> {
        Vec::new()
    }

    fn settings(&self) -> Vec<Setting> {
        FakeSettings::default().rows()
    }

    fn known_columns(&self, found: &Arc<dyn TableProvider>) -> Option<BTreeSet<usize>> {
        self.known(&found.schema())
    }
}

/// One setting.
#[derive(Debug, Default)]
struct FakeSettings(Mutex<Option<String>>);

impl SessionSettings for FakeSettings {
    fn get(&self, name: &str) -> Result<String> {
        let value = self.0.lock().unwrap().clone();
        match name.eq_ignore_ascii_case("work_mem") {
            true => Ok(value.unwrap_or_else(|| "4MB".to_owned())),
            false => Err(Error::not_found(format!("no setting {name}")).with_sqlstate("42704")),
        }
    }

    fn set(&self, name: &str, value: Option<&str>, _is_local: bool) -> Result<String> {
        self.get(name)?;
        *self.0.lock().unwrap() = value.map(str::to_owned);
        self.get(name)
    }

    fn rows(&self) -> Vec<Setting> {
        vec![Setting {
            name: "work_mem",
            value: "4096".to_owned(),
            reset: "4096".to_owned(),
            default: "4096",
            unit: Some("kB"),
            docs: "Memory",
            context: "user",
            type_name: "integer",
            bounds: Some((64, i32::MAX)),
            choices: &[],
        }]
    }
}

/// Knows who asks from the configuration of the session.
#[derive(Debug)]
struct FakeServer;

impl Server for FakeServer {
    fn asker(&self, config: &SessionConfig) -> Result<Arc<dyn Asker>> {
        let asker = config.get_extension::<Fake>().map(|fake| fake as Arc<dyn Asker>);
        asker.ok_or_else(|| Error::internal("nobody asks"))
    }

    fn setting(&self, name: &str) -> Result<String> {
        match name {
            "work_mem" => Ok("4MB".to_owned()),
            other => Err(Error::not_found(format!("no setting {other}")).with_sqlstate("42704")),
        }
    }
}

fn context(asker: Option<Fake>) -> SessionContext {
    let mut config = SessionConfig::new()
        .with_default_catalog_and_schema("stoa", "public")
        .with_create_default_catalog_and_schema(false);
    if let Some(asker) = asker {
        config = config.with_extension(Arc::new(asker));
    }
    let context = SessionContext::new_with_config(config);
    let public = MemorySchemaProvider::new();
    for (name, names) in [("hidden", &["secret"][..]), ("open", &["a", "b"])] {
        let table = Arc::new(EmptyTable::new(columns(names)));
        public.register_table(name.to_owned(), table).unwrap();
    }
    let catalog = MemoryCatalogProvider::new();
    catalog.register_schema("public", Arc::new(public)).unwrap();
    context.register_catalog("stoa", Arc::new(catalog));
    let server: Arc<dyn Server> = Arc::new(FakeServer);
    crate::install(&context, "stoa", &server).unwrap();
    context
}

/// The first column of the answer.
async fn answer(context: &SessionContext, sql: &str) -> Vec<String> {
    let batches = context.sql(sql).await.unwrap().collect().await.unwrap();
    let mut texts = Vec::new();
    for batch in &batches {
        for row in 0..batch.num_rows() {
            texts.push(array_value_to_string(batch.column(0), row).unwrap());
        }
    }
    texts
}

#[tokio::test]
async fn tables_are_those_that_may_be_known() {
    let (all, some) = (context(Some(Fake::all())), context(Some(Fake::some())));
    for (sql, of_all, of_some) in [
        (
            "SELECT relname FROM pg_catalog.pg_class WHERE relnamespace = 2200 ORDER BY 1",
            &["broken", "hidden", "hidden_pkey", "open", "open_pkey"][..],
            &["open"][..],
        ),
        (
            "SELECT tablename FROM pg_catalog.pg_tables WHERE schemaname = 'public' ORDER BY 1",
            &["broken", "hidden", "open"],
            &["open"],
        ),
        (
            "SELECT attname FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_class c
             ON c.oid = a.attrelid WHERE c.relnamespace = 2200 AND c.relkind = 'r' ORDER BY 1",
            &["a", "b", "secret"],
            &["a"],
        ),
        (
            "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public' ORDER BY 1",
            &["hidden", "open"],
            &["open"],
        ),
        (
            "SELECT column_name FROM information_schema.columns WHERE table_schema = 'public'
             ORDER BY 1",
            &["a", "b", "secret"],
            &["a"],
        ),
        // Of a key that has a hidden column, nothing is told.
        (
            "SELECT column_name FROM information_schema.key_column_usage ORDER BY 1",
            &["a", "b", "secret"],
            &[],
        ),
        (
            "SELECT constraint_name FROM information_schema.table_constraints ORDER BY 1",
            &["hidden_pkey", "open_pkey"],
            &[],
        ),
        ("SELECT trigger_name FROM information_schema.triggers", &[], &[]),
        ("SELECT datname FROM pg_catalog.pg_database", &["stoa"], &["stoa"]),
    ] {
        assert_eq!(answer(&all, sql).await, of_all, "{sql}");
        assert_eq!(answer(&some, sql).await, of_some, "{sql}");
    }
}

#[tokio::test]
async fn a_plan_of_nobody_is_told_nothing() {
    let nobody = context(None);
    for sql in ["SELECT * FROM pg_catalog.pg_class", "SELECT * FROM information_schema.tables"] {
        let error = nobody.sql(sql).await.unwrap().collect().await.unwrap_err();
        assert!(error.to_string().contains("nobody asks"), "{error}");
    }
}

#[tokio::test]
async fn settings_are_those_of_the_session() {
    let context = context(Some(Fake::some()));
    let settings: Arc<dyn SessionSettings> = Arc::new(FakeSettings::default());
    crate::set_settings(&mut context.state_ref().write(), &settings).unwrap();
    assert_eq!(answer(&context, "SELECT name FROM pg_catalog.pg_settings").await, ["work_mem"]);
    assert_eq!(answer(&context, "SELECT current_setting('Work_Mem')").await, ["4MB"]);
    assert_eq!(answer(&context, "SELECT current_setting('none', true) IS NULL").await, ["true"]);
    let set = "SELECT set_config('work_mem', '8MB', false)";
    assert_eq!(answer(&context, set).await, ["8MB"]);
    assert_eq!(answer(&context, "SELECT current_setting('work_mem')").await, ["8MB"]);
    let missing = context.sql("SELECT set_config('none', '1', false)").await.unwrap();
    assert!(missing.collect().await.is_err());
}

#[tokio::test]
async fn oids_do_not_depend_on_who_asks() {
    let oid = |all: &Relations| {
        let is_open = |one: &&RelationInfo| one.name == "open";
        all.relations.iter().find(is_open).map(|relation| relation.oid)
    };
    let all = Relations::read(&Fake::all(), &[], true).await.unwrap();
    let named = Relations::read(&Fake::all(), &[], false).await.unwrap();
    let some = Relations::read(&Fake::some(), &[], false).await.unwrap();
    assert_eq!((all.relations.len(), named.relations.len(), some.relations.len()), (5, 3, 1));
    assert!(oid(&all).is_some());
    assert_eq!(oid(&all), oid(&named));
    assert_eq!(oid(&all), oid(&some));
}
