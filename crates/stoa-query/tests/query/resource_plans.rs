//! Resource plans: who goes where from the next statement on, what is killed and moved, on all servers of a catalog.

use std::sync::Arc;

use crate::hiveql::rows;
use crate::statements::Home;
use stoa_catalog::CatalogPlace;
use stoa_query::{Engine, EngineOptions, Outcome, RowStream, Session, SessionOptions};
use stoa_testkit::PostgresServer;
use url::Url;

/// Takes longer than any test, and can be stopped after each batch of numbers.
const ENDLESS: &str = "SELECT count(*) FROM (SELECT n FROM t WHERE n < 2) t, \
     generate_series(1, 1000000000000) s (m) WHERE n + m = -1";

/// A plan with a pool for two queries, and a slow one for a query.
const PLAN: &str = "CREATE RESOURCE PLAN day; \
     ALTER POOL day.default SET ALLOC_FRACTION = 0.5, QUERY_PARALLELISM = 2; \
     CREATE POOL day.slow WITH ALLOC_FRACTION = 0.5, QUERY_PARALLELISM = 1, SCHEDULING_POLICY = 'fifo'";

async fn engine(directory: &tempfile::TempDir) -> Arc<Engine> {
    engine_on(directory, None).await
}

/// With the catalog at this place; in the warehouse if `None`.
async fn engine_on(directory: &tempfile::TempDir, catalog: Option<CatalogPlace>) -> Arc<Engine> {
    let warehouse = Url::from_directory_path(directory.path()).unwrap();
    let options = EngineOptions {
        catalog,
        query_slots: 1,
        queue_max: 1,
        threads: 2,
        ..EngineOptions::new(warehouse)
    };
    Engine::open(options).await.unwrap()
}

async fn engine_with_rows(directory: &tempfile::TempDir) -> Arc<Engine> {
    let engine = engine(directory).await;
    let session = session(&engine, "root");
    session.sql("CREATE TABLE t (n bigint)").await.unwrap();
    let numbers: Vec<String> = (0..1000).map(|n| format!("({n})")).collect();
    session.sql(&format!("INSERT INTO t VALUES {}", numbers.join(", "))).await.unwrap();
    engine
}

fn session(engine: &Arc<Engine>, user: &str) -> Arc<Session> {
    let session =
        engine.session(SessionOptions { user: user.to_owned(), ..SessionOptions::default() });
    session.set("result_reuse", Some("off")).unwrap();
    session
}

async fn started(session: &Session) -> RowStream {
    match session.sql(ENDLESS).await.unwrap() {
        Outcome::Rows(rows) => rows,
        _ => panic!("a query gives no rows"),
    }
}

/// Waits until a query of `user` runs in this pool.
async fn until_in(engine: &Arc<Engine>, user: &str, pool: &str) {
    loop {
        let running = engine.queries().running();
        if running.iter().any(|query| query.user == user && query.pool == pool) {
            return;
        }
        tokio::task::yield_now().await;
    }
}

/// Slots that are taken in a pool.
fn busy(engine: &Engine, name: &str) -> usize {
    let all = engine.pools_status();
    all.iter().find(|pool| pool.name == name).map_or(0, |pool| pool.admission.running)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plan_holds_for_the_next_statement() {
    let directory = tempfile::tempdir().unwrap();
    let engine = engine_with_rows(&directory).await;
    let (root, ann) = (session(&engine, "root"), session(&engine, "ann"));
    root.sql(PLAN).await.unwrap();
    root.sql("CREATE USER MAPPING 'ann' IN day TO slow").await.unwrap();
    root.sql("CREATE APPLICATION MAPPING 'dbt' IN day UNMANAGED").await.unwrap();
    let this = async |session: &Session| {
        let sql =
            "SELECT pool FROM system.queries WHERE sql LIKE '%this one%' AND state = 'running'";
        rows(session, sql).await.unwrap().remove(0)
    };
    assert_eq!(this(&ann).await, "default");
    root.sql("ALTER RESOURCE PLAN day ENABLE ACTIVATE").await.unwrap();
    assert_eq!(this(&ann).await, "day.slow");
    assert_eq!(this(&root).await, "day.default");
    root.set("application_name", Some("dbt")).unwrap();
    assert_eq!(this(&root).await, "default");
    let memory = engine.pools_status().into_iter().find(|pool| pool.name == "day.slow").unwrap();
    assert_eq!(memory.memory_bytes_max, Some(1 << 30));
    assert_eq!((memory.admission.slots, memory.admission.queue_max), (1, 1));
    root.sql("DISABLE WORKLOAD MANAGEMENT").await.unwrap();
    assert_eq!(this(&ann).await, "default");
    assert!(engine.pools_status().iter().all(|pool| pool.name == "default"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn triggers_move_queries_and_kill_them() {
    let directory = tempfile::tempdir().unwrap();
    let engine = engine_with_rows(&directory).await;
    let root = session(&engine, "root");
    root.sql(PLAN).await.unwrap();
    root.sql("CREATE TRIGGER day.long WHEN EXECUTION_TIME > 150 DO MOVE TO slow").await.unwrap();
    root.sql("CREATE TRIGGER day.late WHEN ELAPSED_TIME > '1 sec' DO KILL").await.unwrap();
    root.sql("ALTER POOL day.default ADD TRIGGER long").await.unwrap();
    root.sql("ALTER TRIGGER day.late ADD TO POOL slow").await.unwrap();
    root.sql("ALTER RESOURCE PLAN day ENABLE ACTIVATE").await.unwrap();

    let first = started(&session(&engine, "ann")).await;
    until_in(&engine, "ann", "day.default").await;
    until_in(&engine, "ann", "day.slow").await;
    assert_eq!((busy(&engine, "day.default"), busy(&engine, "day.slow")), (0, 1));

    // The pool that it would go to is full: it ends, as in Hive.
    let second = started(&session(&engine, "ben")).await;
    let error = second.collect().await.unwrap_err();
    assert_eq!(error.sqlstate(), "57014");
    let told = error.detail().unwrap_or_default().to_owned();
    assert!(told.contains("day.slow, which is full") || told.contains("late"), "{error}: {told}");

    let error = first.collect().await.unwrap_err();
    assert_eq!(error.sqlstate(), "57014");
    let told = error.detail().unwrap_or_default().to_owned();
    assert!(told.contains("ELAPSED_TIME > '1 sec'"), "{error}: {told}");
    while busy(&engine, "day.slow") > 0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn triggers_of_unmanaged_queries_kill_those_of_no_pool() {
    let directory = tempfile::tempdir().unwrap();
    let engine = engine_with_rows(&directory).await;
    let root = session(&engine, "root");
    root.sql(PLAN).await.unwrap();
    root.sql("CREATE USER MAPPING 'ann' IN day UNMANAGED").await.unwrap();
    root.sql("CREATE TRIGGER day.late WHEN ELAPSED_TIME > 300 DO KILL").await.unwrap();
    root.sql("ALTER TRIGGER day.late ADD TO UNMANAGED").await.unwrap();
    root.sql("ALTER RESOURCE PLAN day ENABLE ACTIVATE").await.unwrap();
    let managed = started(&root).await;
    let unmanaged = started(&session(&engine, "ann")).await;
    assert_eq!(unmanaged.collect().await.unwrap_err().sqlstate(), "57014");
    assert_eq!(busy(&engine, "day.default"), 1, "queries of pools go on");
    root.sql(&format!("KILL {}", managed.query_id())).await.unwrap();
    assert_eq!(managed.collect().await.unwrap_err().sqlstate(), "57014");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_servers_of_the_catalog_follow() {
    let postgres = PostgresServer::shared().map(|server| server.database());
    let places = [None].into_iter().chain(postgres.as_deref().map(CatalogPlace::postgres));
    for place in places {
        let directory = tempfile::tempdir().unwrap();
        let one = engine_on(&directory, place.clone()).await;
        let other = engine_on(&directory, place.clone()).await;
        let root = session(&one, "root");
        root.sql(PLAN).await.unwrap();
        root.sql("ALTER RESOURCE PLAN day ENABLE ACTIVATE").await.unwrap();
        let has_plan = |engine: &Engine| {
            engine.pools_status().iter().any(|pool| pool.name.starts_with("day."))
        };
        assert!(has_plan(&one));
        while !has_plan(&other) {
            tokio::task::yield_now().await;
        }
        session(&other, "root").sql("DISABLE WORKLOAD MANAGEMENT").await.unwrap();
        while has_plan(&one) {
            tokio::task::yield_now().await;
        }
        root.sql("ALTER RESOURCE PLAN day ACTIVATE").await.unwrap();
        // What is kept is there after a start.
        drop((root, one, other));
        let again = engine_on(&directory, place).await;
        assert!(has_plan(&again));
        let shown = rows(&session(&again, "root"), "SHOW RESOURCE PLAN day").await.unwrap();
        assert_eq!(shown[0], "day[status=ACTIVE,parallelism=null,defaultPool=default]");
    }
}

#[tokio::test]
async fn only_superusers_change_and_see_plans() {
    let directory = tempfile::tempdir().unwrap();
    let warehouse = Url::from_directory_path(directory.path()).unwrap();
    let options = EngineOptions { access_control: true, ..EngineOptions::new(warehouse) };
    let engine = Engine::open(options).await.unwrap();
    let root = engine.session(SessionOptions { is_trusted: true, ..SessionOptions::default() });
    root.sql("CREATE USER ann; CREATE ROLE bi; GRANT bi TO ann; CREATE USER ben").await.unwrap();
    root.sql(PLAN).await.unwrap();
    root.sql("CREATE GROUP MAPPING 'bi' IN day TO slow").await.unwrap();
    root.sql("ALTER RESOURCE PLAN day ENABLE ACTIVATE").await.unwrap();
    let (ann, ben) = (session(&engine, "ann"), session(&engine, "ben"));
    for sql in [
        "CREATE RESOURCE PLAN p",
        "ALTER RESOURCE PLAN day DISABLE",
        "DISABLE WORKLOAD MANAGEMENT",
        "SHOW RESOURCE PLANS",
        "SHOW RESOURCE PLAN day",
        "SELECT * FROM system.wm_pools",
    ] {
        let error = match ann.sql(sql).await {
            Ok(Outcome::Rows(rows)) => rows.collect().await.unwrap_err(),
            Ok(_) => panic!("{sql}"),
            Err(error) => error,
        };
        assert_eq!(error.sqlstate(), "42501", "{sql}");
    }
    // Members of a group are those of the role.
    let own = "SELECT pool FROM system.queries WHERE state = 'running'";
    assert_eq!(rows(&ann, own).await.unwrap(), ["day.slow"]);
    assert_eq!(rows(&ben, own).await.unwrap(), ["day.default"]);
    root.sql("GRANT bi TO ben").await.unwrap();
    while rows(&ben, own).await.unwrap() != ["day.slow"] {
        tokio::task::yield_now().await;
    }
}

/// Columns and rows are those of the expected output of Hive's own test of resource plans.
#[tokio::test]
async fn hives_tables_about_plans_are_there() {
    let home = Home::new().await;
    let session = home.engine.session(SessionOptions::default());
    session.sql(PLAN).await.unwrap();
    session
        .sql(
            "CREATE TRIGGER day.trigger_1 WHEN BYTES_READ > '1GB' DO KILL; \
             CREATE TRIGGER day.trigger_2 WHEN ELAPSED_TIME > '30hour' DO MOVE TO slow; \
             ALTER POOL day.slow ADD TRIGGER trigger_1; \
             ALTER TRIGGER day.trigger_1 ADD TO UNMANAGED; \
             CREATE USER MAPPING 'user1' IN day UNMANAGED; \
             CREATE GROUP MAPPING 'group2' IN day TO slow WITH ORDER 1",
        )
        .await
        .unwrap();
    session.set("dialect", Some("hive")).unwrap();
    let check = async |table: &str, wanted: &[&str]| {
        let sql = format!("SELECT * FROM SYS.{table}");
        assert_eq!(rows(&session, &sql).await.unwrap(), wanted, "{table}");
    };
    check("WM_RESOURCEPLANS", &["day\tdefault\tDISABLED\tNULL\tdefault"]).await;
    check("WM_POOLS", &["day\tdefault\tdefault\t0.5\t2\tNULL", "day\tdefault\tslow\t0.5\t1\tfifo"])
        .await;
    check(
        "WM_TRIGGERS",
        &[
            "day\tdefault\ttrigger_1\tBYTES_READ > '1GB'\tKILL",
            "day\tdefault\ttrigger_2\tELAPSED_TIME > '30hour'\tMOVE TO slow",
        ],
    )
    .await;
    check(
        "WM_POOLS_TO_TRIGGERS",
        &["day\tdefault\t<unmanaged queries>\ttrigger_1", "day\tdefault\tslow\ttrigger_1"],
    )
    .await;
    check(
        "WM_MAPPINGS",
        &["day\tdefault\tUSER\tuser1\t<unmanaged>\t0", "day\tdefault\tGROUP\tgroup2\tslow\t1"],
    )
    .await;
    let Outcome::Rows(shown) = session.sql("SHOW RESOURCE PLANS").await.unwrap() else {
        panic!("no rows")
    };
    let names: Vec<String> =
        shown.schema().fields().iter().map(|field| field.name().clone()).collect();
    assert_eq!(names, ["rp_name", "status", "query_parallelism"]);
}
