//! What was refused since the start.

use crate::figure::{Family, Figure};
use crate::group::Group;
use crate::kind::Unit;
use crate::seen::Shape;

/// Logins and statements that were refused.
#[derive(Clone, Debug, Default)]
pub struct Refusals {
    /// Attempts to log in with a wrong password, or as a role that must not (28P01).
    pub logins_failed: u64,
    /// Attempts that were not checked, after too many that failed (53400).
    pub logins_paused: u64,
    /// Statements that were too long, too complex, or had too large a result (54000, 54001).
    pub too_large: u64,
    /// Statements for which there was too little memory (53200).
    pub out_of_memory: u64,
    /// Statements without a right on what they name (42501).
    pub denied: u64,
}

/// Connections that one listener refused.
#[derive(Clone, Debug, Default)]
pub struct RefusedConnections {
    /// The listener: its protocol.
    pub listener: String,
    /// How many.
    pub connections: u64,
}

const LOGINS: Family = Family {
    name: "stoa_refused_logins_total",
    label: "reason",
    help: "Attempts to log in that were refused, by reason.",
};

const STATEMENTS: Family = Family {
    name: "stoa_refused_statements_total",
    label: "reason",
    help: "Statements that a limit or a missing right refused, by reason.",
};

type This = Figure<Refusals>;

const FIGURES: &[This] = &[
    This::counter(
        "logins_failed",
        Unit::Of("logins"),
        "Attempts to log in with a wrong password, or as a role that must not (28P01).",
        |s| s.logins_failed,
    )
    .part_of(&LOGINS, "failed"),
    This::counter(
        "logins_paused",
        Unit::Of("logins"),
        "Attempts that were not checked, after too many that failed (53400).",
        |s| s.logins_paused,
    )
    .part_of(&LOGINS, "paused"),
    This::counter(
        "too_large",
        Unit::Of("statements"),
        "Statements that were too long, too complex, or had too large a result (54000, 54001).",
        |s| s.too_large,
    )
    .part_of(&STATEMENTS, "too_large"),
    This::counter(
        "out_of_memory",
        Unit::Of("statements"),
        "Statements for which there was too little memory (53200).",
        |s| s.out_of_memory,
    )
    .part_of(&STATEMENTS, "out_of_memory"),
    This::counter(
        "denied",
        Unit::Of("statements"),
        "Statements without a right on what they name (42501).",
        |s| s.denied,
    )
    .part_of(&STATEMENTS, "denied"),
];

const CONNECTIONS: &[Figure<RefusedConnections>] = &[
    Figure::<RefusedConnections>::key("listener", "The listener: its protocol.", |s| &s.listener),
    Figure::<RefusedConnections>::counter(
        "connections",
        Unit::Of("connections"),
        "Connections that a listener refused, by listener.",
        |s| s.connections,
    )
    .metric("stoa_refused_connections_total"),
];

/// `system.refusals`.
pub static REFUSALS: Group<Refusals> = Group::new(
    "refusals",
    "Refusals",
    "Logins and statements refused since the start.",
    Shape::One,
    FIGURES,
)
.table()
.in_status()
.for_everyone();

/// Connections refused since the start.
pub static REFUSED_CONNECTIONS: Group<RefusedConnections> = Group::new(
    "refused_connections",
    "RefusedConnections",
    "Connections refused since the start.",
    Shape::Many,
    CONNECTIONS,
)
.in_status()
.for_everyone();
