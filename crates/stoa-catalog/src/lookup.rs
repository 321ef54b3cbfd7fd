//! How a name is looked up: the query, and what its row says.

use stoa_error::{Error, Result};

use crate::TableIdent;
use crate::database::{Row, Statement};
use crate::relation::{Relation, RelationKind};

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
