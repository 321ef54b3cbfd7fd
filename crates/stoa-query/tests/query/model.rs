//! Statements of several sessions at once against a model: there is an order of them, one after
//! another, that explains what each of them answered and what is in the tables afterwards.
//!
//! In each turn some sessions send one statement each, at the same time. A statement that changes rows
//! must have a place in the order, or be refused with 40001; a query has one, too: it reads all its
//! tables as they were at one moment. INSERT … SELECT may be in two places: it reads at one moment and
//! adds at a later one.
//!
//! `STOA_MODEL_TURNS` says how many turns (default 40), `STOA_MODEL_SEED` which. Statements that read
//! other rows than they change are sent alone, unless `STOA_MODEL_ALL` is 1.

use std::sync::Arc;

use stoa_query::{Engine, EngineOptions, Outcome, Session, SessionOptions};
use url::Url;

/// Sessions that send at the same time, at most.
const SESSIONS: usize = 3;

/// Rows of tables `a` and `b`, sorted.
type State = [Vec<(i64, i64)>; 2];

const NAMES: [&str; 2] = ["a", "b"];

#[derive(Clone, Debug)]
enum Statement {
    Insert { to: usize, rows: Vec<(i64, i64)> },
    InsertSelect { to: usize, from: usize, below: i64 },
    Update { of: usize, part: i64, add: i64 },
    UpdateByOther { of: usize, above: i64 },
    Delete { of: usize, part: i64 },
    DeleteNotInOther { of: usize },
    DeleteNotInSelf { of: usize },
    MergeSelf { of: usize },
    MergeOther { of: usize },
    Overwrite { of: usize },
    Truncate { of: usize },
    Both,
    All { of: usize },
    Flush { of: usize },
}

use Statement::{
    All, Both, Delete, DeleteNotInOther, DeleteNotInSelf, Flush, Insert, InsertSelect, MergeOther,
    MergeSelf, Overwrite, Truncate, Update, UpdateByOther,
};

/// What a statement came to.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Answer {
    /// Rows that it changed, where it says so.
    Changed(u64),
    Nothing,
    Rows(Vec<(i64, i64)>),
    Refused,
}

impl Statement {
    fn random(random: &mut Random) -> Self {
        let of = random.below(2) as usize;
        let part = random.below(3) as i64;
        match random.below(20) {
            0..=4 => {
                let row = |random: &mut Random| (random.below(12) as i64, random.below(20) as i64);
                let rows = (0..1 + random.below(3)).map(|_| row(random)).collect();
                Insert { to: of, rows }
            }
            5 => InsertSelect { to: of, from: random.below(2) as usize, below: part * 3 },
            6 | 7 => Update { of, part, add: 1 + random.below(3) as i64 },
            8 => UpdateByOther { of, above: random.below(20) as i64 },
            9 => Delete { of, part },
            10 => DeleteNotInOther { of },
            11 => DeleteNotInSelf { of },
            12 => MergeSelf { of },
            13 => MergeOther { of },
            14 => Overwrite { of },
            15 if random.below(3) == 0 => Truncate { of },
            15 | 16 => Both,
            17 | 18 => All { of },
            _ => Flush { of },
        }
    }

    /// Whether it reads no rows but those that it changes, or one table.
    fn is_plain(&self) -> bool {
        matches!(
            self,
            Insert { .. }
                | Update { .. }
                | Delete { .. }
                | Truncate { .. }
                | All { .. }
                | Flush { .. }
        )
    }

    fn sql(&self) -> String {
        let names = |of: &usize| (NAMES[*of], NAMES[1 - *of]);
        match self {
            Insert { to, rows } => {
                let rows: Vec<String> = rows.iter().map(|(k, v)| format!("({k}, {v})")).collect();
                format!("INSERT INTO {} VALUES {}", NAMES[*to], rows.join(", "))
            }
            InsertSelect { to, from, below } => format!(
                "INSERT INTO {} SELECT k, v + 1 FROM {} WHERE k < {below}",
                NAMES[*to], NAMES[*from]
            ),
            Update { of, part, add } => {
                format!("UPDATE {} SET v = v + {add} WHERE k % 3 = {part}", NAMES[*of])
            }
            UpdateByOther { of, above } => {
                let (it, other) = names(of);
                format!(
                    "MERGE INTO {it} AS t USING (SELECT DISTINCT k FROM {other} WHERE v > {above}) \
                     AS s ON t.k = s.k WHEN MATCHED THEN UPDATE SET v = t.v + 1"
                )
            }
            Delete { of, part } => format!("DELETE FROM {} WHERE k % 3 = {part}", NAMES[*of]),
            DeleteNotInOther { of } => {
                let (it, other) = names(of);
                format!("DELETE FROM {it} WHERE k NOT IN (SELECT k FROM {other})")
            }
            DeleteNotInSelf { of } => {
                let (it, _) = names(of);
                format!("DELETE FROM {it} WHERE k NOT IN (SELECT k FROM {it})")
            }
            MergeSelf { of } => {
                let (it, _) = names(of);
                format!(
                    "MERGE INTO {it} AS t USING (SELECT k, max(v) AS w FROM {it} GROUP BY k) AS s \
                     ON t.k = s.k WHEN MATCHED THEN UPDATE SET v = s.w + 1"
                )
            }
            MergeOther { of } => {
                let (it, other) = names(of);
                format!(
                    "MERGE INTO {it} AS t USING (SELECT DISTINCT k FROM {other}) AS s ON t.k = s.k \
                     WHEN MATCHED THEN UPDATE SET v = t.v + 1 \
                     WHEN NOT MATCHED THEN INSERT (k, v) VALUES (s.k, 0) \
                     WHEN NOT MATCHED BY SOURCE THEN DELETE"
                )
            }
            Overwrite { of } => {
                let (it, other) = names(of);
                format!("INSERT OVERWRITE {it} SELECT k, v FROM {other}")
            }
            Truncate { of } => format!("TRUNCATE {}", NAMES[*of]),
            Both => "SELECT k, v FROM a UNION ALL SELECT k + 1000, v FROM b".to_owned(),
            All { of } => format!("SELECT k, v FROM {}", NAMES[*of]),
            Flush { of } => format!("FLUSH TABLE {}", NAMES[*of]),
        }
    }

    /// Does what the statement does to a state.
    fn run(&self, state: &mut State) -> Answer {
        let answer = match self {
            Insert { to, rows } => add(state, *to, rows.clone()),
            InsertSelect { to, .. } => {
                let rows = self.selected(state);
                add(state, *to, rows)
            }
            Update { of, part, add } => {
                change(state, *of, |k, v| (k % 3 == *part).then(|| v + add))
            }
            UpdateByOther { of, above } => {
                let other = state[1 - *of].clone();
                let named = |k| other.iter().any(|(o, v)| *o == k && v > above);
                change(state, *of, |k, v| named(k).then(|| v + 1))
            }
            Delete { of, part } => keep(state, *of, |k| k % 3 != *part),
            DeleteNotInOther { of } => {
                let other = state[1 - *of].clone();
                keep(state, *of, |k| other.iter().any(|(o, _)| *o == k))
            }
            DeleteNotInSelf { .. } => Answer::Changed(0),
            MergeSelf { of } => {
                let old = state[*of].clone();
                let most = |k| old.iter().filter(|(o, _)| *o == k).map(|(_, v)| *v).max();
                change(state, *of, |k, _| most(k).map(|most| most + 1))
            }
            MergeOther { of } => merge(state, *of),
            Overwrite { of } => {
                state[*of] = state[1 - *of].clone();
                Answer::Changed(state[*of].len() as u64)
            }
            Truncate { of } => {
                state[*of].clear();
                Answer::Nothing
            }
            Both => {
                let [a, b] = state;
                let b = b.iter().map(|(k, v)| (k + 1000, *v));
                Answer::Rows(a.iter().copied().chain(b).collect())
            }
            All { of } => Answer::Rows(state[*of].clone()),
            Flush { .. } => Answer::Nothing,
        };
        state.iter_mut().for_each(|rows| rows.sort_unstable());
        answer
    }

    /// The rows that an INSERT … SELECT adds.
    fn selected(&self, state: &State) -> Vec<(i64, i64)> {
        let InsertSelect { from, below, .. } = self else { return Vec::new() };
        let rows = state[*from].iter().filter(|(k, _)| k < below);
        rows.map(|(k, v)| (*k, v + 1)).collect()
    }
}

fn add(state: &mut State, to: usize, rows: Vec<(i64, i64)>) -> Answer {
    let count = rows.len() as u64;
    state[to].extend(rows);
    Answer::Changed(count)
}

fn change(state: &mut State, of: usize, new: impl Fn(i64, i64) -> Option<i64>) -> Answer {
    let mut changed = 0;
    for (k, v) in &mut state[of] {
        if let Some(new) = new(*k, *v) {
            *v = new;
            changed += 1;
        }
    }
    Answer::Changed(changed)
}

fn keep(state: &mut State, of: usize, stays: impl Fn(i64) -> bool) -> Answer {
    let before = state[of].len();
    state[of].retain(|(k, _)| stays(*k));
    Answer::Changed((before - state[of].len()) as u64)
}

fn merge(state: &mut State, of: usize) -> Answer {
    let mut keys: Vec<i64> = state[1 - of].iter().map(|(k, _)| *k).collect();
    keys.sort_unstable();
    keys.dedup();
    let old = std::mem::take(&mut state[of]);
    let mut changed = old.len() as u64;
    for k in &keys {
        let matched = old.iter().filter(|(o, _)| o == k);
        let before = state[of].len();
        state[of].extend(matched.map(|(k, v)| (*k, v + 1)));
        if state[of].len() == before {
            state[of].push((*k, 0));
            changed += 1;
        }
    }
    Answer::Changed(changed)
}

/// Part of a statement that happens at one moment.
#[derive(Clone, Copy, Debug)]
enum Event {
    Whole(usize),
    Read(usize),
    Add(usize),
}

/// Whether some order of the statements explains their answers and the state afterwards.
fn explained(before: &State, sent: &[(Statement, Answer)], after: &State) -> bool {
    let events = sent.iter().enumerate().filter(|(_, (_, answer))| *answer != Answer::Refused);
    let events: Vec<Event> = events
        .flat_map(|(number, (statement, _))| match statement {
            InsertSelect { .. } => vec![Event::Read(number), Event::Add(number)],
            _ => vec![Event::Whole(number)],
        })
        .collect();
    let mut read = vec![None; sent.len()];
    search(before.clone(), &events, sent, &mut read, after)
}

fn search(
    state: State,
    left: &[Event],
    sent: &[(Statement, Answer)],
    read: &mut Vec<Option<Vec<(i64, i64)>>>,
    after: &State,
) -> bool {
    if left.is_empty() {
        return state == *after;
    }
    (0..left.len()).any(|place| {
        let mut rest = left.to_vec();
        let event = rest.remove(place);
        let mut next = state.clone();
        match event {
            Event::Whole(number) => {
                let (statement, answer) = &sent[number];
                let mut expected = statement.run(&mut next);
                if let Answer::Rows(rows) = &mut expected {
                    rows.sort_unstable();
                }
                expected == *answer && search(next, &rest, sent, read, after)
            }
            Event::Read(number) => {
                let before = read[number].replace(sent[number].0.selected(&next));
                let found = search(next, &rest, sent, read, after);
                read[number] = before;
                found
            }
            Event::Add(number) => {
                let (Some(rows), (InsertSelect { to, .. }, answer)) =
                    (&read[number], &sent[number])
                else {
                    return false;
                };
                let expected = add(&mut next, *to, rows.clone());
                next[*to].sort_unstable();
                expected == *answer && search(next, &rest, sent, read, after)
            }
        }
    })
}

/// xorshift64*.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16) % bound
    }
}

async fn send(session: &Session, sql: &str) -> Result<Answer, stoa_error::Error> {
    let rows = match session.sql(sql).await? {
        Outcome::Rows(rows) => rows,
        Outcome::CopyIn(_) => panic!("a COPY waits"),
        Outcome::Done(completion) => {
            return Ok(match completion.tag.split(' ').next() {
                Some("INSERT" | "UPDATE" | "DELETE" | "MERGE") => Answer::Changed(completion.rows),
                _ => Answer::Nothing,
            });
        }
    };
    let mut found = Vec::new();
    for batch in rows.collect().await? {
        let columns = [0, 1].map(|column| {
            let column = batch.column(column);
            let cast = arrow::compute::cast(column, &arrow::datatypes::DataType::Int64).unwrap();
            arrow::array::AsArray::as_primitive::<arrow::datatypes::Int64Type>(&cast).clone()
        });
        found.extend(columns[0].values().iter().copied().zip(columns[1].values().iter().copied()));
    }
    found.sort_unstable();
    Ok(Answer::Rows(found))
}

#[expect(clippy::disallowed_methods, reason = "the size of a test")]
fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn statements_at_once_have_an_order() {
    let directory = tempfile::tempdir().unwrap();
    let url = |name: &str| Url::from_directory_path(directory.path().join(name)).unwrap();
    let logs = Some(url("log"));
    let options = EngineOptions { logs, ..EngineOptions::new(url("warehouse")) };
    let engine = Engine::open(options).await.unwrap();
    let sessions: Vec<Arc<Session>> =
        (0..SESSIONS).map(|_| engine.session(SessionOptions::default())).collect();
    for name in NAMES {
        let create = format!("CREATE TABLE {name} (k BIGINT, v BIGINT)");
        send(&sessions[0], &create).await.unwrap();
    }
    let seed = setting("STOA_MODEL_SEED", 20_260_131);
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).max(1));
    let mut state: State = Default::default();
    let (mut changes, mut refused) = (0_u64, 0_u64);
    let all = setting("STOA_MODEL_ALL", 0) == 1;
    for turn in 0..setting("STOA_MODEL_TURNS", 40) {
        let count = 1 + random.below(SESSIONS as u64) as usize;
        let mut statements: Vec<Statement> =
            (0..count).map(|_| Statement::random(&mut random)).collect();
        if !all && !statements.iter().all(Statement::is_plain) {
            statements.retain(|statement| !statement.is_plain());
            statements.truncate(1);
        }
        let running: Vec<_> = statements
            .iter()
            .zip(&sessions)
            .map(|(statement, session)| {
                let (session, sql) = (Arc::clone(session), statement.sql());
                stoa_env::task::spawn(async move { send(&session, &sql).await })
            })
            .collect();
        let mut sent = Vec::new();
        for (running, statement) in running.into_iter().zip(statements) {
            let answer = running.await.unwrap().unwrap_or_else(|error| {
                let sql = statement.sql();
                assert_eq!(error.sqlstate(), "40001", "seed {seed}, turn {turn}: {sql}: {error:?}");
                Answer::Refused
            });
            changes += u64::from(matches!(answer, Answer::Changed(_)));
            refused += u64::from(answer == Answer::Refused);
            sent.push((statement, answer));
        }
        let mut after: State = Default::default();
        for (rows, name) in after.iter_mut().zip(NAMES) {
            let all = send(&sessions[0], &format!("SELECT k, v FROM {name}")).await.unwrap();
            let Answer::Rows(found) = all else { panic!("a SELECT gave no rows") };
            *rows = found;
        }
        assert!(
            explained(&state, &sent, &after),
            "seed {seed}, turn {turn}: no order explains {sent:#?}\nbefore {state:?}\nafter {after:?}"
        );
        state = after;
        // Not so many that turns get slow.
        if state.iter().any(|rows| rows.len() > 60) {
            send(&sessions[0], "TRUNCATE a").await.unwrap();
            send(&sessions[0], "TRUNCATE b").await.unwrap();
            state = Default::default();
        }
    }
    assert!(changes > 0 && refused < changes, "{refused} refused, {changes} not");
}

#[test]
fn a_lost_update_is_not_explained() {
    let before: State = [vec![(1, 0)], Vec::new()];
    let update = || (Update { of: 0, part: 1, add: 1 }, Answer::Changed(1));
    let after = |v| [vec![(1, v)], Vec::new()];
    assert!(explained(&before, &[update(), update()], &after(2)));
    assert!(!explained(&before, &[update(), update()], &after(1)));
    assert!(!explained(&before, &[update()], &after(2)));
    let refused = (Update { of: 0, part: 1, add: 1 }, Answer::Refused);
    assert!(explained(&before, &[update(), refused.clone()], &after(1)));
    assert!(!explained(&before, &[update(), refused], &after(2)));
}

#[test]
fn skew_and_mixed_states_are_not_explained() {
    // Each takes the place of the other's rows: one of them must have seen what the other did.
    let before: State = [vec![(1, 1)], vec![(2, 2)]];
    let overwrites =
        [(Overwrite { of: 0 }, Answer::Changed(1)), (Overwrite { of: 1 }, Answer::Changed(1))];
    assert!(!explained(&before, &overwrites, &[vec![(2, 2)], vec![(1, 1)]]));
    assert!(explained(&before, &overwrites, &[vec![(2, 2)], vec![(2, 2)]]));
    // A query that saw one table before a change of both, and the other after it.
    let truncated = (Truncate { of: 0 }, Answer::Nothing);
    let insert = (Insert { to: 1, rows: vec![(3, 3)] }, Answer::Changed(1));
    let after: State = [Vec::new(), vec![(2, 2), (3, 3)]];
    let both = |rows: &[(i64, i64)]| (Both, Answer::Rows(rows.to_vec()));
    let seen = both(&[(1, 1), (1002, 2), (1003, 3)]);
    assert!(explained(&before, &[truncated.clone(), insert.clone(), seen], &after));
    let seen = both(&[(1002, 2), (1003, 3), (1004, 4)]);
    assert!(!explained(&before, &[truncated, insert, seen], &after));
    // A row that an acknowledged INSERT added, and a DELETE that can find none took away.
    let delete = (DeleteNotInSelf { of: 0 }, Answer::Changed(1));
    assert!(!explained(&before, &[delete], &[Vec::new(), vec![(2, 2)]]));
}
