//! The answer: what a role may do with a table.

use std::collections::BTreeSet;

use crate::{Grant, Privilege};

/// Columns that may be read, by Iceberg field id.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Columns {
    /// No column.
    #[default]
    None,
    /// These, at least one.
    Some(BTreeSet<i32>),
    /// All, those to come too.
    All,
}

impl Columns {
    /// Whether the column of this field id may be read.
    pub fn allows(&self, field_id: i32) -> bool {
        match self {
            Self::None => false,
            Self::Some(ids) => ids.contains(&field_id),
            Self::All => true,
        }
    }

    /// Whether `more` has all of these columns.
    pub(crate) fn is_within(&self, more: &Self) -> bool {
        match (self, more) {
            (Self::None, _) | (_, Self::All) => true,
            (Self::Some(ids), Self::Some(more)) => ids.is_subset(more),
            (_, _) => false,
        }
    }

    /// Adds the columns of a grant (`None`: all).
    pub(crate) fn add(&mut self, more: Option<&BTreeSet<i32>>) {
        match (&mut *self, more) {
            (Self::All, _) => {}
            (_, None) => *self = Self::All,
            (Self::Some(ids), Some(more)) => ids.extend(more),
            (Self::None, Some(more)) if more.is_empty() => {}
            (Self::None, Some(more)) => *self = Self::Some(more.clone()),
        }
    }
}

/// What a role may do with one table. The default is nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Access {
    /// The columns it may read.
    pub select: Columns,
    /// Whether it may add rows.
    pub insert: bool,
    /// Whether it may change rows.
    pub update: bool,
    /// Whether it may remove rows.
    pub delete: bool,
    /// Whether it may alter and drop the table, and grant on it. Has all of the above, too.
    pub is_owner: bool,
}

impl Access {
    /// What owners and superusers have.
    pub(crate) fn everything() -> Self {
        Self { select: Columns::All, insert: true, update: true, delete: true, is_owner: true }
    }

    /// Adds what `grant` gives, which holds for this role and table.
    pub(crate) fn add(&mut self, grant: &Grant) {
        match grant.privilege {
            Privilege::Select => self.select.add(grant.columns.as_ref()),
            Privilege::Insert => self.insert = true,
            Privilege::Update => self.update = true,
            Privilege::Delete => self.delete = true,
        }
    }
}
