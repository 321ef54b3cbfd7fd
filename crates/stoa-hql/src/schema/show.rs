//! The text of SHOW CREATE TABLE.
//!
//! Families stand in the order of their access groups, with what holds for them, defaults
//! included; TTL is in seconds; names that are more than letters and digits stand in single quotes
//! (Hypertable prints the same, reference §1.1). The text is a statement that makes the same table.

use std::fmt::Write;

use super::{AccessGroup, ColumnFamily, FamilyOptions, GroupOptions, TableSchema, TimeOrder};

/// Words that mean something else where a name could stand.
const TAKEN: [&str; 6] = ["index", "qualifier", "access", "if", "with", "cells"];

/// A name as HQL reads it back.
pub(crate) fn name_text(name: &str) -> String {
    let mut letters = name.chars();
    let starts = letters.next().is_some_and(|c| c.is_ascii_alphabetic());
    let plain = starts && letters.all(|c| c.is_ascii_alphanumeric());
    let taken = TAKEN.iter().any(|word| word.eq_ignore_ascii_case(name));
    match plain && !taken {
        true => name.to_owned(),
        false if name.contains('\'') => format!("\"{name}\""),
        false => format!("'{name}'"),
    }
}

/// The options of a family, each with a blank before it.
pub(crate) fn family_options_text(options: &FamilyOptions) -> String {
    let mut text = String::new();
    if let Some(versions) = options.max_versions {
        let _ = write!(text, " MAX_VERSIONS {versions}");
    }
    if let Some(seconds) = options.ttl_s {
        let _ = write!(text, " TTL {seconds}");
    }
    match options.time_order {
        Some(TimeOrder::NewestFirst) => text.push_str(" TIME_ORDER asc"),
        Some(TimeOrder::OldestFirst) => text.push_str(" TIME_ORDER desc"),
        None => {}
    }
    if let Some(counter) = options.counter {
        let _ = write!(text, " COUNTER {counter}");
    }
    text
}

/// The options of an access group, each with a blank before it.
pub(crate) fn group_options_text(options: &GroupOptions) -> String {
    let mut text = String::new();
    if let Some(copies) = options.replication {
        let _ = write!(text, " REPLICATION {copies}");
    }
    if let Some(bytes) = options.block_size {
        let _ = write!(text, " BLOCKSIZE {bytes}");
    }
    if let Some(compressor) = &options.compressor {
        let _ = write!(text, " COMPRESSOR \"{compressor}\"");
    }
    if let Some(filter) = &options.bloom_filter {
        let _ = write!(text, " BLOOMFILTER \"{filter}\"");
    }
    if let Some(in_memory) = options.in_memory {
        let _ = write!(text, " IN_MEMORY {in_memory}");
    }
    text
}

impl TableSchema {
    /// The CREATE TABLE statement of this table under `name`, with its semicolon and line end.
    pub fn show_create(&self, name: &str) -> String {
        let mut lines: Vec<String> = Vec::new();
        for group in &self.access_groups {
            lines.extend(self.members(group).map(family_line));
        }
        lines.extend(self.access_groups.iter().map(|group| self.group_line(group)));
        let mut options = String::new();
        if let Some(ms) = self.options.group_commit_interval_ms {
            let _ = write!(options, " GROUP_COMMIT_INTERVAL {ms}");
        }
        options.push_str(&group_options_text(&self.options.group));
        options.push_str(&family_options_text(&self.options.family));
        format!("CREATE TABLE {} (\n  {}\n){options};\n", name_text(name), lines.join(",\n  "))
    }

    pub(super) fn members(&self, group: &AccessGroup) -> impl Iterator<Item = &ColumnFamily> {
        self.living().filter(|family| family.access_group == group.name)
    }

    fn group_line(&self, group: &AccessGroup) -> String {
        let members: Vec<String> = self.members(group).map(|f| name_text(&f.name)).collect();
        let group_options = group_options_text(&group.options);
        let defaults = family_options_text(&group.family_defaults);
        let name = name_text(&group.name);
        format!("ACCESS GROUP {name} ({}){group_options}{defaults}", members.join(", "))
    }
}

fn family_line(family: &ColumnFamily) -> String {
    let name = name_text(&family.name);
    let mut line = format!("{name}{}", family_options_text(&family.options));
    if family.value_index {
        let _ = write!(line, ", INDEX {name}");
    }
    if family.qualifier_index {
        let _ = write!(line, ", QUALIFIER INDEX {name}");
    }
    line
}
