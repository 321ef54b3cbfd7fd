//! What holds for every declaration.
#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};

use stoa_figures::{
    Column, Declaration, Group, Kind, MetricName, Seen, Shape, Type, Unit, Viewer, declarations,
    system_table,
};

fn all() -> Vec<(Declaration, Column)> {
    let groups = declarations();
    groups
        .iter()
        .flat_map(|group| {
            let columns = group.columns.iter().chain(&group.metrics);
            columns.map(|column| (group.clone(), column.clone()))
        })
        .collect()
}

#[test]
fn names_are_there_once() {
    let mut groups = BTreeSet::new();
    let mut types = BTreeSet::new();
    for group in declarations() {
        assert!(groups.insert(group.name), "{} twice", group.name);
        assert!(types.insert(group.type_name), "{} twice", group.type_name);
        let mut columns = BTreeSet::new();
        let mut in_sql = BTreeSet::new();
        for column in &group.columns {
            assert!(columns.insert(column.name), "{}.{} twice", group.name, column.name);
            assert!(in_sql.insert(column.sql_name()), "{}.{}", group.name, column.sql_name());
        }
    }
}

#[test]
fn every_figure_says_what_it_is() {
    let is_name =
        |name: &str| name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    for (group, column) in all() {
        let place = format!("{}.{}", group.name, column.name);
        assert!(is_name(group.name) && is_name(column.name), "{place}");
        assert!(group.help.ends_with('.') && !group.help.contains('\n'), "{place}");
        assert!(column.help.ends_with('.') && column.help.len() > 3, "{place}: {}", column.help);
        assert!(!column.help.contains(['\n', '|']), "{place}: {}", column.help);
        assert!(!column.unit.name().is_empty(), "{place} has no unit");
        assert!(!column.kind.name().is_empty(), "{place} has no kind");
    }
}

/// Units are in names, at their end, but for `_max`.
#[test]
fn names_say_their_unit() {
    for (group, column) in all() {
        let name = column.name.strip_suffix("_max").unwrap_or(column.name);
        let place = format!("{}.{}", group.name, column.name);
        match column.unit {
            Unit::Bytes => assert!(name.contains("bytes"), "{place}"),
            Unit::Dollars => assert!(name.ends_with("_usd"), "{place}"),
            Unit::Seconds => assert!(name.ends_with("_s"), "{place}"),
            Unit::Milliseconds => assert!(name.ends_with("_ms"), "{place}"),
            Unit::Microseconds => {
                assert!(name.contains("_us") || name.contains("max_us"), "{place}")
            }
            Unit::Moment => assert!(name.ends_with("unix_ms"), "{place}"),
            Unit::Ratio => {
                assert!(name == "progress" || name.ends_with("_ratio"), "{place}");
            }
            Unit::YesNo | Unit::Of(_) | Unit::Text => {
                let others = ["_bytes", "_usd", "_ms", "_us", "_limit"];
                assert!(!others.iter().any(|unit| name.ends_with(unit)), "{place}");
            }
        }
    }
}

#[test]
fn types_fit_kinds() {
    for (group, column) in all() {
        let fits = match column.kind {
            Kind::Counter => matches!(column.r#type, Type::Integer | Type::Float),
            Kind::Gauge => matches!(column.r#type, Type::Integer | Type::Float | Type::Boolean),
            Kind::Histogram => column.r#type == Type::Histogram,
            Kind::Text => matches!(column.r#type, Type::Text | Type::Texts),
            Kind::Time => column.r#type == Type::Time,
            Kind::Key => matches!(column.r#type, Type::Text | Type::Integer) && !column.is_nullable,
        };
        assert!(fits, "{}.{} is {:?}", group.name, column.name, column.r#type);
    }
}

/// What Prometheus' own rules (`promtool check metrics`) want of names.
#[test]
fn metrics_have_names_as_prometheus_wants_them() {
    let mut families: BTreeMap<&str, (Kind, MetricName)> = BTreeMap::new();
    let mut series = BTreeSet::new();
    for group in declarations() {
        for column in &group.metrics {
            let metric = column.metric.unwrap();
            let name = metric.name;
            assert!(name.starts_with("stoa_"), "{name}");
            assert_eq!(name.ends_with("_total"), column.kind == Kind::Counter, "{name}");
            let is_base = |word: &str| !["ms", "us", "milliseconds"].contains(&word);
            assert!(name.split('_').all(is_base), "{name}");
            let wanted = match column.unit {
                Unit::Bytes => "_bytes",
                Unit::Dollars => "_dollars",
                Unit::Seconds | Unit::Milliseconds | Unit::Microseconds => "_seconds",
                _ => "",
            };
            assert!(name.contains(wanted), "{name} is in {}", column.unit.name());
            assert!(series.insert((name, metric.part)), "{name} twice");
            let (kind, first) = families.entry(name).or_insert((column.kind, metric));
            assert_eq!((*kind, first.help), (column.kind, metric.help), "{name}");
            let label = |metric: &MetricName| metric.part.map(|(label, _)| label);
            assert_eq!(label(first), label(&metric), "{name}");
        }
    }
    assert!(families.len() > 60, "{}", families.len());
}

#[test]
fn one_name_for_one_thing() {
    // Bounds are `…_max`, whatever they bound.
    for (group, column) in all() {
        for other in ["limit", "waiting_limit", "reserved", "used_bytes", "answers_reused"] {
            assert!(!column.name.contains(other), "{}.{}", group.name, column.name);
        }
        if let Some(of) = column.name.strip_suffix("_max")
            && of != "queue"
        {
            let is_there = group.columns.iter().any(|column| column.name == of);
            assert!(is_there, "{}.{} bounds nothing", group.name, column.name);
        }
    }
}

#[test]
fn who_may_see_what_is_as_documented() {
    let seen: Vec<(&str, Seen)> =
        declarations().iter().filter(|g| g.is_table).map(|g| (g.name, g.seen)).collect();
    let everyone = [
        "totals",
        "rate",
        "latency",
        "latency_paths",
        "machine",
        "history",
        "executors",
        "pools",
        "refusals",
        "cache",
        "stores",
        "log",
        "maintenance",
        "catalog",
        "cluster",
        "daemons",
        "cluster_events",
        "roles",
    ];
    for (name, seen) in seen {
        let wanted = match name {
            "queries" => Seen::Owner,
            "query_shapes" => Seen::Superusers,
            name if name.starts_with("wm_") => Seen::Superusers,
            "ingest" | "tables" | "grants" => Seen::Granted,
            name if everyone.contains(&name) => Seen::Everyone,
            name => panic!("say here who may see {name}"),
        };
        assert_eq!(seen, wanted, "{name}");
    }
    let maintenance = system_table("maintenance").unwrap();
    let hidden: Vec<&str> = maintenance
        .columns
        .iter()
        .filter(|column| column.seen == Seen::Superusers)
        .map(|column| column.name)
        .collect();
    assert_eq!(hidden, ["table", "work", "since_unix_ms", "errors"]);
    assert!(system_table("nothing").is_none());
}

#[test]
fn what_says_nothing_is_closed() {
    static SILENT: Group<u8> = Group::new("silent", "Silent", "Says nothing.", Shape::Many, &[]);
    let viewer = |is_superuser| Viewer { role: "ann", is_superuser };
    assert_eq!((SILENT.seen(), Seen::default()), (Seen::Superusers, Seen::Superusers));
    assert!(!SILENT.admits(viewer(false)) && SILENT.admits(viewer(true)));
    assert!(SILENT.seen_rows(&[1, 2], viewer(false)).is_empty());
    assert_eq!(SILENT.seen_rows(&[1, 2], viewer(true)), [&1, &2]);
}
