//! What EXPLAIN says of a composite report: the head's operators, with reports as their leaves.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use stoa_report::Answer;
use stoa_store::Charged;

use super::Composite;
use crate::reuse::report::explain::{Answered, ReportRun, analysed, operator};
use crate::run::live_plan::{DescribeWork, PlanNode, nanoseconds};

/// How the line of a leaf begins, before its number.
pub(super) const LEAF: &str = "report ";

/// Name of the operator that stands for a whole head in lists of running statements.
const HEAD: &str = "ReportHeadExec";

/// The operators, one a line; `columns` are those of the tables.
pub(crate) fn operators(composite: &Composite, columns: &[SchemaRef]) -> String {
    shown(composite, |number| {
        let core = composite.cores().get(number)?;
        Some(operator(&core.shape, columns.get(core.table)?))
    })
}

/// The operators with what the reports took.
pub(crate) fn analysed_operators(
    composite: &Composite,
    columns: &[SchemaRef],
    answers: &[(Answer, std::time::Duration)],
    store: &Charged,
) -> String {
    shown(composite, |number| {
        let core = composite.cores().get(number)?;
        let (answer, elapsed) = answers.get(number)?;
        Some(analysed(&core.shape, columns.get(core.table)?, answer, store, *elapsed))
    })
}

/// The head as the engine shows it, with other lines for its leaves; then those of subqueries.
fn shown(composite: &Composite, leaf: impl Fn(usize) -> Option<String>) -> String {
    let line = |line: &str| {
        let text = line.trim_start();
        let number = text.strip_prefix(LEAF).and_then(|number| number.parse().ok());
        match number.and_then(&leaf) {
            Some(leaf) => format!("{}{leaf}", &line[..line.len() - text.len()]),
            None => line.to_owned(),
        }
    };
    let heads = std::iter::once(&**composite.head()).chain(&*composite.scalars);
    heads.flat_map(|head| head.shown().lines()).map(line).collect::<Vec<_>>().join("\n")
}

/// A composite report, and what it took once it is answered.
#[derive(Clone, Debug)]
pub(crate) struct CompositeRun {
    pub(crate) composite: Arc<Composite>,
    /// Columns of its tables.
    pub(crate) columns: Arc<[SchemaRef]>,
    /// What the cores took, and the whole; its work is that of the last core.
    pub(crate) answered: Option<(Vec<Answered>, Answered)>,
}

impl DescribeWork for CompositeRun {
    fn describe(&self) -> PlanNode {
        let leaf = |(number, core): (usize, &super::Core)| {
            let columns = self.columns.get(core.table)?;
            let answered = self.answered.as_ref().and_then(|(cores, _)| cores.get(number));
            let run = ReportRun {
                shape: Arc::clone(&core.shape),
                columns: Arc::clone(columns),
                answered: answered.copied(),
            };
            Some(run.describe())
        };
        let whole = self.answered.as_ref().map(|(_, whole)| whole);
        PlanNode {
            name: HEAD.to_owned(),
            detail: "short_path=yes".to_owned(),
            rows: whole.map(|whole| whole.rows),
            compute_ns: whole.map(|whole| nanoseconds(whole.elapsed)),
            metrics: Vec::new(),
            inputs: self.composite.cores().iter().enumerate().filter_map(leaf).collect(),
        }
    }
}
