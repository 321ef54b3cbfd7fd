//! What a group declares, as data: for schemas and documents.

use crate::figure::Figure;
use crate::kind::{Kind, Type, Unit};
use crate::seen::{Seen, Shape};

/// A group.
#[derive(Clone, Debug)]
pub struct Declaration {
    /// Member of `/v1/status` and table of `system`.
    pub name: &'static str,
    /// What documents call one row.
    pub type_name: &'static str,
    /// What it is about.
    pub help: &'static str,
    /// How many rows it has.
    pub shape: Shape,
    /// Who may see them.
    pub seen: Seen,
    /// Whether it is a table of `system`.
    pub is_table: bool,
    /// Whether it is in `/v1/status`.
    pub is_in_status: bool,
    /// Whether HTTP answers with it, in `/v1/status` or elsewhere.
    pub is_in_json: bool,
    /// Columns of the table, members of the objects in JSON.
    pub columns: Vec<Column>,
    /// Figures that Prometheus sees.
    pub metrics: Vec<Column>,
}

/// A figure.
#[derive(Clone, Debug)]
pub struct Column {
    /// Its name in JSON.
    pub name: &'static str,
    /// How it behaves over time.
    pub kind: Kind,
    /// What it counts or measures in.
    pub unit: Unit,
    /// What it says.
    pub help: &'static str,
    /// What its value is.
    pub r#type: Type,
    /// Whether it may be NULL.
    pub is_nullable: bool,
    /// Who may see it.
    pub seen: Seen,
    /// Whether daemons of a cluster have it together, so that their sum says something.
    pub is_summed: bool,
    /// Under which name Prometheus has it.
    pub metric: Option<MetricName>,
}

/// A metric, or a part of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetricName {
    /// Name of the family.
    pub name: &'static str,
    /// What the family is.
    pub help: &'static str,
    /// Label and its value, where other figures are in the same family.
    pub part: Option<(&'static str, &'static str)>,
}

impl Column {
    pub(crate) fn of<S>(figure: &Figure<S>, group: Seen) -> Self {
        let metric = figure.metric.map(|metric| MetricName {
            name: metric.name,
            help: metric.part.map_or(figure.help, |(help, _)| help),
            part: metric.part.map(|(_, part)| part),
        });
        Self {
            name: figure.name,
            kind: figure.kind,
            unit: figure.unit,
            help: figure.help,
            r#type: figure.r#type(),
            is_nullable: figure.is_nullable(),
            seen: figure.seen.unwrap_or(group),
            is_summed: figure.is_summed(),
            metric,
        }
    }

    /// Its name in SQL: a moment is a timestamp there, not a number of milliseconds.
    pub fn sql_name(&self) -> &'static str {
        match self.name {
            "unix_ms" => "at",
            name => name.strip_suffix("_unix_ms").unwrap_or(name),
        }
    }
}
