//! Whose names may be known: those of tables that one has any right on, and of the columns of these
//! that one may read or write.
//!
//! As in PostgreSQL's `information_schema`, `SELECT` makes the columns known that it is on, `INSERT`
//! and `UPDATE` all of them. Not here: where names are listed.

use std::collections::BTreeSet;

use arrow::datatypes::Schema;
use stoa_access::{Columns, Privilege};
use stoa_error::Result;

use super::{Caller, Relation, field_id};

impl Caller {
    /// Whether one may know that there is such a table.
    pub(crate) fn may_know(&self, table: &impl Relation) -> bool {
        if self.may_everything() {
            return true;
        }
        let access = self.access(table);
        let writes = access.insert || access.update || access.delete;
        access.is_owner || writes || access.select != Columns::None
    }

    /// Refuses a statement about a table that is not to be known.
    ///
    /// # Errors
    /// 42501.
    pub(crate) fn must_know(&self, table: &impl Relation) -> Result<()> {
        match self.may_know(table) {
            true => Ok(()),
            false => Err(self.no_privilege(table, Privilege::Select)),
        }
    }

    /// Which of `columns`, as SQL has them for `table`, may be known, by place.
    pub(crate) fn known_columns(&self, table: &impl Relation, columns: &Schema) -> BTreeSet<usize> {
        let all = || (0..columns.fields().len()).collect();
        if self.may_everything() {
            return all();
        }
        let access = self.access(table);
        if access.is_owner || access.insert || access.update || access.select == Columns::All {
            return all();
        }
        let own = table.schema();
        let may_read = |name: &str| {
            let id = own.field_with_name(name).ok().and_then(field_id);
            id.is_some_and(|id| access.select.allows(id))
        };
        let places = columns.fields().iter().enumerate();
        places.filter(|(_, field)| may_read(field.name())).map(|(place, _)| place).collect()
    }
}
