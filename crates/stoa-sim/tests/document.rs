//! `docs/scale.md` is what the program prints. `STOA_REWRITE=1` writes it.

use std::path::Path;

use stoa_sim::scale::document;

#[test]
#[allow(clippy::disallowed_methods, reason = "the switch comes from whoever runs the test")]
fn the_page_is_what_the_program_prints() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/scale.md");
    let text = document();
    if std::env::var("STOA_REWRITE").is_ok() {
        std::fs::write(&path, &text).unwrap();
    }
    let page = std::fs::read_to_string(&path).unwrap();
    assert!(
        page == text,
        "docs/scale.md differs: STOA_REWRITE=1 cargo test -p stoa-sim --test document"
    );
}
