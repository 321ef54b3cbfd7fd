//! What a table of cells is: families, access groups, options.
//!
//! Families carry what decides which cells a reader sees (versions, age, counters, order of time).
//! Access groups and physical options are Hypertable's; they are kept and shown, and a store may
//! use them or not. A schema is plain data (serde) that a store keeps with its table.
//!
//! **Invariants:** family ids are 1–255, never used twice in a table's life, and grow in the order
//! in which access groups list their families (so does Hypertable, and cells are read in that
//! order); names of living families differ; every family belongs to a group that exists.
//!
//! Not here: the text of statements (`lang`), storing (`store`).

mod alter;
mod build;
mod describe;
mod show;
mod xml;

use serde::{Deserialize, Serialize};
use stoa_error::{Error, Result};

use crate::cell::FamilyId;

pub use alter::AlterAction;
pub use build::{FamilyDefinition, GroupDefinition, IndexDefinition, TableDefinitions};
pub(crate) use show::{family_options_text, group_options_text, name_text};

/// The access group of families that are named in no other.
pub const DEFAULT_GROUP: &str = "default";
/// Most families a table can have, dropped ones included: ids are one byte, 0 is the whole row.
pub const FAMILIES_MAX: usize = 255;

/// Which versions of a cell come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TimeOrder {
    /// Newest first; what a family has unless told otherwise.
    #[serde(rename = "asc")]
    NewestFirst,
    /// Oldest first; MAX_VERSIONS then keeps the oldest.
    #[serde(rename = "desc")]
    OldestFirst,
}

/// Which cells of a family are seen. None: as the access group or the table says, else no limit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FamilyOptions {
    /// How many versions of a cell are kept; 0 is all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_versions: Option<u32>,
    /// Seconds for which a cell is seen after its timestamp; 0 is for ever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_s: Option<u64>,
    /// Which versions come first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_order: Option<TimeOrder>,
    /// Whether values are numbers to be added up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counter: Option<bool>,
}

impl FamilyOptions {
    /// Whether the values are counted together.
    pub fn is_counter(&self) -> bool {
        self.counter == Some(true)
    }

    /// Whether the oldest version comes first.
    pub fn is_oldest_first(&self) -> bool {
        self.time_order == Some(TimeOrder::OldestFirst)
    }

    /// Versions to keep, if there is a limit.
    pub fn version_limit(&self) -> Option<u32> {
        self.max_versions.filter(|versions| *versions > 0)
    }

    /// Seconds to keep, if there is a limit.
    pub fn ttl_limit_s(&self) -> Option<u64> {
        self.ttl_s.filter(|seconds| *seconds > 0)
    }

    /// Refuses options that exclude each other (reference §2: a counter has one version, and its
    /// sum has no order).
    pub(crate) fn check(&self, family: &str) -> Result<()> {
        let excluded = match self {
            _ if !self.is_counter() => return Ok(()),
            Self { max_versions: Some(_), .. } => "MAX_VERSIONS",
            Self { time_order: Some(TimeOrder::OldestFirst), .. } => "TIME_ORDER DESC",
            _ => return Ok(()),
        };
        Err(Error::invalid(format!("COUNTER and {excluded} exclude each other in '{family}'"))
            .with_sqlstate("42P16")
            .with_hint("a counter has one value; leave one of both out"))
    }

    /// These options, with `defaults` for what is left open and does not contradict them.
    pub(crate) fn or(&self, defaults: &FamilyOptions) -> FamilyOptions {
        let counter = self.counter.or(defaults
            .counter
            .filter(|_| self.max_versions.is_none() && !self.is_oldest_first()));
        let plain = counter != Some(true);
        FamilyOptions {
            max_versions: self.max_versions.or(defaults.max_versions.filter(|_| plain)),
            ttl_s: self.ttl_s.or(defaults.ttl_s),
            time_order: self.time_order.or(defaults.time_order.filter(|_| plain)),
            counter,
        }
    }
}

/// Physical options of an access group. Accepted, kept and shown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupOptions {
    /// Copies in the file system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replication: Option<u32>,
    /// Bytes of a compressed block.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block_size: Option<u32>,
    /// Codec and its options, such as `zlib --best`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compressor: Option<String>,
    /// Bloom filter and its options, such as `rows+cols --false-positive 0.02`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bloom_filter: Option<String>,
    /// Whether the cells should stay in memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_memory: Option<bool>,
}

impl GroupOptions {
    pub(crate) fn or(&self, defaults: &GroupOptions) -> GroupOptions {
        GroupOptions {
            replication: self.replication.or(defaults.replication),
            block_size: self.block_size.or(defaults.block_size),
            compressor: self.compressor.clone().or_else(|| defaults.compressor.clone()),
            bloom_filter: self.bloom_filter.clone().or_else(|| defaults.bloom_filter.clone()),
            in_memory: self.in_memory.or(defaults.in_memory),
        }
    }
}

/// Options of a whole table.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableOptions {
    /// Milliseconds for which writes are collected into one commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group_commit_interval_ms: Option<u32>,
    /// Defaults of access groups.
    #[serde(default)]
    pub group: GroupOptions,
    /// Defaults of families.
    #[serde(default)]
    pub family: FamilyOptions,
}

/// A column family.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ColumnFamily {
    /// Its number for life.
    pub id: FamilyId,
    /// Its name; `!` and the id once it is dropped.
    pub name: String,
    /// The access group it belongs to.
    pub access_group: String,
    /// Whether it was dropped; its cells are not seen, its id is not used again.
    #[serde(default)]
    pub deleted: bool,
    /// Whether there is an index over its values.
    #[serde(default)]
    pub value_index: bool,
    /// Whether there is an index over its qualifiers.
    #[serde(default)]
    pub qualifier_index: bool,
    /// What holds for it, defaults of group and table included.
    #[serde(default)]
    pub options: FamilyOptions,
}

/// Families whose cells Hypertable stores together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccessGroup {
    /// Its name.
    pub name: String,
    /// What holds for it, defaults of the table included.
    #[serde(default)]
    pub options: GroupOptions,
    /// Defaults of its families.
    #[serde(default)]
    pub family_defaults: FamilyOptions,
}

/// The schema of a table of cells.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableSchema {
    /// Grows by one with each change.
    pub generation: u64,
    /// Options of the table.
    #[serde(default)]
    pub options: TableOptions,
    /// Access groups in the order of their creation.
    pub access_groups: Vec<AccessGroup>,
    /// Families in the order of their ids, dropped ones included.
    pub families: Vec<ColumnFamily>,
}

impl TableSchema {
    /// The living family of this name.
    pub fn family(&self, name: &str) -> Option<&ColumnFamily> {
        self.living().find(|family| family.name == name)
    }

    /// The living family with this id.
    pub fn family_by_id(&self, id: FamilyId) -> Option<&ColumnFamily> {
        self.living().find(|family| family.id == id)
    }

    /// Families that are not dropped, in the order of their ids.
    pub fn living(&self) -> impl Iterator<Item = &ColumnFamily> {
        self.families.iter().filter(|family| !family.deleted)
    }

    /// The living family of this name.
    ///
    /// # Errors
    /// [`NotFound`](stoa_error::ErrorKind::NotFound) with the nearest name as hint.
    pub fn require_family(&self, name: &str) -> Result<&ColumnFamily> {
        self.family(name).ok_or_else(|| {
            let error = Error::not_found(format!("no column family '{name}'"));
            let names: Vec<&str> = self.living().map(|f| f.name.as_str()).collect();
            let near = names.iter().copied().max_by(|a, b| {
                strsim::jaro_winkler(a, name).total_cmp(&strsim::jaro_winkler(b, name))
            });
            let error = error.with_sqlstate("42703");
            match near.filter(|near| strsim::jaro_winkler(near, name) > 0.75) {
                Some(near) => error.with_hint(format!("did you mean '{near}'?")),
                None => error.with_hint(format!("the table has {}", names.join(", "))),
            }
        })
    }

    fn group_mut(&mut self, name: &str) -> Option<&mut AccessGroup> {
        self.access_groups.iter_mut().find(|group| group.name == name)
    }
}

#[cfg(test)]
pub(crate) mod tests;
