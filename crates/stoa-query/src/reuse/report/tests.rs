//! What is a report, by its text.

use stoa_sql::fingerprint::{Fingerprint, LiteralKind, literal_of_place};

fn check(sql: &str, expected: Option<(&str, &[(LiteralKind, &str)])>) {
    let found = Fingerprint::of(sql);
    let Some((text, literals)) = expected else {
        assert_eq!(found, None, "{sql}");
        return;
    };
    let found = found.unwrap_or_else(|| panic!("{sql} has a fingerprint"));
    assert_eq!(found.text, text);
    let found: Vec<_> = found.literals.iter().map(|one| (one.kind, &*one.text)).collect();
    assert_eq!(found, literals);
}

#[test]
fn literals_are_lifted_out_of_a_text() {
    use LiteralKind::{Date, Decimal, Integer, Integers, Text, Timestamp};
    check("SELECT a1 FROM t", Some(("SELECT a1 FROM t", &[])));
    check(
        "select a from t where b = 12 and c = -1.50 ; ",
        Some((
            "select a from t where b = $L0i and c = -$L1n",
            &[(Integer, "12"), (Decimal, "1.50")],
        )),
    );
    check(
        "SELECT 'it''s', \"o'1\" FROM t WHERE d >= DATE '2026-01-31' AND e < timestamp '2026-01-31 00:00:00'",
        Some((
            "SELECT $L0s, \"o'1\" FROM t WHERE d >= $L1d AND e < $L2t",
            &[(Text, "it's"), (Date, "2026-01-31"), (Timestamp, "2026-01-31 00:00:00")],
        )),
    );
    check(
        "SELECT a FROM t WHERE x = $1 AND y IN (1,2)",
        Some(("SELECT a FROM t WHERE x = $1 AND y IN ($L0I)", &[(Integers, "1,2")])),
    );
}

#[test]
fn unusual_texts_have_no_fingerprint() {
    for sql in [
        "INSERT INTO t VALUES (1)",
        "SELECT 1; SELECT 2",
        "SELECT 1 -- one",
        "SELECT /* one */ 1",
        "SELECT E'a\\n'",
        "SELECT x'00'",
        "SELECT U&'d'",
        "SELECT 1e5",
        "SELECT .5",
        "SELECT 12ab",
        "SELECT 'a' 'b'",
        "SELECT $$a$$",
        "SELECT 'open",
        "SELECT \"open",
        "SEL",
        "",
    ] {
        check(sql, None);
    }
}

#[test]
fn places_name_their_literal() {
    assert_eq!(literal_of_place("$L12i"), Some(12));
    assert_eq!(literal_of_place("$12"), None);
    assert_eq!(literal_of_place("$Lx"), None);
}
