//! Figures that belong together, and who may see them.

use crate::declaration::{Column, Declaration};
use crate::figure::Figure;
use crate::kind::Type;
use crate::seen::{Seen, Shape, Viewer};
use crate::value::Value;

/// Who sees which rows.
#[derive(Debug)]
enum Rule<S: 'static> {
    Superusers,
    Everyone,
    Granted,
    /// The role whose row it is.
    Owner(fn(&S) -> &str),
}

/// Figures under one name. Closed until [`Group::seen_by`] opens it.
#[derive(Debug)]
pub struct Group<S: 'static> {
    pub(crate) name: &'static str,
    type_name: &'static str,
    pub(crate) help: &'static str,
    pub(crate) shape: Shape,
    pub(crate) figures: &'static [Figure<S>],
    pub(crate) is_table: bool,
    pub(crate) is_in_status: bool,
    is_in_json: bool,
    rule: Rule<S>,
}

impl<S: 'static> Group<S> {
    /// For superusers only, and shown nowhere yet. `type_name` is what documents call one row.
    pub const fn new(
        name: &'static str,
        type_name: &'static str,
        help: &'static str,
        shape: Shape,
        figures: &'static [Figure<S>],
    ) -> Self {
        let (is_table, is_in_status, is_in_json) = (false, false, false);
        let rule = Rule::Superusers;
        Self { name, type_name, help, shape, figures, is_table, is_in_status, is_in_json, rule }
    }

    /// As a table of the schema `system`.
    #[must_use]
    pub const fn table(mut self) -> Self {
        self.is_table = true;
        self
    }

    /// In `/v1/status`.
    pub(crate) const fn in_status(mut self) -> Self {
        self.is_in_status = true;
        self.is_in_json = true;
        self
    }

    /// In an answer of HTTP that is its own.
    pub(crate) const fn in_json(mut self) -> Self {
        self.is_in_json = true;
        self
    }

    /// For whoever is logged in.
    pub(crate) const fn for_everyone(mut self) -> Self {
        self.rule = Rule::Everyone;
        self
    }

    /// Rows about tables, for those who may read something of them.
    pub(crate) const fn for_granted(mut self) -> Self {
        self.rule = Rule::Granted;
        self
    }

    /// Each row for the role that it is about.
    pub(crate) const fn for_owner(mut self, owner: fn(&S) -> &str) -> Self {
        self.rule = Rule::Owner(owner);
        self
    }

    /// Its name, also of the table.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Who may see its rows.
    pub fn seen(&self) -> Seen {
        match self.rule {
            Rule::Superusers => Seen::Superusers,
            Rule::Everyone => Seen::Everyone,
            Rule::Granted => Seen::Granted,
            Rule::Owner(_) => Seen::Owner,
        }
    }

    /// Whether `viewer` may look at it at all; a table that one may not is refused (42501).
    pub fn admits(&self, viewer: Viewer<'_>) -> bool {
        viewer.is_superuser || !matches!(self.rule, Rule::Superusers)
    }

    /// Those of `rows` that `viewer` may see.
    pub fn seen_rows<'a>(&self, rows: &'a [S], viewer: Viewer<'_>) -> Vec<&'a S> {
        let is_seen = |row: &&S| match self.rule {
            Rule::Everyone | Rule::Granted => true,
            Rule::Superusers => viewer.is_superuser,
            Rule::Owner(owner) => viewer.is_superuser || owner(row) == viewer.role,
        };
        rows.iter().filter(is_seen).collect()
    }

    /// The values of column `index` (of [`Declaration::columns`]) in rows that `viewer` sees.
    pub fn values<'a>(&self, index: usize, rows: &[&'a S], viewer: Viewer<'_>) -> Vec<Value<'a>> {
        let Some(figure) = self.shown().nth(index) else { return vec![Value::Null; rows.len()] };
        rows.iter().map(|row| Self::value_for(figure, row, viewer)).collect()
    }

    pub(crate) fn value_for<'a>(figure: &Figure<S>, row: &'a S, viewer: Viewer<'_>) -> Value<'a> {
        match figure.seen {
            Some(Seen::Superusers) if !viewer.is_superuser => Value::Null,
            _ => figure.value(row),
        }
    }

    /// Its figures that SQL and JSON show.
    pub(crate) fn shown(&self) -> impl Iterator<Item = &'static Figure<S>> {
        self.figures.iter().filter(|figure| figure.r#type() != Type::Histogram)
    }

    /// What is declared, without where it comes from.
    pub fn declaration(&self) -> Declaration {
        let of = |figures: &mut dyn Iterator<Item = &'static Figure<S>>| {
            figures.map(|figure| Column::of(figure, self.seen())).collect::<Vec<_>>()
        };
        Declaration {
            name: self.name,
            type_name: self.type_name,
            help: self.help,
            shape: self.shape,
            seen: self.seen(),
            is_table: self.is_table,
            is_in_status: self.is_in_status,
            is_in_json: self.is_in_json,
            columns: of(&mut self.shown()),
            metrics: of(&mut self.figures.iter().filter(|figure| figure.metric.is_some())),
        }
    }
}
