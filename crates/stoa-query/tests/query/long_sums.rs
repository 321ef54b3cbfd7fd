//! Long sums and products, which are one function, answer as the same in short steps, which are operators.

use crate::statements::Home;
use arrow::array::Array;
use arrow::util::display::array_value_to_string;
use stoa_query::{Outcome, Session};

/// One row with a column of each kind of number.
const NUMBERS: &str = "(SELECT CAST(7 AS smallint) AS s, CAST(70000 AS int) AS i, \
     CAST(7000000000 AS bigint) AS l, CAST(1.25 AS decimal(12,2)) AS d, CAST(2.5 AS real) AS r, \
     CAST(0.125 AS double precision) AS f, CAST(NULL AS int) AS n) numbers";

const COLUMNS: &str = "s, i, l, d, r, f, n";

/// What sums are made of.
const KINDS: [&[&str]; 7] = [
    &["s", "s", "1"],
    &["i", "1", "20000000"],
    &["s", "i", "l", "1", "5000000000"],
    &["d", "1", "2.50", "i", "0.001"],
    &["r", "1.5", "i"],
    &["f", "r", "1", "d", "0.1"],
    &["l", "d", "n", "3"],
];

/// Links of a chain from which it is one function; shorter ones stay operators.
const STEP: usize = 12;

struct Sum(Vec<(char, &'static str)>);

impl Sum {
    fn random(kind: &[&'static str], signs: [char; 3], terms: usize, seed: &mut u64) -> Self {
        let mut next = |below: usize| {
            *seed = seed.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            (*seed >> 33) as usize % below
        };
        Self((0..terms).map(|_| (signs[next(3)], kind[next(kind.len())])).collect())
    }

    fn whole(&self) -> String {
        format!("SELECT {} AS x FROM {NUMBERS}", chain(&self.0))
    }

    fn in_steps(&self) -> String {
        let mut from = NUMBERS.to_owned();
        let mut so_far = String::new();
        let steps: Vec<_> = self.0.chunks(STEP).collect();
        for (number, step) in steps.iter().enumerate() {
            let sum = match number {
                0 => chain(step),
                _ => {
                    let more = step.iter().map(|(sign, term)| format!(" {sign} {term}"));
                    format!("{so_far}{}", more.collect::<String>())
                }
            };
            from = format!("(SELECT {sum} AS x{number}, {COLUMNS} FROM {from}) step{number}");
            so_far = format!("x{number}");
        }
        format!("SELECT {so_far} AS x FROM {from}")
    }
}

/// The first term has no sign.
fn chain(terms: &[(char, &str)]) -> String {
    let mut terms = terms.iter();
    let mut text = terms.next().map_or_else(String::new, |(_, term)| (*term).to_owned());
    terms.for_each(|(sign, term)| text.push_str(&format!(" {sign} {term}")));
    text
}

/// Type and value of the only column of the only row, or the error's code.
async fn answer(session: &Session, sql: &str) -> Result<(String, String), &'static str> {
    let outcome = session.sql(sql).await.map_err(|error| error.sqlstate())?;
    let Outcome::Rows(rows) = outcome else { panic!("{sql} gives no rows") };
    let batches = rows.collect().await.map_err(|error| error.sqlstate())?;
    let column = batches.iter().find(|batch| batch.num_rows() > 0).unwrap().column(0);
    Ok((column.data_type().to_string(), array_value_to_string(column, 0).unwrap()))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_sum_is_that_of_its_steps() {
    let home = Home::new().await;
    let mut seed = 1;
    let (mut answers, mut errors) = (0, 0);
    for kind in KINDS {
        for terms in [60, 100, 150] {
            let sum = Sum::random(kind, ['+', '+', '-'], terms, &mut seed);
            let whole = answer(&home.long, &sum.whole()).await;
            assert_eq!(whole, answer(&home.long, &sum.in_steps()).await, "{}", sum.whole());
            *(if whole.is_ok() { &mut answers } else { &mut errors }) += 1;
        }
    }
    assert!(answers > 10, "{answers} answers, {errors} errors");
    let overflow = format!("SELECT {} AS x FROM {NUMBERS}", vec!["20000000"; 150].join(" + "));
    assert_eq!(answer(&home.long, &overflow).await.unwrap_err(), "22003");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_product_is_that_of_its_steps() {
    let home = Home::new().await;
    let mut seed = 2;
    let kinds: [&[&str]; 6] = [
        &["s", "1"],
        &["i", "1", "s"],
        &["l", "i", "3"],
        &["f", "r", "1.5"],
        &["r", "r"],
        &["i", "n"],
    ];
    let mut answers = 0;
    for kind in kinds {
        for signs in [['*', '/', '/'], ['*', '/', '%'], ['*', '*', '/']] {
            for factors in [40, 100] {
                let product = Sum::random(kind, signs, factors, &mut seed);
                let whole = answer(&home.long, &product.whole()).await;
                let in_steps = answer(&home.long, &product.in_steps()).await;
                assert_eq!(whole, in_steps, "{}", product.whole());
                answers += u32::from(whole.is_ok());
            }
        }
    }
    assert!(answers > 10, "{answers} answers");
    // Longer than expressions may be deep.
    let ones = vec!["1"; 3_000].join(" * ");
    assert_eq!(answer(&home.long, &format!("SELECT 7 * {ones} AS x")).await.unwrap().1, "7");
}

#[tokio::test(flavor = "multi_thread")]
async fn chains_of_other_operators_do_not_grow() {
    let home = Home::new().await;
    let odd = format!("SELECT i{} AS x FROM {NUMBERS}", " # 1".repeat(201));
    assert_eq!(answer(&home.long, &odd).await.unwrap().1, "70001");
    let none = format!("SELECT coalesce(n{}, 5) AS x FROM {NUMBERS}", " # n".repeat(201));
    assert_eq!(answer(&home.long, &none).await.unwrap().1, "5");
    let text = format!("SELECT length('a' || {}) AS x", vec!["'bc'"; 300].join(" || "));
    assert_eq!(answer(&home.long, &text).await.unwrap().1, "601");
}

#[tokio::test(flavor = "multi_thread")]
async fn dates_and_intervals_are_added_up_one_after_another() {
    let home = Home::new().await;
    let days = vec!["INTERVAL '1 day'"; 100].join(" + ");
    let sum = format!("SELECT CAST(DATE '2026-01-01' + {days} AS date) AS x");
    assert_eq!(answer(&home.long, &sum).await.unwrap().1, "2026-04-11");
    let many = vec!["INTERVAL '1 day'"; 300].join(" + ");
    let refused = answer(&home.long, &format!("SELECT DATE '2026-01-01' + {many} AS x")).await;
    assert_eq!(refused.unwrap_err(), "54001");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_function_of_long_sums_is_not_to_be_called() {
    let home = Home::new().await;
    for call in ["()", "('+')", "('+', 1)", "('++', 1, 2)", "(1, 2, 3)", "(NULL, 1)"] {
        let refused = answer(&home.long, &format!("SELECT stoa_sum_of_terms{call} AS x")).await;
        assert!(refused.is_err(), "{call} {refused:?}");
    }
}
