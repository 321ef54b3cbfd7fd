//! Statements that are reports.

use std::sync::Arc;

use arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::ScalarValue;
use stoa_report::Report;
use stoa_sql::fingerprint::SharedFingerprint;

use super::bind::Values;
use super::shape::ReportShape;

/// A statement that is a report.
#[derive(Clone, Debug)]
pub(crate) struct ReportStatement {
    pub(crate) shape: Arc<ReportShape>,
    fingerprint: SharedFingerprint,
}

impl ReportStatement {
    pub(crate) fn new(shape: Arc<ReportShape>, fingerprint: SharedFingerprint) -> Self {
        Self { shape, fingerprint }
    }

    /// Columns of the answer.
    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.shape.schema
    }

    /// Types of the parameters.
    pub(crate) fn parameter_types(&self) -> &[DataType] {
        &self.shape.parameter_types
    }

    /// The report with its values; `None` where the planner must see them.
    pub(crate) fn bind(&self, parameters: &[ScalarValue]) -> Option<Report> {
        self.shape.bind(&Values { literals: &self.fingerprint.literals, parameters })
    }
}
