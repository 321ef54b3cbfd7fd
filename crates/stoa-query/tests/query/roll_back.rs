//! `ALTER TABLE … ROLLBACK TO`: against a model of what each version held, across restarts, and by whom.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::guarded::{Home, code, open, said};
use stoa_query::{Session, SessionOptions};

async fn column(session: &Session, sql: &str) -> Vec<String> {
    let told = said(session, sql).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    let cells = told.lines().filter(|line| line.starts_with('|')).skip(1);
    cells.map(|line| line.trim_matches(['|', ' ']).to_owned()).collect()
}

async fn keys(session: &Session) -> Vec<String> {
    column(session, "SELECT k FROM t ORDER BY k").await
}

/// The ids of all versions, oldest first.
async fn versions(session: &Session) -> Vec<String> {
    column(session, "SELECT snapshot_id FROM \"t$history\" ORDER BY made_current_at").await
}

async fn three_rows() -> (Home, Vec<String>) {
    let home = Home::new(&["reader"]).await;
    home.run("CREATE TABLE t (k int, note text)").await;
    for n in 1..=3 {
        home.run(&format!("INSERT INTO t VALUES ({n}, 'n{n}')")).await;
        home.run("FLUSH TABLE t").await;
    }
    let ids = versions(&home.root).await;
    assert_eq!(ids.len(), 3);
    (home, ids)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_holds_again_what_it_held() {
    let (home, ids) = three_rows().await;
    // In the log only: undone, too, and kept with the version that was the latest.
    home.run("INSERT INTO t VALUES (4, 'fresh')").await;
    let sql = format!("ALTER TABLE t ROLLBACK TO VERSION {}", ids[1]);
    let done = said(&home.root, &sql).await.unwrap();
    assert!(done.contains("public.t: 4 rows became 2; snapshot "), "{done}");
    assert_eq!(keys(&home.root).await, ["1", "2"]);
    let latest = versions(&home.root).await[3].clone();
    assert!(done.contains(&latest), "{done}");
    assert_eq!(column(&home.root, &format!("SELECT count(*) FROM t@{latest}")).await, ["4"]);
    // Rows that come later stay, and the way back is open.
    home.run("INSERT INTO t VALUES (9, 'later')").await;
    assert_eq!(keys(&home.root).await, ["1", "2", "9"]);
    home.run(&format!("ALTER TABLE t CREATE TAG before AS OF VERSION {latest}")).await;
    home.run("ALTER TABLE t ROLLBACK TO VERSION 'before'").await;
    assert_eq!(keys(&home.root).await, ["1", "2", "3", "4"]);
    home.run(&format!("ALTER TABLE t EXECUTE ROLLBACK({})", ids[0])).await;
    assert_eq!(keys(&home.root).await, ["1"]);
    let time = column(
        &home.root,
        "SELECT max(made_current_at) - interval '1 microsecond' FROM \"t$history\"",
    )
    .await;
    home.run(&format!("ALTER TABLE t ROLLBACK TO TIMESTAMP '{}'", time[0])).await;
    assert_eq!(keys(&home.root).await, ["1", "2", "3", "4"]);
    // The current version is no change.
    let before = versions(&home.root).await;
    let current = before.last().unwrap();
    let done = said(&home.root, &format!("ALTER TABLE t ROLLBACK TO VERSION {current}")).await;
    assert!(done.unwrap().contains("is the current one"));
    assert_eq!(versions(&home.root).await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn columns_and_properties_stay_as_they_are() {
    let (home, ids) = three_rows().await;
    home.run("ALTER TABLE t ADD COLUMN more int").await;
    home.run("ALTER TABLE t DROP COLUMN note").await;
    home.run("INSERT INTO t VALUES (7, 70)").await;
    home.run(&format!("ALTER TABLE t ROLLBACK TO VERSION {}", ids[0])).await;
    let all = said(&home.root, "SELECT * FROM t").await.unwrap();
    assert!(all.contains("| k | more |") && all.contains("| 1 |      |"), "{all}");
}

#[tokio::test(flavor = "multi_thread")]
async fn owners_roll_back_and_nobody_else() {
    let (home, ids) = three_rows().await;
    home.run("GRANT SELECT, INSERT, UPDATE, DELETE ON t TO reader").await;
    let reader = home.session_of("reader");
    let sql = format!("ALTER TABLE t ROLLBACK TO VERSION {}", ids[0]);
    assert_eq!(code(&reader, &sql).await, "42501");
    assert_eq!(code(&reader, "ALTER TABLE t ROLLBACK TO VERSION 1").await, "42501");
    home.run("CREATE VIEW v AS SELECT k FROM t").await;
    for (sql, expected) in [
        ("ALTER TABLE t ROLLBACK TO VERSION 1", "42704"),
        ("ALTER TABLE t ROLLBACK TO VERSION 'none'", "42704"),
        ("ALTER TABLE t ROLLBACK TO TIMESTAMP '2001-01-01'", "42704"),
        ("ALTER TABLE t ROLLBACK TO TIMESTAMP 'yesterday-ish'", "22007"),
        ("ALTER TABLE v ROLLBACK TO VERSION 1", "42809"),
        ("ALTER TABLE none ROLLBACK TO VERSION 1", "42P01"),
        ("ALTER TABLE t ROLLBACK VERSION 1", "42601"),
        ("ALTER TABLE t ROLLBACK TO VERSION 1, ADD COLUMN x int", "42601"),
    ] {
        assert_eq!(code(&home.root, sql).await, expected, "{sql}");
    }
    assert_eq!(keys(&home.root).await, ["1", "2", "3"]);
    home.run("ALTER TABLE t OWNER TO reader").await;
    assert_eq!(code(&reader, &sql).await, "ok");
    assert_eq!(keys(&home.root).await, ["1"]);
}

/// Numbers that look random, the same each time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn any_order_of_changes_gives_what_a_model_has() {
    for seed in 1..=3 {
        let mut dice = Dice(seed);
        let home = Home::new(&[]).await;
        home.run("CREATE TABLE t (k bigint, n bigint) TBLPROPERTIES ('stoa.compaction.min-input-files' = '2')").await;
        // What the table holds, and what each version that is noted held.
        let (mut rows, mut noted) = (BTreeMap::<u64, u64>::new(), BTreeMap::new());
        let mut engine = home.engine.clone();
        let mut session = home.root.clone();
        for step in 0..60_u64 {
            match dice.roll(9) {
                0..=2 => {
                    said(&session, &format!("INSERT INTO t VALUES ({step}, {step})"))
                        .await
                        .unwrap();
                    rows.insert(step, step);
                }
                3 => {
                    let part = dice.roll(3);
                    said(&session, &format!("DELETE FROM t WHERE k % 3 = {part}")).await.unwrap();
                    rows.retain(|k, _| k % 3 != part);
                }
                4 => {
                    let part = dice.roll(4);
                    said(&session, &format!("UPDATE t SET n = {step} WHERE k % 4 = {part}"))
                        .await
                        .unwrap();
                    rows.iter_mut().filter(|(k, _)| *k % 4 == part).for_each(|(_, n)| *n = step);
                }
                5 => {
                    said(&session, "COMPACT TABLE t FULL").await.unwrap();
                }
                6 => {
                    said(&session, "FLUSH TABLE t").await.unwrap();
                    if let Some(id) = versions(&session).await.pop() {
                        noted.insert(id, rows.clone());
                    }
                }
                7 if !noted.is_empty() => {
                    let place = dice.roll(noted.len() as u64) as usize;
                    let (id, then) = noted.iter().nth(place).unwrap();
                    said(&session, &format!("ALTER TABLE t ROLLBACK TO VERSION {id}"))
                        .await
                        .unwrap();
                    rows.clone_from(then);
                }
                8 if step % 2 == 0 => {
                    // Another engine on the same log: what was undone does not come again.
                    engine.shutdown(Duration::from_secs(5)).await;
                    drop((session, engine));
                    engine = open(home.path(), "log").await;
                    session = engine
                        .session(SessionOptions { is_trusted: true, ..SessionOptions::default() });
                }
                _ => {}
            }
            let expected: Vec<String> = rows.iter().map(|(k, n)| format!("{k}:{n}")).collect();
            let found =
                column(&session, "SELECT k::text || ':' || n::text FROM t ORDER BY k").await;
            assert_eq!(found, expected, "seed {seed}, step {step}");
            let counted = column(&session, "SELECT count(*) FROM t").await;
            assert_eq!(counted, [rows.len().to_string()], "seed {seed}, step {step}");
        }
    }
}
