//! The settings of a session. This is the only place where one is declared: `SET`, `RESET`, `SHOW`,
//! `pg_settings`, what PostgreSQL's clients are told, and `docs/settings.md` come from here.

use std::fmt::Write;

use self::Effect::{Ignored, Internal, OneValue, Works};
use super::value::{Kind, MESSAGE_LEVELS};

/// One declared setting.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SessionSetting {
    /// Its name as PostgreSQL spells it; any case is read.
    pub(crate) name: &'static str,
    /// The type of its values.
    pub(crate) kind: Kind,
    /// The value where none is set, as it is kept.
    pub(crate) default: &'static str,
    /// What setting it does.
    pub(crate) effect: Effect,
    /// Whether clients of PostgreSQL's protocol are told its value, at start and after changes.
    pub(crate) is_reported: bool,
    /// Whether statements mean something else under another value: plans and answers are shared only
    /// among sessions that have the same.
    pub(crate) changes_meaning: bool,
    /// One line for users.
    pub(crate) docs: &'static str,
}

/// What setting a setting does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// What its documentation says.
    Works,
    /// Nothing: it is there for clients that set it.
    Ignored,
    /// It has one value, which may be set again.
    OneValue,
    /// It cannot be set at all.
    Internal,
}

/// What `pg_settings` says of a setting, with its value in a session.
#[derive(Clone, Debug)]
pub(crate) struct SettingRow {
    pub(crate) setting: &'static SessionSetting,
    /// The value as it is kept: numbers in the setting's unit.
    pub(crate) value: String,
    /// To what `RESET` goes back.
    pub(crate) reset: String,
}

const fn setting(
    name: &'static str,
    kind: Kind,
    default: &'static str,
    effect: Effect,
    docs: &'static str,
) -> SessionSetting {
    let (is_reported, changes_meaning) = (false, false);
    SessionSetting { name, kind, default, effect, is_reported, changes_meaning, docs }
}

impl SessionSetting {
    const fn reported(self) -> Self {
        Self { is_reported: true, ..self }
    }

    const fn changes_meaning(self) -> Self {
        Self { changes_meaning: true, ..self }
    }

    /// Who may set it, as `pg_settings.context` names it.
    pub(crate) fn context(&self) -> &'static str {
        if self.effect == Effect::Internal { "internal" } else { "user" }
    }

    /// Its type, as `pg_settings.vartype` names it.
    pub(crate) fn type_name(&self) -> &'static str {
        self.kind.name()
    }

    /// The unit of bare numbers.
    pub(crate) fn unit(&self) -> Option<&'static str> {
        self.kind.unit()
    }

    /// The values there are to choose from; empty for other types.
    pub(crate) fn values(&self) -> &'static [&'static str] {
        self.kind.values()
    }

    /// The smallest and the largest value.
    pub(crate) fn bounds(&self) -> Option<(i32, i32)> {
        self.kind.bounds()
    }
}

/// All of them, by name without regard to case.
pub(crate) static SESSION_SETTINGS: &[SessionSetting] = &[
    setting(
        "application_name",
        Kind::Text,
        "",
        Works,
        "Name of the client program, shown with its queries; pools are chosen by it",
    )
    .reported(),
    setting(
        "bytea_output",
        Kind::Choice(&["escape", "hex"]),
        "hex",
        Ignored,
        "Binary values are always written as hex",
    ),
    setting("client_encoding", Kind::Encoding, "UTF8", OneValue, "Always UTF8").reported(),
    setting(
        "client_min_messages",
        Kind::Choice(MESSAGE_LEVELS),
        "notice",
        Ignored,
        "All notices are sent",
    ),
    setting(
        "DateStyle",
        Kind::DateStyle,
        "ISO, MDY",
        Ignored,
        "Dates are always written as ISO; 02/01/2001 is read as February 1",
    )
    .reported(),
    setting(
        "default_transaction_isolation",
        Kind::Isolation,
        "read committed",
        Works,
        "Isolation of new transactions",
    ),
    setting(
        "default_transaction_read_only",
        Kind::Switch,
        "off",
        Works,
        "Whether new transactions refuse writes",
    )
    .reported(),
    setting(
        "dialect",
        Kind::Choice(&["hive", "postgres"]),
        "postgres",
        Works,
        "Language of statements: HiveQL, or Stoa's SQL; sessions of HiveServer2 begin with `hive`",
    )
    .changes_meaning(),
    setting(
        "extra_float_digits",
        Kind::Integer(-15, 3),
        "1",
        Ignored,
        "Floats are always written exactly",
    ),
    setting(
        "idle_in_transaction_session_timeout",
        Kind::Milliseconds,
        "0",
        Ignored,
        "Idle transactions are not ended by it",
    ),
    setting("integer_datetimes", Kind::Switch, "on", OneValue, "Always on").reported(),
    setting(
        "IntervalStyle",
        Kind::Choice(&["postgres", "postgres_verbose", "sql_standard", "iso_8601"]),
        "postgres",
        Works,
        "How intervals are written",
    )
    .reported()
    .changes_meaning(),
    setting("lock_timeout", Kind::Milliseconds, "0", Ignored, "Readers and writers take no locks"),
    setting(
        "max_identifier_length",
        Kind::Integer(63, 63),
        "63",
        Internal,
        "As in PostgreSQL; names may be longer",
    ),
    setting("max_index_keys", Kind::Integer(32, 32), "32", Internal, "There are no indexes"),
    setting(
        "password_encryption",
        Kind::Choice(&["scram-sha-256"]),
        "scram-sha-256",
        OneValue,
        "Always scram-sha-256",
    ),
    setting(
        "plan_templates",
        Kind::Switch,
        "on",
        Works,
        "Whether plans are used again with other values",
    ),
    setting(
        "result_reuse",
        Kind::Switch,
        "on",
        Works,
        "Whether results are reused until the data changes",
    ),
    setting("row_security", Kind::Switch, "off", Ignored, "There are no row policies"),
    setting("search_path", Kind::Text, "public", Works, "Namespace of names without one")
        .reported()
        .changes_meaning(),
    setting("server_encoding", Kind::Encoding, "UTF8", OneValue, "Always UTF8").reported(),
    setting(
        "server_version",
        Kind::Text,
        concat!("16.6 (Stoa ", env!("CARGO_PKG_VERSION"), ")"),
        Internal,
        "Version of PostgreSQL whose protocol is spoken, and Stoa's own",
    )
    .reported(),
    setting(
        "server_version_num",
        Kind::Integer(160_006, 160_006),
        "160006",
        Internal,
        "Version of PostgreSQL as a number",
    ),
    setting("session_authorization", Kind::Text, "", Ignored, "The user stays who logged in"),
    setting(
        "short_path",
        Kind::Switch,
        "on",
        Works,
        "Whether reports that are recognised skip the planner",
    ),
    setting("standard_conforming_strings", Kind::Switch, "on", OneValue, "Always on").reported(),
    setting(
        "statement_timeout",
        Kind::Milliseconds,
        "0",
        Works,
        "Longest time of a statement; 0 is no limit",
    ),
    setting(
        "synchronize_seqscans",
        Kind::Switch,
        "on",
        Ignored,
        "Scans do not wait for each other",
    ),
    setting("TimeZone", Kind::Zone, "UTC", Works, "Zone of timestamps that have one")
        .reported()
        .changes_meaning(),
    setting(
        "transaction_isolation",
        Kind::Isolation,
        "read committed",
        Works,
        "Isolation of the transaction",
    ),
    setting(
        "transaction_read_only",
        Kind::Switch,
        "off",
        Works,
        "Whether the transaction refuses writes",
    ),
    setting(
        "work_mem",
        Kind::Kibibytes(64),
        "4096",
        Ignored,
        "Memory is shared as memory_limit says",
    ),
];

/// Names of the settings whose values clients of PostgreSQL's protocol are told.
pub fn reported_settings() -> impl Iterator<Item = &'static str> {
    SESSION_SETTINGS.iter().filter(|setting| setting.is_reported).map(|setting| setting.name)
}

/// The reference page of the settings of a session, `docs/settings.md`.
pub fn session_settings_markdown() -> String {
    let mut text = String::from(INTRODUCTION);
    let version = SESSION_SETTINGS.iter().filter(|setting| setting.name == "server_version");
    let version = version.map(|setting| setting.default).next().unwrap_or_default();
    for setting in SESSION_SETTINGS {
        let default = match setting.kind.shown(setting.default) {
            // The page does not change with each release.
            default if default == version => "of the server".to_owned(),
            default if default.is_empty() => "empty".to_owned(),
            default => format!("`{default}`"),
        };
        let effect = match setting.effect {
            Effect::Works => "yes",
            Effect::Ignored => "none",
            Effect::OneValue => "one value",
            Effect::Internal => "cannot be set",
        };
        let (name, docs, values) = (setting.name, setting.docs, values(setting));
        let _ = writeln!(text, "| `{name}` | {values} | {default} | {effect} | {docs} |");
    }
    let shared = SESSION_SETTINGS.iter().filter(|setting| setting.changes_meaning);
    let shared: Vec<String> = shared.map(|setting| format!("`{}`", setting.name)).collect();
    let reported: Vec<String> = reported_settings().map(|name| format!("`{name}`")).collect();
    let _ = write!(
        text,
        "\nPlans and results are shared only among sessions with the same {}, and the same settings\n\
         of the engine (`datafusion.…`).\n\n\
         Clients of the PostgreSQL protocol are told these at start and after each change:\n{}.\n",
        listed(&shared),
        reported.join(",\n"),
    );
    text
}

fn values(setting: &SessionSetting) -> String {
    match setting.kind {
        Kind::Switch => "`on`, `off`".to_owned(),
        Kind::Integer(min, max) => format!("{min} to {max}"),
        Kind::Milliseconds => "time".to_owned(),
        Kind::Kibibytes(_) => "size".to_owned(),
        Kind::Choice(values) => {
            let values: Vec<String> = values.iter().map(|value| format!("`{value}`")).collect();
            values.join(", ")
        }
        Kind::Isolation => "`read committed`, `repeatable read`".to_owned(),
        Kind::DateStyle => "`ISO`, with `MDY`".to_owned(),
        Kind::Encoding => "`UTF8`".to_owned(),
        Kind::Zone => "name of a time zone".to_owned(),
        Kind::Text => "text".to_owned(),
    }
}

const INTRODUCTION: &str = "\
# Settings of a session

<!-- Written from crates/stoa-query/src/settings/declared.rs; a test compares it. -->

`SET name = value` sets a setting for the session, `RESET name` and `RESET ALL` go back to what the
connection began with, `SHOW name` and `SHOW ALL` show values. `pg_settings` lists the settings with
types, units and bounds. Over PostgreSQL they can be given at start as well
(`options=-c statement_timeout=30s`), over Flight SQL as session options.

- A **time** is a number with a unit: `us`, `ms`, `s`, `min`, `h`, `d`; a bare number means
  milliseconds. Fractions are allowed: `SET statement_timeout = '1.5min'`. 0 is no limit.
- A **size** is a number with a unit: `B`, `kB`, `MB`, `GB`, `TB` (powers of 1024); a bare number
  means kB.
- A **switch** is `on` or `off`; `true`, `yes`, `1` and `false`, `no`, `0` are read as well.

Units, rounding and errors are those of PostgreSQL: 22023 for a wrong value, 42704 for an unknown
name, 55P02 for what cannot be set. Settings whose effect is *none* are checked and kept for clients
that set them, and change nothing.

| setting | values | default | effect | meaning |
|---|---|---|---|---|
";

/// `a, b and c`.
fn listed(names: &[String]) -> String {
    match names {
        [first @ .., last] if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        names => names.join(", "),
    }
}
