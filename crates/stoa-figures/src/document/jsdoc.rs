//! Types of the console, as comments that `tsc` reads.

use std::fmt::Write as _;

use crate::declaration::{Column, Declaration};
use crate::inventory::declarations;
use crate::kind::Type;
use crate::seen::Shape;

/// The section of [`TYPES_FILE`](crate::TYPES_FILE).
pub fn types() -> String {
    let groups: Vec<Declaration> = declarations();
    let of_rows = groups.iter().filter(|group| group.is_in_json && group.shape != Shape::Top);
    let mut out: String = of_rows.map(|group| typedef(group, "")).collect();
    for top in groups.iter().filter(|group| group.shape == Shape::Top) {
        out += &typedef(top, &members(&groups));
    }
    out
}

fn typedef(group: &Declaration, more: &str) -> String {
    let properties: String = group.columns.iter().map(property).collect();
    format!("/**\n * @typedef {{object}} {}\n{properties}{more} */\n\n", group.type_name)
}

fn property(column: &Column) -> String {
    let of = match column.r#type {
        Type::Integer | Type::Float | Type::Time | Type::Histogram => "number",
        Type::Boolean => "boolean",
        Type::Text => "string",
        Type::Texts => "string[]",
    };
    let or_null = if column.is_nullable { " | null" } else { "" };
    format!(" * @property {{{of}{or_null}}} {} {}\n", column.name, column.help)
}

/// The groups as members of the whole document.
fn members(groups: &[Declaration]) -> String {
    let mut out = String::new();
    for group in groups.iter().filter(|group| group.is_in_status) {
        let after = match group.shape {
            Shape::Top => continue,
            Shape::One => "",
            Shape::Maybe => " | null",
            Shape::Many => "[]",
        };
        // Writing to a string cannot fail.
        let _ = writeln!(
            out,
            " * @property {{{}{after}}} {} {}",
            group.type_name, group.name, group.help
        );
    }
    out
}
