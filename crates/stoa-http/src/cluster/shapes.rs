//! Shapes of all daemons together: amounts are added up, latencies are merged.

use std::collections::HashMap;

use serde_json::{Map, Value, json};
use stoa_figures::{Kind, QUERY_SHAPES, Type};

use crate::cluster::latencies::Latencies;
use crate::cluster::report::ShapeReport;

/// Shapes by their text.
#[derive(Default)]
pub(crate) struct MergedShapes(HashMap<String, (Map<String, Value>, Latencies)>);

impl MergedShapes {
    /// Adds those of one daemon.
    pub(crate) fn add(&mut self, shapes: Vec<ShapeReport>) {
        for shape in shapes {
            let Some(Value::String(sql)) = shape.figures.get("sql") else { continue };
            match self.0.get_mut(sql) {
                Some((figures, latency)) => {
                    add(figures, &shape.figures);
                    latency.add(&shape.latency);
                }
                None => {
                    self.0.insert(sql.clone(), (shape.figures, shape.latency));
                }
            }
        }
    }

    /// Those that took most time first.
    pub(crate) fn into_json(self, most: usize) -> Vec<Value> {
        let mut all: Vec<_> = self.0.into_values().collect();
        let total = |figures: &Map<String, Value>| float(figures.get("total_ms"));
        all.sort_by(|(a, _), (b, _)| total(b).total_cmp(&total(a)));
        all.into_iter().take(most).map(|(figures, latency)| finished(figures, &latency)).collect()
    }
}

/// What is an amount is added up; of the rest, the greatest stays.
fn add(sums: &mut Map<String, Value>, more: &Map<String, Value>) {
    for column in QUERY_SHAPES.declaration().columns {
        if !matches!(column.kind, Kind::Counter | Kind::Gauge) {
            continue;
        }
        let (old, new) = (sums.get(column.name), more.get(column.name));
        let value = match (column.is_summed, column.r#type) {
            (true, Type::Integer) => json!(integer(old).saturating_add(integer(new))),
            (true, _) => json!(float(old) + float(new)),
            (false, _) if float(new) > float(old) => new.cloned().unwrap_or_default(),
            (false, _) => continue,
        };
        sums.insert(column.name.to_owned(), value);
    }
}

/// With what follows from all together.
fn finished(mut figures: Map<String, Value>, latency: &Latencies) -> Value {
    for (name, share) in [("p50_ms", 0.5), ("p95_ms", 0.95), ("p99_ms", 0.99)] {
        figures.insert(name.to_owned(), json!(latency.percentile_ms(share)));
    }
    let (hits, misses) = (float(figures.get("chunk_hits")), float(figures.get("chunk_misses")));
    let hit_ratio = (hits + misses > 0.0).then(|| hits / (hits + misses));
    figures.insert("hit_ratio".to_owned(), json!(hit_ratio));
    Value::Object(figures)
}

fn integer(value: Option<&Value>) -> i64 {
    value.and_then(Value::as_i64).unwrap_or_default()
}

fn float(value: Option<&Value>) -> f64 {
    value.and_then(Value::as_f64).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(sql: &str, queries: u64, max_ms: f64, hits: u64, misses: u64) -> ShapeReport {
        let figures = json!({
            "sql": sql, "queries": queries, "total_ms": queries as f64 * 2.0, "max_ms": max_ms,
            "chunk_hits": hits, "chunk_misses": misses, "p50_ms": 1.0, "hit_ratio": 0.1,
        });
        let latency = format!("{{\"{}\":{queries}}}", (max_ms * 1e6) as u64);
        let latency = serde_json::from_str(&latency).unwrap();
        ShapeReport { figures: figures.as_object().unwrap().clone(), latency }
    }

    #[test]
    fn amounts_are_added_and_latencies_merged() {
        let mut merged = MergedShapes::default();
        merged.add(vec![shape("a", 98, 4.0, 30, 0), shape("b", 1, 1.0, 0, 0)]);
        merged.add(vec![shape("a", 2, 800.0, 0, 10), ShapeReport::default()]);
        let all = merged.into_json(9);
        let [a, b] = &all[..] else { panic!("{all:?}") };
        assert_eq!(
            (&a["sql"], &a["queries"], &a["total_ms"]),
            (&json!("a"), &json!(100), &json!(200.0))
        );
        // Within the bucket that ends with 4 ms, and with the longest.
        let [p50, p95, p99] = ["p50_ms", "p95_ms", "p99_ms"].map(|key| a[key].as_f64().unwrap());
        assert!(3.0 < p50 && p50 < p95 && p95 <= 4.0, "{p50} {p95}");
        assert!(600.0 < p99 && p99 <= 800.0, "{p99}");
        assert_eq!((&a["max_ms"], &a["hit_ratio"]), (&json!(800.0), &json!(0.75)));
        assert_eq!((&b["queries"], &b["hit_ratio"]), (&json!(1), &Value::Null));
    }
}
