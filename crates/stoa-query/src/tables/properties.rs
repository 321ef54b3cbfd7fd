//! The table properties that SQL may set.
//!
//! In: keys and values of `CREATE TABLE … TBLPROPERTIES`, `ALTER TABLE … SET`, `stoa load --create`. Out:
//! nothing, or which of them cannot be set. `stoa-table` judges its own properties when it makes or alters
//! the table; here are those that it does not know: of fresh rows, of external tables, of tables of cells, and names that
//! begin like Stoa's own but mean nothing.

use stoa_error::{Error, Result};
use stoa_external::Definition;

/// What Stoa's own properties begin with.
const PREFIX: &str = "stoa.";

/// What properties of cells begin with.
const CELLS_PREFIX: &str = "stoa.cells.";

/// What properties begin with that `stoa-table` keeps to itself.
const LOG_PREFIX: &str = "stoa.log.";

/// Refuses properties that must not be set, and values that could not be followed.
///
/// # Errors
/// `Unsupported` for a property that makes a table another kind of table; `Invalid` for a value that is
/// none, and for a property of Stoa that there is not.
pub(crate) fn check<'a>(properties: impl Iterator<Item = (&'a str, &'a str)>) -> Result<()> {
    for (key, value) in properties {
        if key == stoa_cells::KIND_PROPERTY || key.starts_with(CELLS_PREFIX) {
            return Err(Error::unsupported(format!("property {key} cannot be set"))
                .with_hint("tables of cells are made and altered with HQL: `stoa hql`"));
        }
        stoa_ingest::check_property(key, value)?;
        let is_known = stoa_ingest::PROPERTIES.contains(&key)
            || stoa_table::STOA_PROPERTIES.contains(&key)
            || Definition::USER_PROPERTIES.contains(&key)
            || key.starts_with(LOG_PREFIX);
        if key.starts_with(PREFIX) && !is_known {
            let known = stoa_ingest::PROPERTIES.into_iter().chain(stoa_table::STOA_PROPERTIES);
            let known: Vec<&str> = known.chain(Definition::USER_PROPERTIES).collect();
            return Err(Error::invalid(format!("there is no property {key}"))
                .with_hint(format!("Stoa's own are {}", known.join(", "))));
        }
    }
    Ok(())
}
