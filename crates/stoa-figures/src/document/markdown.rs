//! `docs/figures.md`.

use std::fmt::Write as _;

use crate::declaration::{Column, Declaration};
use crate::inventory::declarations;
use crate::kind::{Kind, Unit};

const HEAD: &str = "\
# Figures

<!-- Written by `stoa figures --markdown` from crates/stoa-figures/src/inventory. -->

Every figure that a server shows of itself. A group is an object (or a list of objects) in `GET /v1/status`, a
table in the schema `system`, or both, under one name; its figures have the same names in both. Prometheus
finds those with a metric in `GET /metrics`.

- A *counter* is a sum since the start of the server, a *gauge* is as it is now. A *key* says what a row is about;
  it is a label of the row's metrics.
- Times are timestamps in SQL. In JSON they are milliseconds since 1970-01-01 UTC, and their names end with
  `_unix_ms`: the column `started` is the member `started_unix_ms`.
- Prometheus counts in seconds what others count in `ms` or `µs`.
- Who may see a group matters where clients must log in ([access.md](access.md)). Where nothing is declared, only
  superusers may; others get 42501 from a table, and null in JSON.
- `GET /v1/cluster` shows each figure of all daemons that everyone may see, with the least and the greatest. It adds up
  counters, and gauges that count things or bytes, unless every daemon of the cluster says the same (*same everywhere*).
- `/metrics` asks nobody who he is. Of rows that not everyone may see it shows the sum where clients must log in.
";

/// The page.
pub fn markdown() -> String {
    let mut out = HEAD.to_owned();
    for group in declarations() {
        out += &section(&group);
    }
    out
}

fn section(group: &Declaration) -> String {
    let mut out = format!("\n## `{}`\n\n{}\n\n", group.name, group.help);
    let metrics: Vec<&Column> = group.metrics.iter().collect();
    // Writing to a string cannot fail.
    let _ = writeln!(out, "{} Seen by: {}.\n", places(group), group.seen.name());
    out += "| figure | kind | unit | says | metric |\n|---|---|---|---|---|\n";
    let hidden = metrics.iter().copied().filter(|metric| metric.kind == Kind::Histogram);
    for column in group.columns.iter().chain(hidden) {
        out += &line(column, group);
    }
    out
}

fn places(group: &Declaration) -> String {
    let mut places = Vec::new();
    if group.is_in_status && group.name == "server" {
        places.push("Members of `/v1/status` itself.".to_owned());
    } else if group.is_in_status {
        places.push(format!("`{}` in `/v1/status`.", group.name));
    }
    if group.is_table {
        places.push(format!("Table `system.{}`.", group.name));
    }
    places.join(" ")
}

fn line(column: &Column, group: &Declaration) -> String {
    let Column { kind, unit, help, .. } = column;
    let unit = match unit {
        Unit::Text | Unit::Moment => "",
        unit => unit.name(),
    };
    let metric = column.metric.map_or(String::new(), |metric| match metric.part {
        Some((label, value)) => format!("`{}{{{label}=\"{value}\"}}`", metric.name),
        None => format!("`{}`", metric.name),
    });
    let seen = match column.seen == group.seen {
        true => String::new(),
        false => format!(" Seen by: {}.", column.seen.name()),
    };
    let is_amount = matches!(column.unit, Unit::Bytes | Unit::Dollars | Unit::Of(_));
    let is_same = group.is_in_status && *kind == Kind::Gauge && is_amount && !column.is_summed;
    let same = if is_same { " *Same everywhere.*" } else { "" };
    let name = match kind {
        Kind::Histogram => "–".to_owned(),
        _ if group.is_table => format!("`{}`", column.sql_name()),
        _ => format!("`{}`", column.name),
    };
    format!("| {name} | {} | {unit} | {help}{same}{seen} | {metric} |\n", kind.name())
}
