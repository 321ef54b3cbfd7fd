//! Compares a report's answer with the sums the generator gives.

use stoa_error::{Error, Result};

use crate::ad_report::{AdReport, DailySums};
use crate::report::Report;

/// Says whether `answer` is what `report` must return.
///
/// # Errors
/// Names the report, and the first line that differs.
pub(crate) fn check(table: &AdReport, report: &Report, answer: &[DailySums]) -> Result<()> {
    let expected = report.expected(table);
    let differs = expected.iter().zip(answer).position(|(e, a)| e != a);
    if differs.is_none() && expected.len() == answer.len() {
        return Ok(());
    }
    let line = differs.unwrap_or(expected.len().min(answer.len()));
    let show = |lines: &[DailySums]| lines.get(line).map_or("no line".into(), |l| format!("{l:?}"));
    Err(Error::corrupt(format!(
        "wrong answer: account {} from {} to {}: line {} is {}, must be {}",
        report.account_id,
        report.first_day,
        report.last_day,
        line + 1,
        show(answer),
        show(&expected)
    ))
    .with_detail(format!("{} lines answered, {} expected", answer.len(), expected.len()))
    .with_hint(
        "if table ad_report was made with another --rows, --accounts or --seed, make it anew",
    ))
}
