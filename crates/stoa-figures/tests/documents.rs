//! Documents are as they are declared. `STOA_REWRITE=1` writes them anew.
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};

use stoa_figures::{
    MARKDOWN_FILE, OPENAPI_FILE, TYPES_FILE, markdown, openapi, types, with_section,
};

fn place(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(file)
}

#[allow(clippy::disallowed_methods)] // It is no setting of the server.
fn check(file: &str, make: impl Fn(&str) -> Option<String>) {
    let found = std::fs::read_to_string(place(file)).unwrap_or_default();
    let wanted = make(&found).unwrap_or_else(|| panic!("{file} has lost its marks"));
    if std::env::var("STOA_REWRITE").is_ok() {
        std::fs::write(place(file), &wanted).unwrap();
        return;
    }
    let is_current = found == wanted;
    let how = "STOA_REWRITE=1 cargo test -p stoa-figures --test documents";
    assert!(is_current, "{file} is not current; write it anew: {how}");
}

#[test]
fn the_page_is_current() {
    check(MARKDOWN_FILE, |_| Some(markdown()));
}

#[test]
fn openapi_is_current() {
    check(OPENAPI_FILE, |found| with_section(found, &openapi()));
}

#[test]
fn types_of_the_console_are_current() {
    check(TYPES_FILE, |found| with_section(found, &types()));
}

#[test]
fn sections_are_replaced_between_their_marks() {
    let text = "a\n# figures: begin, by x\nold\nold\n  # figures: end\nb\n";
    let wanted = "a\n# figures: begin, by x\nnew\n  # figures: end\nb\n";
    assert_eq!(with_section(text, "new\n").as_deref(), Some(wanted));
    assert_eq!(with_section(wanted, "new\n").as_deref(), Some(wanted));
    assert_eq!(with_section("a\nb\n", "new\n"), None);
    assert_eq!(with_section("figures: begin", "new\n"), None);
}
