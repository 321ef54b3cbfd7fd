//! What a name stands for: a table or a view. Both have their names in one relation of the database, whose
//! primary key has no kind in it, so a name is never both.

use std::fmt;

use stoa_error::{Error, Result};

use crate::TableIdent;
use crate::database::{Row, Statement};

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

/// Finds the kind and the pointer of `ident` in the catalog `name`; see [`of_row`].
pub(crate) fn find(name: &str, ident: &TableIdent) -> Statement {
    let query = Statement::new(
        "SELECT iceberg_type, metadata_location FROM iceberg_tables
         WHERE catalog_name = $1 AND table_namespace = $2 AND table_name = $3",
    );
    query.bind(name).bind(ident.namespace.as_str()).bind(ident.name.as_str())
}

/// What a row of type and location says of `ident`.
pub(crate) fn of_row(row: &Row, ident: &TableIdent) -> Result<Relation> {
    let stored: Option<String> = row.get(0).flatten();
    let kind = RelationKind::of_stored(stored.as_deref()).ok_or_else(|| {
        let stored = stored.unwrap_or_default();
        Error::corrupt(format!("the catalog has {ident} as {stored:?}"))
            .with_hint("only TABLE and VIEW are known")
    })?;
    let location = row.get(1).ok_or_else(|| {
        Error::corrupt(format!("{kind} {ident} has no metadata location in the catalog"))
    })?;
    Ok(Relation { kind, location })
}
