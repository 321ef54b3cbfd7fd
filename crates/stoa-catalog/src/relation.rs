//! What a name stands for: a table or a view. Both have their names in one relation of the database, whose
//! primary key has no kind in it, so a name is never both.

use std::fmt;

/// The kinds of relations that the catalog names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RelationKind {
    /// Rows in files.
    Table,
    /// A query with a name.
    View,
}

impl RelationKind {
    /// As the column `iceberg_type` has it.
    pub(crate) fn stored(self) -> &'static str {
        match self {
            Self::Table => "TABLE",
            Self::View => "VIEW",
        }
    }

    /// What the column `iceberg_type` says, or `None` where it is no kind that is known. Rows of schema
    /// version V0 have no type: all of them are tables.
    pub(crate) fn of_stored(stored: Option<&str>) -> Option<Self> {
        match stored {
            None | Some("TABLE") => Some(Self::Table),
            Some("VIEW") => Some(Self::View),
            Some(_) => None,
        }
    }
}

impl fmt::Display for RelationKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Table => "table",
            Self::View => "view",
        })
    }
}

/// A name's kind and pointer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Relation {
    /// Table or view.
    pub kind: RelationKind,
    /// Its metadata file.
    pub location: String,
}
