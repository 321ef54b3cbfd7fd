//! Sessions with other settings, roles and namespaces that share caches of templates, plans and
//! answers, against sessions that share nothing: the same answers.
//!
//! Each statement is asked of one of some long-lived sessions of one engine, and of a session made for
//! it alone, of another engine on the same warehouse, that takes no short path and keeps nothing.
//! `STOA_SHARED_STATEMENTS` says how many statements there are.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

use arrow::datatypes::DataType;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use stoa_query::{
    Engine, EngineOptions, Outcome, Prepared, ScalarValue, Session, SessionOptions, Statement,
};
use tempfile::TempDir;
use url::Url;

/// Statements of a run, unless something else is said.
const STATEMENTS: usize = 800;

/// Sessions that share an engine.
const SESSIONS: usize = 10;

/// Texts that are easily taken for each other.
const TEXTS: [&str; 14] = [
    "a", "b", "a, b", "{a,b}", "\"a, b\"", "it's", "", "NULL", "a\0b", "\\0", "a\", \"b", "Ünï",
    "1", "$1",
];

/// Numbers that are the same whenever the test runs (splitmix64).
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    fn of<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.below(list.len())]
    }
}

/// One of the sessions, and what is known of it without asking it.
struct Asker {
    session: Arc<Session>,
    user: &'static str,
    began: BTreeMap<&'static str, &'static str>,
    set: BTreeMap<&'static str, &'static str>,
    prepared: Vec<(Prepared, Question)>,
}

/// A statement with its values, as literals or as parameters.
#[derive(Clone, Debug)]
struct Question {
    sql: String,
    types: Vec<Option<DataType>>,
    /// Which kinds its parameters are of.
    kinds: Vec<Kind>,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Int,
    Text,
    Texts,
    Decimal,
    Double,
    Date,
    Time,
    Instant,
}

const SETTINGS: [(&str, &[&str]); 10] = [
    ("timezone", &["UTC", "+05:30", "-08:00"]),
    ("search_path", &["public", "other"]),
    ("short_path", &["on", "off"]),
    ("plan_templates", &["on", "off"]),
    ("result_reuse", &["on", "off"]),
    ("datafusion.sql_parser.default_null_ordering", &["nulls_max", "nulls_min", "nulls_first"]),
    ("datafusion.sql_parser.parse_float_as_decimal", &["true", "false"]),
    ("datafusion.execution.batch_size", &["8192", "3"]),
    ("datafusion.optimizer.max_passes", &["3", "1"]),
    ("application_name", &["", "x\0y"]),
];

async fn open(directory: &TempDir, log: Option<&str>) -> Arc<Engine> {
    let url = |name: &str| Url::from_directory_path(directory.path().join(name)).unwrap();
    let options = EngineOptions {
        logs: log.map(url),
        access_control: true,
        threads: 2,
        ..EngineOptions::new(url("warehouse"))
    };
    Engine::open(options).await.unwrap()
}

fn session(engine: &Arc<Engine>, user: &str) -> Arc<Session> {
    let is_trusted = user == "root";
    engine.session(SessionOptions { user: user.to_owned(), is_trusted, ..Default::default() })
}

async fn run(session: &Session, sql: &str) {
    if let Outcome::Rows(rows) = session.sql(sql).await.unwrap_or_else(|e| panic!("{sql}: {e}")) {
        rows.collect().await.unwrap();
    }
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// Two tables of one name, and rights on some columns of one.
async fn fill(root: &Session, chance: &mut Chance) {
    run(root, "CREATE SCHEMA other").await;
    for (namespace, number) in [("public", "bigint"), ("other", "int")] {
        run(
            root,
            &format!(
                "CREATE TABLE {namespace}.events (account {number}, region text, day date, \
                 cost decimal(12,2), rate double, at timestamp, seen timestamptz) \
                 ORDER BY (account) TBLPROPERTIES ('stoa.orc.row-index-stride' = '1000')"
            ),
        )
        .await;
        grow(root, namespace, 600, chance).await;
    }
    run(root, "CREATE USER ann PASSWORD 'pencil'").await;
    run(root, "GRANT SELECT (account, region, day) ON public.events TO ann").await;
    run(root, "GRANT SELECT ON other.events TO ann").await;
}

async fn grow(root: &Session, namespace: &str, rows: usize, chance: &mut Chance) {
    let mut sql = format!("INSERT INTO {namespace}.events VALUES ");
    for row in 0..rows {
        let null = |chance: &mut Chance, value: String| match chance.below(9) {
            0 => "NULL".to_owned(),
            _ => value,
        };
        let comma = if row > 0 { ", " } else { "" };
        let values = [
            chance.below(30).to_string(),
            quoted(chance.of::<&str>(&TEXTS)),
            format!("DATE '2026-01-{:02}'", 1 + chance.below(28)),
            format!("{}.{:02}", chance.below(100), chance.below(100)),
            format!("{}.5", chance.below(50)),
            format!("TIMESTAMP '2026-01-02 {:02}:30:00'", chance.below(24)),
            format!("TIMESTAMPTZ '2026-01-02 {:02}:30:00+00'", chance.below(24)),
        ];
        let values = values.map(|value| null(chance, value)).join(", ");
        write!(sql, "{comma}({values})").unwrap();
    }
    run(root, &sql).await;
    run(root, &format!("FLUSH TABLE {namespace}.events")).await;
}

impl Kind {
    fn data_type(self) -> DataType {
        self.value(&mut Chance(1)).data_type()
    }

    fn column(self) -> &'static str {
        match self {
            Self::Int => "account",
            Self::Text | Self::Texts => "region",
            Self::Decimal => "cost",
            Self::Double => "rate",
            Self::Date => "day",
            Self::Time => "at",
            Self::Instant => "seen",
        }
    }

    fn value(self, chance: &mut Chance) -> ScalarValue {
        let micros = |hour: usize| Some(1_767_312_000_000_000 + hour as i64 * 3_600_000_000);
        match self {
            Self::Int => ScalarValue::Int64(Some(chance.below(32) as i64 - 1)),
            Self::Text => ScalarValue::from(*chance.of::<&str>(&TEXTS)),
            Self::Texts => {
                let count = chance.below(3);
                let values: Vec<_> =
                    (0..count).map(|_| ScalarValue::from(*chance.of::<&str>(&TEXTS))).collect();
                ScalarValue::List(ScalarValue::new_list_nullable(&values, &DataType::Utf8))
            }
            Self::Decimal => ScalarValue::Decimal128(Some(chance.below(9999) as i128), 12, 2),
            Self::Double => ScalarValue::Float64(Some(chance.below(50) as f64 + 0.5)),
            Self::Date => ScalarValue::Date32(Some(20_454 + chance.below(31) as i32)),
            Self::Time => ScalarValue::TimestampMicrosecond(micros(chance.below(24)), None),
            Self::Instant => {
                ScalarValue::TimestampMicrosecond(micros(chance.below(24)), Some("+00:00".into()))
            }
        }
    }

    fn literal(self, chance: &mut Chance) -> String {
        let hour = chance.below(24);
        match self {
            Self::Int => (chance.below(32) as i64 - 1).to_string(),
            Self::Text => quoted(chance.of::<&str>(&TEXTS)),
            Self::Texts => {
                let values: Vec<_> =
                    (0..1 + chance.below(2)).map(|_| quoted(chance.of::<&str>(&TEXTS))).collect();
                format!("ARRAY[{}]", values.join(", "))
            }
            Self::Decimal => format!("{}.{:02}", chance.below(100), chance.below(100)),
            Self::Double => format!("{}.5", chance.below(50)),
            Self::Date => format!("DATE '2026-01-{:02}'", 1 + chance.below(28)),
            Self::Time => format!("TIMESTAMP '2026-01-02 {hour:02}:30:00'"),
            Self::Instant => format!("'2026-01-02 {hour:02}:30:00'"),
        }
    }
}

/// The statement of a shape; where it has literals, other ones each time.
fn question(shape: usize, values: &mut Chance) -> Question {
    let chance = &mut Chance(shape as u64);
    let all = [
        Kind::Int,
        Kind::Int,
        Kind::Text,
        Kind::Text,
        Kind::Texts,
        Kind::Decimal,
        Kind::Double,
        Kind::Date,
        Kind::Time,
        Kind::Instant,
    ];
    let is_prepared = chance.below(2) == 0;
    let (mut types, mut kinds) = (Vec::new(), Vec::new());
    let mut value = |chance: &mut Chance, kind: Kind| {
        if !is_prepared {
            return kind.literal(values);
        }
        types.push((chance.below(3) == 0).then(|| kind.data_type()));
        kinds.push(kind);
        format!("${}", kinds.len())
    };
    let mut condition = |chance: &mut Chance| {
        let kind = *chance.of(&all);
        let column = kind.column();
        if let Kind::Texts = kind {
            return format!("{column} = ANY({})", value(chance, kind));
        }
        match chance.below(6) {
            0 => {
                let low = value(chance, kind);
                format!("{column} BETWEEN {low} AND {}", value(chance, kind))
            }
            1 => {
                let one = value(chance, kind);
                format!("{column} IN ({one}, {})", value(chance, kind))
            }
            n => format!("{column} {} {}", ["=", "=", ">=", "<"][n - 2], value(chance, kind)),
        }
    };
    let a = condition(chance);
    let sql = match chance.below(13) {
        0 => format!("SELECT count(*), sum(account) FROM events WHERE {a}"),
        1 => {
            format!("SELECT region, count(*) FROM events WHERE {a} GROUP BY region ORDER BY region")
        }
        2 => format!("SELECT region FROM events WHERE {a} ORDER BY region DESC LIMIT 5"),
        3 => format!("SELECT account, day FROM events WHERE {a} ORDER BY account, day LIMIT 7"),
        4 => format!("SELECT upper(region) AS r FROM events WHERE {a} ORDER BY r LIMIT 4"),
        5 => format!("SELECT count(*) + 1, max(cost) * 1.5 FROM events WHERE {a}"),
        6 => {
            let b = condition(chance);
            format!("SELECT count(*), min(day) FROM events WHERE {a} AND {b}")
        }
        7 => {
            let b = condition(chance);
            format!("SELECT count(DISTINCT account) FROM events WHERE {a} OR {b}")
        }
        8 => format!("SELECT 0.1 + 0.2, count(*) FROM events WHERE {a}"),
        9 => format!("SELECT max(seen), count(*), min(at) FROM events WHERE {a}"),
        10 => format!(
            "SELECT date_trunc('day', seen) AS d, count(*) FROM events WHERE {a} GROUP BY d"
        ),
        11 => format!("SELECT current_user, current_schema(), count(*) FROM events WHERE {a}"),
        _ => {
            let b = condition(chance);
            format!(
                "SELECT count(*) FROM events WHERE {a} AND account IN \
                 (SELECT account FROM other.events WHERE {b})"
            )
        }
    };
    Question { sql, types, kinds }
}

/// What a statement answers: names and types, then rows; or the error's code.
async fn answer(
    session: &Session,
    prepared: &Prepared,
    values: &[ScalarValue],
    ordered: bool,
) -> Vec<String> {
    let rows = match session.execute(prepared, values.to_vec()).await {
        Ok(Outcome::Rows(rows)) => rows,
        Ok(_) => panic!("no rows"),
        Err(error) => return vec![error.sqlstate().to_owned()],
    };
    let schema = rows.schema();
    let head = schema.fields().iter().map(|f| format!("{} {}", f.name(), f.data_type()));
    let head = head.collect::<Vec<_>>().join("|");
    let batches = match rows.collect().await {
        Ok(batches) => batches,
        Err(error) => return vec![error.sqlstate().to_owned()],
    };
    let options = FormatOptions::default().with_null("NULL");
    let mut lines = Vec::new();
    for batch in &batches {
        let columns: Vec<_> =
            batch.columns().iter().map(|c| ArrayFormatter::try_new(c, &options).unwrap()).collect();
        for row in 0..batch.num_rows() {
            let cells = columns.iter().map(|c| c.value(row).to_string());
            lines.push(cells.collect::<Vec<_>>().join("|"));
        }
    }
    if !ordered {
        lines.sort_unstable();
    }
    lines.insert(0, head);
    lines
}

async fn prepare(session: &Session, question: &Question) -> Result<Prepared, String> {
    let parsed = session.parse(&question.sql).await;
    let statement: Statement = parsed.map_err(|e| e.sqlstate().to_owned())?.swap_remove(0);
    let prepared = session.prepare(statement, question.types.clone()).await;
    prepared.map_err(|error| error.sqlstate().to_owned())
}

impl Asker {
    fn new(engine: &Arc<Engine>, chance: &mut Chance) -> Self {
        let user = *chance.of(&["root", "ann", "root"]);
        let session = session(engine, user);
        let mut began = BTreeMap::new();
        for (name, values) in SETTINGS {
            if chance.below(4) == 0 {
                let value = *chance.of(values);
                session.begin_with(name, value).unwrap();
                began.insert(name, value);
            }
        }
        Self { session, user, began, set: BTreeMap::new(), prepared: Vec::new() }
    }

    /// Changes something, in one of the ways there are.
    async fn change(&mut self, chance: &mut Chance) {
        let (name, values) = *chance.of(&SETTINGS);
        match chance.below(8) {
            0 => {
                let reset = *chance.of(&["RESET ALL", "DISCARD ALL"]);
                run(&self.session, reset).await;
                self.set.clear();
            }
            1 => {
                run(&self.session, &format!("RESET {name}")).await;
                self.set.remove(name);
            }
            _ => {
                let value = *chance.of(values);
                self.session.set(name, Some(value)).unwrap();
                self.set.insert(name, value);
            }
        }
    }

    /// A session of `engine` with the same settings that takes the long way.
    fn alone(&self, engine: &Arc<Engine>) -> Arc<Session> {
        let session = session(engine, self.user);
        for (name, value) in self.began.iter().chain(&self.set) {
            session.set(name, Some(value)).unwrap();
        }
        for name in ["short_path", "plan_templates", "result_reuse"] {
            session.set(name, Some("off")).unwrap();
        }
        session
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_that_share_caches_answer_as_those_that_do_not() {
    #[allow(clippy::disallowed_methods)]
    let statements = std::env::var("STOA_SHARED_STATEMENTS").ok();
    let statements = statements.and_then(|n| n.parse().ok()).unwrap_or(STATEMENTS);
    let mut chance = Chance(12);
    let directory = tempfile::tempdir().unwrap();
    let (shared, lonely) = (open(&directory, Some("log")).await, open(&directory, None).await);
    let root = session(&shared, "root");
    fill(&root, &mut chance).await;
    let mut askers: Vec<Asker> = (0..SESSIONS).map(|_| Asker::new(&shared, &mut chance)).collect();
    let mut differing = Vec::new();
    let (mut asked, mut refused) = (0, 0);
    while asked < statements {
        if asked % (statements / 4).max(1) == 0 {
            grow(&root, ["public", "other"][chance.below(2)], 50, &mut chance).await;
        }
        let asker = {
            let at = chance.below(SESSIONS);
            &mut askers[at]
        };
        if chance.below(12) == 0 {
            asker.change(&mut chance).await;
        }
        let is_old = !asker.prepared.is_empty() && chance.below(5) == 0;
        let (prepared, question) = match is_old {
            true => {
                let (prepared, question) = chance.of(&asker.prepared);
                (Ok(prepared.clone()), question.clone())
            }
            false => {
                // Few, so that they come again in other sessions and with other values.
                let limit = *chance.of(&[60, 60, 60, 60, 100_000]);
                let question = question(chance.below(limit), &mut chance);
                (prepare(&asker.session, &question).await, question)
            }
        };
        let values: Vec<ScalarValue> =
            question.kinds.iter().map(|kind| kind.value(&mut chance)).collect();
        let ordered = question.sql.contains("ORDER BY");
        let alone = asker.alone(&lonely);
        let expected = match prepare(&alone, &question).await {
            Ok(prepared) => (prepared.schema(), answer(&alone, &prepared, &values, ordered).await),
            Err(code) => (None, vec![code]),
        };
        let found = match prepared {
            Ok(prepared) => {
                let found = answer(&asker.session, &prepared, &values, ordered).await;
                // The client was told other columns: as in PostgreSQL, that is an error.
                if is_old && found == ["0A000"] && prepared.schema() != expected.0 {
                    continue;
                }
                if !is_old && asker.prepared.len() < 20 {
                    asker.prepared.push((prepared, question.clone()));
                }
                found
            }
            Err(code) => vec![code],
        };
        asked += 1;
        refused += usize::from(found.len() == 1 && found[0].len() == 5);
        if found != expected.1 {
            let settings = (&asker.user, &asker.began, &asker.set);
            differing.push(format!(
                "{} {values:?}\n  {settings:?} old={is_old}\n  shared: {found:?}\n  alone:  {:?}",
                question.sql, expected.1
            ));
            assert!(differing.len() < 10, "{}", differing.join("\n"));
        }
    }
    assert!(differing.is_empty(), "{} of {asked}:\n{}", differing.len(), differing.join("\n"));
    // Otherwise nothing was tried.
    let used = [shared.reports_answered(), shared.plan_templates_used(), shared.results_reused()];
    println!("{asked} statements, {refused} refused; short path, templates, reused: {used:?}");
    assert!(used.iter().all(|count| *count > asked as u64 / 200), "{used:?} of {asked}");
    assert!(refused < asked / 3, "{refused} of {asked} were refused");
    let lonely = [lonely.reports_answered(), lonely.plan_templates_used(), lonely.results_reused()];
    assert_eq!(lonely, [0; 3]);
}
