//! Families by their names in a file.

use stoa_error::{Error, Result};

use crate::cell::FamilyId;
use crate::schema::TableSchema;

/// Which names are families, and what their ids are.
pub(crate) enum Families {
    /// Those of a table, and whether they are counters.
    Known(Vec<(Vec<u8>, FamilyId, bool)>),
    /// Any; each gets an id when it comes up: for LOAD DATA … INTO FILE.
    Any(Vec<Vec<u8>>),
}

impl Families {
    /// The families of a table.
    pub(crate) fn of(schema: &TableSchema) -> Self {
        let known = schema.living().map(|family| {
            (family.name.clone().into_bytes(), family.id, family.options.is_counter())
        });
        Self::Known(known.collect())
    }

    /// Whatever names come up.
    pub(crate) fn any() -> Self {
        Self::Any(Vec::new())
    }

    /// The id of a family; none if there is no such family.
    ///
    /// # Errors
    /// More than 255 names came up.
    pub(super) fn id(&mut self, name: &[u8]) -> Result<Option<FamilyId>> {
        match self {
            Self::Known(known) => {
                Ok(known.iter().find(|(known, ..)| known == name).map(|(_, id, _)| *id))
            }
            Self::Any(names) => {
                let known = names.iter().position(|known| known == name);
                let at = known.unwrap_or_else(|| {
                    names.push(name.to_vec());
                    names.len() - 1
                });
                let id = FamilyId::try_from(at + 1)
                    .map_err(|_| Error::invalid("the file names more than 255 column families"))?;
                Ok(Some(id))
            }
        }
    }

    /// Whether a name is known before the file says more.
    pub(super) fn contains(&self, name: &[u8]) -> bool {
        match self {
            Self::Known(known) => known.iter().any(|(known, ..)| known == name),
            Self::Any(_) => false,
        }
    }

    /// Whether values of this family must be numbers.
    pub(super) fn is_counter(&self, id: FamilyId) -> bool {
        match self {
            Self::Known(known) => known.iter().any(|(_, known, counter)| *known == id && *counter),
            Self::Any(_) => false,
        }
    }

    /// The names of the ids, from id 1 on, for printing.
    pub(crate) fn names(&self) -> Vec<Vec<u8>> {
        match self {
            Self::Known(known) => known.iter().map(|(name, ..)| name.clone()).collect(),
            Self::Any(names) => names.clone(),
        }
    }
}
