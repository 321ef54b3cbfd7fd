//! Who may see tables, of a server that is none.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use datafusion::catalog::{CatalogProvider, MemoryCatalogProvider};
use datafusion::prelude::{SessionConfig, SessionContext};
use stoa_error::{Error, Result};
use stoa_figures::{
    Cache, CatalogFigures, ClusterEvent, ClusterFigures, Daemon, Executors, Figure, Grant, Group,
    IngestTable, Latency, LatencyPath, Log, Machine, Maintenance, Pool, Query, QueryShape, Rate,
    Refusals, Role, Sample, Shape, Store, Table, Totals, Unit, declarations,
};
use stoa_semantics::errors::from_datafusion;

use crate::server::{Figures, Server};
use crate::tables::{SYSTEM, SystemTable, all};
use crate::{SystemSchema, rows};

const NUMBERS: &[Figure<u64>] =
    &[Figure::gauge("number", Unit::Of("things"), "A number.", |number: &u64| *number)];

/// Says nothing of who may see it.
static SILENT: Group<u64> =
    Group::new("silent", "Silent", "A table for this test.", Shape::Many, NUMBERS).table();

/// Times that the rows of [`SILENT`] were made.
static MADE: AtomicUsize = AtomicUsize::new(0);

/// Figures for one role, which may be a superuser. There is a query of each of two roles.
#[derive(Clone, Debug)]
struct Fake {
    role: &'static str,
    is_superuser: bool,
}

#[async_trait]
impl Figures for Fake {
    fn role(&self) -> &str {
        self.role
    }

    fn is_superuser(&self) -> bool {
        self.is_superuser
    }

    fn cache(&self) -> Cache {
        Cache::default()
    }

    fn executors(&self) -> Executors {
        Executors::default()
    }

    async fn grants(&self) -> Result<Vec<Grant>> {
        Ok(vec![Grant::default()])
    }

    async fn ingest(&self) -> Result<Vec<IngestTable>> {
        Ok(vec![IngestTable::default()])
    }

    fn history(&self) -> Vec<Sample> {
        vec![Sample::default()]
    }

    fn latency(&self) -> Latency {
        Latency::default()
    }

    fn latency_paths(&self) -> Vec<LatencyPath> {
        vec![LatencyPath::default()]
    }

    fn machine(&self) -> Machine {
        Machine::default()
    }

    fn rate(&self) -> Rate {
        Rate::default()
    }

    fn log(&self) -> Option<Log> {
        Some(Log::default())
    }

    fn maintenance(&self) -> Option<Maintenance> {
        Some(Maintenance::default())
    }

    fn cluster(&self) -> Option<ClusterFigures> {
        None
    }

    fn cluster_events(&self) -> Vec<ClusterEvent> {
        Vec::new()
    }

    fn daemons(&self) -> Vec<Daemon> {
        Vec::new()
    }

    fn catalog(&self) -> CatalogFigures {
        CatalogFigures::default()
    }

    fn pools(&self) -> Vec<Pool> {
        vec![Pool::default()]
    }

    fn queries(&self) -> Vec<Query> {
        let of = |user: &str| Query { user: user.to_owned(), ..Query::default() };
        vec![of("ann"), of("ben")]
    }

    fn query_shapes(&self) -> Vec<QueryShape> {
        vec![QueryShape::default()]
    }

    fn refusals(&self) -> Refusals {
        Refusals::default()
    }

    async fn resource_plans(&self) -> Result<stoa_figures::ResourcePlanRows> {
        Ok(stoa_figures::ResourcePlanRows::default())
    }

    fn roles(&self) -> Vec<Role> {
        vec![Role::default()]
    }

    fn stores(&self) -> Vec<Store> {
        vec![Store::default()]
    }

    async fn tables(&self) -> Result<Vec<Table>> {
        Ok(vec![Table::default()])
    }

    fn totals(&self) -> Totals {
        Totals::default()
    }
}

/// Knows who asks from the configuration of the session.
struct FakeServer;

impl Server for FakeServer {
    fn figures(&self, config: &SessionConfig) -> Result<Arc<dyn Figures>> {
        let figures = config.get_extension::<Fake>().map(|fake| fake as Arc<dyn Figures>);
        figures.ok_or_else(|| Error::internal("nobody asks"))
    }
}

/// The session of a role, with the table `system.silent` of three rows.
fn session(role: &'static str, is_superuser: bool) -> SessionContext {
    let config = SessionConfig::new()
        .with_default_catalog_and_schema("stoa", SYSTEM)
        .with_create_default_catalog_and_schema(false)
        .with_extension(Arc::new(Fake { role, is_superuser }));
    let context = SessionContext::new_with_config(config);
    let mut tables = all();
    tables.push(SystemTable::of(&SILENT, |_| {
        MADE.fetch_add(1, Ordering::Relaxed);
        vec![1, 2, 3]
    }));
    let schema = SystemSchema::with_tables(Arc::new(FakeServer), tables);
    let catalog = MemoryCatalogProvider::new();
    catalog.register_schema(SYSTEM, Arc::new(schema)).unwrap();
    context.register_catalog("stoa", Arc::new(catalog));
    context
}

/// Rows of the answer, or the error's SQLSTATE.
async fn rows_of(session: &SessionContext, sql: &str) -> Result<usize, &'static str> {
    let code = |error| from_datafusion(error).sqlstate();
    let batches = session.sql(sql).await.map_err(code)?.collect().await.map_err(code)?;
    Ok(batches.iter().map(|batch| batch.num_rows()).sum())
}

#[tokio::test]
async fn a_table_that_does_not_say_who_may_see_it_is_closed() {
    let (ann, root) = (session("ann", false), session("root", true));
    for sql in [
        "SELECT * FROM system.silent",
        "SELECT count(*) FROM system.silent",
        "SELECT 1 FROM system.executors, system.silent",
        "SELECT * FROM system.query_shapes",
    ] {
        assert_eq!(rows_of(&ann, sql).await, Err("42501"), "{sql}");
    }
    assert_eq!(MADE.load(Ordering::Relaxed), 0, "rows that nobody may see are not made");
    assert_eq!(rows_of(&ann, "SELECT * FROM system.executors").await, Ok(1));
    assert_eq!(rows_of(&ann, "SELECT * FROM system.queries").await, Ok(1), "one's own");
    assert_eq!(rows_of(&root, "SELECT * FROM system.silent").await, Ok(3));
    assert_eq!(rows_of(&root, "SELECT * FROM system.query_shapes").await, Ok(1));
    assert_eq!(rows_of(&root, "SELECT * FROM system.queries").await, Ok(2));
    assert_eq!(MADE.load(Ordering::Relaxed), 1);
}

#[test]
fn tables_are_those_that_are_declared() {
    let mut declared: Vec<&str> =
        declarations().iter().filter(|group| group.is_table).map(|group| group.name).collect();
    declared.sort_unstable();
    let made: Vec<&str> = all().iter().map(|table| table.name).collect();
    assert_eq!(made, declared, "by name");
}

#[tokio::test]
async fn every_table_has_its_declared_columns() {
    let root = session("root", true);
    for group in declarations().iter().filter(|group| group.is_table) {
        let sql = format!("SELECT * FROM system.{}", group.name);
        let batches = root.sql(&sql).await.unwrap().collect().await.unwrap();
        assert!(!batches.is_empty(), "{sql}");
        for batch in batches {
            let schema = batch.schema();
            let found: Vec<&str> = schema.fields().iter().map(|f| f.name().as_str()).collect();
            let wanted: Vec<&str> = group.columns.iter().map(|c| c.sql_name()).collect();
            assert_eq!(found, wanted, "{sql}");
            assert_eq!(schema, rows::schema(group), "{sql}");
        }
    }
}
