//! Documents about figures, as text: a page, types of the console, schemas of OpenAPI.
//!
//! The last two are sections of files that hold more, between two lines that say `figures: begin` and
//! `figures: end`. Tests compare the files with what is declared; `stoa figures` prints them anew.

mod jsdoc;
mod markdown;
mod openapi;

pub use jsdoc::types;
pub use markdown::markdown;
pub use openapi::openapi;

/// The page, from the root of the checkout.
pub const MARKDOWN_FILE: &str = "docs/figures.md";
/// The file with the schemas.
pub const OPENAPI_FILE: &str = "docs/openapi.yaml";
/// The file with the console's types.
pub const TYPES_FILE: &str = "console/js/api.js";

/// `text` with `section` between its two marks; `None` where it does not have them.
pub fn with_section(text: &str, section: &str) -> Option<String> {
    let begin = text.find("figures: begin")?;
    let begin = begin + text[begin..].find('\n')? + 1;
    let end = begin + text[begin..].find("figures: end")?;
    let end = text[..end].rfind('\n')? + 1;
    Some(format!("{}{section}{}", &text[..begin], &text[end..]))
}
