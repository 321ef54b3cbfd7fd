//! Mappings: who goes into which pool.

use serde::{Deserialize, Serialize};

/// By what a mapping knows who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum MappingKind {
    /// The user.
    User,
    /// A role that the user is a member of.
    Group,
    /// The client program.
    Application,
}

impl MappingKind {
    /// Its name, as Hive shows it.
    pub fn name(self) -> &'static str {
        match self {
            Self::User => "USER",
            Self::Group => "GROUP",
            Self::Application => "APPLICATION",
        }
    }
}

/// One user, group or program, and where its queries go.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mapping {
    /// By what it knows who asks.
    pub kind: MappingKind,
    /// The name.
    pub name: String,
    /// Path of the pool; `None` for no pool of the plan.
    pub pool: Option<String>,
    /// The lowest counts among mappings of groups.
    pub order: u32,
}
