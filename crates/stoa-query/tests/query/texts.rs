//! Properties of the functions that look at the text of statements and values, without an engine.

use proptest::prelude::*;
use stoa_query::{
    LatencyHistogram, NUMERIC, number_parameters, numeric_text, split_statements, sql_type,
    without_secrets,
};

/// One statement: words, and quotes of all kinds with semicolons and question marks in them.
fn statement() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        4 => "[a-z]{1,6}",
        1 => "'[a-z;?]{0,5}'",
        1 => "\"[a-z;?]{1,5}\"",
        1 => "\\$\\$[a-z;?]{0,5}\\$\\$",
        1 => "/\\*[a-z;?]{0,5}\\*/",
        1 => Just("'it''s; '".to_owned()),
        1 => Just("E'\\';'".to_owned()),
        1 => Just("-- a; comment?\n".to_owned()),
    ];
    // The first word makes sure that it is no comment alone.
    ("[a-z]{1,6}", prop::collection::vec(part, 0..6))
        .prop_map(|(word, parts)| format!("{word} {} end", parts.join(" ")))
}

/// What stands for nothing between statements.
fn nothing() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["", " ", "\n", ";", " ; ", "/* ; */", "-- ;\n"])
        .prop_map(str::to_owned)
}

proptest! {
    #[test]
    fn a_text_is_cut_into_the_statements_that_it_was_made_of(
        parts in prop::collection::vec((nothing(), statement()), 0..6),
        last in nothing(),
    ) {
        let mut text: String = parts.iter().map(|(before, sql)| format!("{before}{sql};")).collect();
        text.push_str(&last);
        let found = split_statements(&text);
        prop_assert_eq!(found.len(), parts.len(), "{}", text);
        for ((_, sql), found) in parts.iter().zip(found) {
            // Comments before a statement may stay with it.
            prop_assert!(found.trim_end().ends_with(sql.as_str()), "{} in {}", found, text);
        }
    }

    #[test]
    fn cutting_never_loses_or_makes_anything(text in ".{0,60}") {
        let mut rest = text.as_str();
        for statement in split_statements(&text) {
            let at = rest.find(statement);
            prop_assert!(at.is_some(), "{}", statement);
            rest = &rest[at.unwrap() + statement.len()..];
        }
    }

    #[test]
    fn question_marks_in_quotes_are_no_parameters(sql in statement(), marks in 0_usize..4) {
        prop_assert_eq!(number_parameters(&sql), sql.as_str());
        let asked = format!("{sql}{}", " , ?".repeat(marks));
        let numbers: String = (1..=marks).map(|n| format!(" , ${n}")).collect();
        prop_assert_eq!(number_parameters(&asked), format!("{sql}{numbers}"));
    }

    #[test]
    fn a_statement_that_numbers_its_parameters_is_left_alone(text in "[a-z?]{0,10}") {
        let sql = format!("select $1, '{text}'");
        prop_assert_eq!(number_parameters(&sql), sql.as_str());
    }

    #[test]
    fn a_numeric_is_shown_without_zeros_at_its_end(whole in any::<i64>(), digits in "[0-9]{0,38}") {
        let text = match digits.is_empty() {
            true => whole.to_string(),
            false => format!("{whole}.{digits}"),
        };
        let shown = numeric_text(&text);
        prop_assert!(text.starts_with(shown));
        prop_assert!(text[shown.len()..].chars().all(|c| matches!(c, '0' | '.')));
        prop_assert!(!shown.ends_with('.'));
        if let Some((_, fraction)) = shown.split_once('.') {
            prop_assert!(!fraction.ends_with('0'), "{}", shown);
        }
        prop_assert_eq!(numeric_text(shown), shown);
    }

    #[test]
    fn what_has_no_password_is_shown_as_it_is(sql in "[a-df-z '(),=0-9]{0,60}") {
        // Without an e there is no word that makes a role.
        prop_assume!(!sql.contains("password"));
        prop_assert_eq!(without_secrets(&sql), sql.as_str());
    }

    #[test]
    fn percentiles_rise_with_their_share(counts in prop::collection::vec(0_u64..50, 1..160)) {
        let shares = [0.0, 0.1, 0.5, 0.9, 0.99, 1.0];
        let found: Vec<Option<f64>> =
            shares.iter().map(|share| LatencyHistogram::percentile_us(&counts, *share, u64::MAX)).collect();
        if counts.iter().all(|count| *count == 0) {
            prop_assert!(found.iter().all(Option::is_none));
            return Ok(());
        }
        let found: Vec<f64> = found.into_iter().map(Option::unwrap).collect();
        prop_assert!(found.is_sorted(), "{:?}", found);
        let first = counts.iter().position(|count| *count > 0).unwrap();
        let last = counts.iter().rposition(|count| *count > 0).unwrap();
        let upper = LatencyHistogram::bucket_upper_us;
        prop_assert!(found[0] <= upper(first) && found[0] >= upper(first) / 1.1893);
        prop_assert!((found[5] / upper(last) - 1.0).abs() < 1e-9);
        let longest = upper(last) as u64;
        let most = LatencyHistogram::percentile_us(&counts, 1.0, longest).unwrap();
        prop_assert_eq!(most, longest as f64);
    }
}

#[test]
fn buckets_of_latencies_grow_by_a_fifth() {
    for bucket in 0..159 {
        let (one, next) = (
            LatencyHistogram::bucket_upper_us(bucket),
            LatencyHistogram::bucket_upper_us(bucket + 1),
        );
        assert!((next / one - 1.189_207).abs() < 1e-5, "{bucket}: {one} {next}");
    }
    assert_eq!(LatencyHistogram::default().snapshot().iter().sum::<u64>(), 0);
}

#[test]
fn types_have_the_names_that_create_table_takes() {
    use arrow::datatypes::{DataType, Field, TimeUnit};
    let list = DataType::List(std::sync::Arc::new(Field::new("element", DataType::Utf8, true)));
    let fields = vec![Field::new("a", DataType::Int32, true), Field::new("b", list.clone(), true)];
    for (data_type, expected) in [
        (DataType::Boolean, "boolean"),
        (DataType::Int16, "integer"),
        (DataType::Int64, "bigint"),
        (DataType::Float32, "real"),
        (DataType::Float64, "double precision"),
        (DataType::Decimal128(12, 3), "decimal(12, 3)"),
        (NUMERIC, "numeric"),
        (DataType::LargeUtf8, "text"),
        (DataType::Binary, "bytea"),
        (DataType::Date32, "date"),
        (DataType::Time64(TimeUnit::Microsecond), "time"),
        (DataType::Timestamp(TimeUnit::Microsecond, None), "timestamp"),
        (
            DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
            "timestamp with time zone",
        ),
        (DataType::FixedSizeBinary(16), "uuid"),
        (list, "array<text>"),
        (DataType::Struct(fields.into()), "struct<a integer, b array<text>>"),
    ] {
        assert_eq!(sql_type(&data_type), expected);
    }
}
