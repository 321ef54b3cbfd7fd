//! Figures in Prometheus' text exposition format, version 0.0.4.
//!
//! **Invariants:** the samples of a family stand together, below its `# HELP` and `# TYPE`, which are there
//! once; a family without samples is left out.

use std::fmt::Write as _;

use crate::figure::{Figure, Metric};
use crate::group::Group;
use crate::kind::{Kind, Unit};
use crate::seen::Seen;
use crate::snapshot::{Snapshot, Visitor};
use crate::value::{Histogram, Value};

/// All metrics. They are for whoever watches over the server and is not asked for a role: of rows that not
/// everyone may see there is only the sum, unless `is_open_to_all`.
pub fn prometheus(snapshot: &Snapshot, is_open_to_all: bool) -> String {
    let mut exposition = Exposition { is_open_to_all, families: Vec::new() };
    snapshot.visit(&mut exposition);
    exposition.families.into_iter().map(|family| family.head + &family.samples).collect()
}

struct Exposition {
    is_open_to_all: bool,
    families: Vec<Text>,
}

/// A family as text.
struct Text {
    name: &'static str,
    head: String,
    samples: String,
}

impl Visitor for Exposition {
    fn visit<S>(&mut self, group: &Group<S>, rows: &[S]) {
        let is_summed = !self.is_open_to_all && group.seen() != Seen::Everyone;
        let labels: Vec<String> = rows.iter().map(|row| labels(group, row)).collect();
        for figure in group.figures {
            let Some(metric) = figure.metric else { continue };
            // Of single figures that not everyone may see there is no sum that would hide them.
            if figure.seen.is_some() && !self.is_open_to_all {
                continue;
            }
            let samples = match is_summed {
                true => sum_of(figure, &metric, rows),
                false => rows
                    .iter()
                    .zip(&labels)
                    .map(|(row, of)| sample(figure, &metric, of, row))
                    .collect(),
            };
            self.add(figure, &metric, samples);
        }
    }
}

impl Exposition {
    fn add<S>(&mut self, figure: &Figure<S>, metric: &Metric, samples: String) {
        if samples.is_empty() {
            return;
        }
        match self.families.iter_mut().find(|family| family.name == metric.name) {
            Some(family) => family.samples += &samples,
            None => {
                let help = metric.part.map_or(figure.help, |(help, _)| help);
                let kind = match figure.kind {
                    Kind::Counter => "counter",
                    Kind::Histogram => "histogram",
                    Kind::Gauge | Kind::Text | Kind::Time | Kind::Key => "gauge",
                };
                let help = help.replace('\\', r"\\");
                let name = metric.name;
                let head = format!("# HELP {name} {help}\n# TYPE {name} {kind}\n");
                self.families.push(Text { name, head, samples });
            }
        }
    }
}

/// The labels that say what a row is about.
fn labels<S>(group: &Group<S>, row: &S) -> String {
    let keys = group.figures.iter().filter(|figure| figure.kind == Kind::Key);
    let of = |figure: &Figure<S>| match figure.value(row) {
        Value::Text(text) => label(figure.name, text),
        value => label(figure.name, &value.number().unwrap_or_default().to_string()),
    };
    keys.map(of).collect::<Vec<_>>().join(",")
}

fn label(name: &str, value: &str) -> String {
    let value = value.replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n");
    format!("{name}=\"{value}\"")
}

fn join(labels: &str, more: &str) -> String {
    [labels, more].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(",")
}

fn sample<S>(figure: &Figure<S>, metric: &Metric, labels: &str, row: &S) -> String {
    let value = figure.value(row);
    match value {
        Value::Histogram(histogram) => return buckets(metric.name, labels, histogram),
        // A text is the label of a metric that is always 1.
        Value::Text(text) => {
            return line(metric.name, &join(labels, &label(figure.name, text)), 1.0);
        }
        _ => {}
    }
    let part = metric.part.map(|(_, (name, value))| label(name, value)).unwrap_or_default();
    let number = value.number().map(|number| in_base_unit(figure.unit, number));
    number.map(|number| line(metric.name, &join(labels, &part), number)).unwrap_or_default()
}

/// All rows as one, without saying what they are about.
fn sum_of<S>(figure: &Figure<S>, metric: &Metric, rows: &[S]) -> String {
    let numbers = rows.iter().filter_map(|row| figure.value(row).number());
    // An empty sum of floats is -0.
    let sum = numbers.fold(0.0, |sum, number| sum + number);
    let part = metric.part.map(|(_, (name, value))| label(name, value)).unwrap_or_default();
    line(metric.name, &part, in_base_unit(figure.unit, sum))
}

/// Dividing gives the shortest digits: 1500 ms are 1.5 s.
fn in_base_unit(unit: Unit, number: f64) -> f64 {
    number / unit.per_base()
}

fn buckets(name: &str, labels: &str, histogram: &Histogram) -> String {
    let bucket = |le: String, count: u64| {
        line(&format!("{name}_bucket"), &join(labels, &label("le", &le)), count as f64)
    };
    let mut out = String::new();
    for (upper, count) in &histogram.buckets {
        out += &bucket(upper.to_string(), *count);
    }
    out += &bucket("+Inf".to_owned(), histogram.count);
    out += &line(&format!("{name}_sum"), labels, histogram.sum);
    out + &line(&format!("{name}_count"), labels, histogram.count as f64)
}

fn line(name: &str, labels: &str, value: f64) -> String {
    let mut out = String::from(name);
    // Writing to a string cannot fail.
    let _ = match labels {
        "" => writeln!(out, " {value}"),
        _ => writeln!(out, "{{{labels}}} {value}"),
    };
    out
}
