//! Statements that differ only in their literals, counted together.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::RandomState;
use parking_lot::Mutex;

use crate::run::latency::LatencyHistogram;
use crate::run::paths::QueryPath;
use crate::run::spent::Spent;
use stoa_sql::fingerprint::Fingerprint;

/// Shapes that are counted; when there are more, the ones asked least are forgotten.
const SHAPES_MAX: usize = 1000;

/// Characters of a text that is counted by itself.
const TEXT_MAX: usize = 200;

/// Statements of one shape since the process started.
#[derive(Clone, Debug)]
pub struct QueryShape {
    /// The text without its literals.
    pub sql: Arc<str>,
    /// Statements that ended.
    pub queries: u64,
    /// Those that ended with an error or were cancelled.
    pub failed: u64,
    /// Those that were answered without the planner.
    pub short_path: u64,
    /// Those that were given the answer of an equal one.
    pub reused: u64,
    /// Rows returned.
    pub rows: u64,
    /// Bytes read from storage.
    pub bytes_read: u64,
    /// Read requests to storage.
    pub requests: u64,
    /// What all together took of caches and object stores.
    pub spent: Spent,
    /// Time of all together, microseconds.
    pub total_us: u64,
    /// The longest that was computed, microseconds.
    pub max_us: u64,
    /// Counts of those that were computed by latency, as [`LatencyHistogram::snapshot`] gives them.
    pub latency: Vec<u64>,
}

/// What one statement adds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ended {
    pub(crate) failed: bool,
    pub(crate) path: QueryPath,
    pub(crate) rows: u64,
    pub(crate) bytes_read: u64,
    pub(crate) requests: u64,
    pub(crate) spent: Spent,
    pub(crate) elapsed_us: u64,
}

/// Texts are long, and each statement is looked up.
type Shapes = HashMap<Arc<str>, Counted, RandomState>;

/// All shapes.
#[derive(Default)]
pub(crate) struct QueryShapes(Mutex<Shapes>);

#[derive(Default)]
struct Counted {
    queries: u64,
    failed: u64,
    short_path: u64,
    reused: u64,
    rows: u64,
    bytes_read: u64,
    requests: u64,
    spent: Spent,
    total_us: u64,
    max_us: u64,
    latency: LatencyHistogram,
}

impl Counted {
    fn add(&mut self, ended: &Ended) {
        self.queries += 1;
        self.failed += u64::from(ended.failed);
        self.short_path += u64::from(ended.path == QueryPath::Short);
        self.rows += ended.rows;
        self.bytes_read += ended.bytes_read;
        self.requests += ended.requests;
        self.spent = self.spent.plus(&ended.spent);
        self.total_us += ended.elapsed_us;
        // An answer given again would hide what computing it takes.
        if ended.path == QueryPath::Reused {
            self.reused += 1;
            return;
        }
        self.max_us = self.max_us.max(ended.elapsed_us);
        self.latency.record(ended.elapsed_us);
    }
}

impl QueryShapes {
    /// Counts a statement by its fingerprint, or by how its text begins where it has none.
    pub(crate) fn add(&self, sql: &str, fingerprint: Option<&Fingerprint<'_>>, ended: Ended) {
        let text = fingerprint.map_or_else(|| beginning(sql), |known| known.text.as_str());
        let mut shapes = self.0.lock();
        if let Some(counted) = shapes.get_mut(text) {
            return counted.add(&ended);
        }
        if shapes.len() >= SHAPES_MAX {
            forget_rare(&mut shapes);
        }
        shapes.entry(text.into()).or_default().add(&ended);
    }

    /// All shapes, those that took most time first.
    pub(crate) fn all(&self) -> Vec<QueryShape> {
        let shapes = self.0.lock();
        let mut all: Vec<QueryShape> = shapes
            .iter()
            .map(|(sql, counted)| QueryShape {
                sql: sql.clone(),
                queries: counted.queries,
                failed: counted.failed,
                short_path: counted.short_path,
                reused: counted.reused,
                rows: counted.rows,
                bytes_read: counted.bytes_read,
                requests: counted.requests,
                spent: counted.spent,
                total_us: counted.total_us,
                max_us: counted.max_us,
                latency: counted.latency.snapshot(),
            })
            .collect();
        drop(shapes);
        all.sort_by_key(|shape| std::cmp::Reverse(shape.total_us));
        all
    }
}

/// The first [`TEXT_MAX`] characters.
fn beginning(sql: &str) -> &str {
    sql.char_indices().nth(TEXT_MAX).map_or(sql, |(end, _)| &sql[..end])
}

/// Forgets the tenth that was asked least.
fn forget_rare(shapes: &mut Shapes) {
    let mut counts: Vec<u64> = shapes.values().map(|counted| counted.queries).collect();
    counts.sort_unstable();
    let limit = counts.get(SHAPES_MAX / 10).copied().unwrap_or(0);
    let mut left = SHAPES_MAX / 10;
    shapes.retain(|_, counted| {
        let goes = counted.queries <= limit && left > 0;
        left -= usize::from(goes);
        !goes
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(shapes: &QueryShapes, sql: &str, ended: Ended) {
        shapes.add(sql, Fingerprint::of(sql).as_ref(), ended);
    }

    #[test]
    fn statements_of_one_shape_count_together() {
        let shapes = QueryShapes::default();
        for n in 0..10 {
            let path = if n > 0 { QueryPath::Short } else { QueryPath::Planned };
            let ended = Ended { elapsed_us: n, path, ..Ended::default() };
            add(&shapes, &format!("SELECT a FROM t WHERE b = {n}"), ended);
        }
        add(&shapes, "CREATE TABLE x (a int)", Ended { failed: true, ..Ended::default() });
        let all = shapes.all();
        assert_eq!(&*all[0].sql, "SELECT a FROM t WHERE b = $L0i");
        assert_eq!(
            (all[0].queries, all[0].short_path, all[0].total_us, all[0].max_us),
            (10, 9, 45, 9)
        );
        assert_eq!((all[1].queries, all[1].failed), (1, 1));
    }

    #[test]
    fn answers_given_again_do_not_hide_what_computing_takes() {
        let shapes = QueryShapes::default();
        for (elapsed_us, path) in
            [(9000, QueryPath::Planned), (5, QueryPath::Reused), (99_000, QueryPath::Reused)]
        {
            add(&shapes, "SELECT a FROM t", Ended { elapsed_us, path, ..Ended::default() });
        }
        let shape = &shapes.all()[0];
        assert_eq!((shape.queries, shape.reused, shape.max_us), (3, 2, 9000));
        let p50 = LatencyHistogram::percentile_us(&shape.latency, 0.5, shape.max_us).unwrap();
        assert!((p50 - 9000.0).abs() < 1.0, "{p50}");
    }

    #[test]
    fn what_has_no_fingerprint_counts_by_how_it_begins() {
        let shapes = QueryShapes::default();
        for end in ["a", "b"] {
            let text = format!("INSERT INTO t VALUES ('{}{end}')", "ä".repeat(TEXT_MAX));
            add(&shapes, &text, Ended::default());
        }
        let all = shapes.all();
        assert_eq!((all.len(), all[0].queries), (1, 2));
        assert_eq!(all[0].sql.chars().count(), TEXT_MAX);
        assert_eq!(beginning("short"), "short");
    }

    #[test]
    fn rare_shapes_are_forgotten() {
        let shapes = QueryShapes::default();
        for _ in 0..3 {
            add(&shapes, "SELECT often FROM t", Ended::default());
        }
        for n in 0..3 * SHAPES_MAX {
            add(&shapes, &format!("SELECT c{n} FROM t"), Ended::default());
        }
        let all = shapes.all();
        assert!(all.len() <= SHAPES_MAX);
        assert!(all.iter().any(|shape| &*shape.sql == "SELECT often FROM t"));
    }
}
