//! The names of what stands in FROM, as a statement writes them; what they mean is not known here.

use datafusion_sql::sqlparser::ast::{Ident, ObjectNamePart, TableFactor};

/// The name under which a FROM has a table: its alias, or the last of its names.
pub(super) fn own_name(factor: &TableFactor) -> Option<&Ident> {
    match factor {
        TableFactor::Table { alias: Some(alias), .. }
        | TableFactor::Derived { alias: Some(alias), .. }
        | TableFactor::Function { alias: Some(alias), .. }
        | TableFactor::UNNEST { alias: Some(alias), .. }
        | TableFactor::NestedJoin { alias: Some(alias), .. } => Some(&alias.name),
        TableFactor::Table { name, .. } | TableFactor::Function { name, .. } => {
            name.0.last().and_then(ObjectNamePart::as_ident)
        }
        _ => None,
    }
}
