//! Schemas of OpenAPI.

use serde_json::json;

use crate::declaration::{Column, Declaration};
use crate::inventory::declarations;
use crate::kind::Type;
use crate::seen::{Seen, Shape};

/// The section of [`OPENAPI_FILE`](crate::OPENAPI_FILE), members of `components.schemas`.
pub fn openapi() -> String {
    let groups = declarations();
    let of_rows = groups.iter().filter(|group| group.is_in_json && group.shape != Shape::Top);
    let mut out: String = of_rows.map(|group| schema(group, &[])).collect();
    for top in groups.iter().filter(|group| group.shape == Shape::Top) {
        out += &schema(top, &groups);
    }
    out
}

/// One object; of the whole document, with the other `groups` as members.
fn schema(group: &Declaration, groups: &[Declaration]) -> String {
    let members = groups.iter().filter(|member| member.is_in_status && member.shape != Shape::Top);
    let members: Vec<(&str, String)> =
        members.map(|member| (member.name, reference(member))).collect();
    let columns = group.columns.iter().map(|column| (column.name, property(column, group.seen)));
    let all: Vec<(&str, String)> = columns.chain(members).collect();
    let names: Vec<&str> = all.iter().map(|(name, _)| *name).collect();
    let properties: String =
        all.iter().map(|(name, schema)| format!("        {name}: {schema}\n")).collect();
    format!(
        "    {}:\n      type: object\n      description: {}\n      required:\n        [{}]\n      properties:\n{properties}\n",
        group.type_name,
        quoted(group.help),
        names.join(", "),
    )
}

fn reference(group: &Declaration) -> String {
    let one = format!("{{ $ref: '#/components/schemas/{}' }}", group.type_name);
    match group.shape {
        Shape::One | Shape::Top => one,
        Shape::Maybe => format!("{{ oneOf: [{one}, {{ type: 'null' }}] }}"),
        Shape::Many => format!("{{ type: array, items: {one} }}"),
    }
}

fn property(column: &Column, group: Seen) -> String {
    let of = match column.r#type {
        Type::Integer | Type::Time | Type::Histogram => "integer",
        Type::Float => "number",
        Type::Boolean => "boolean",
        Type::Text => "string",
        Type::Texts => "array",
    };
    let of = match column.is_nullable {
        true => format!("[{of}, 'null']"),
        false => of.to_owned(),
    };
    let items = match column.r#type {
        Type::Texts => ", items: { type: string }",
        _ => "",
    };
    let help = match column.seen == group {
        true => column.help.to_owned(),
        false => format!("{} For superusers; null for others.", column.help),
    };
    format!("{{ type: {of}{items}, description: {} }}", quoted(&help))
}

/// Text in double quotes, which YAML reads as JSON does.
fn quoted(text: &str) -> String {
    json!(text).to_string()
}
