//! Templates of earlier statements, by fingerprint.

use std::borrow::Cow;
use std::sync::Arc;

use arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::ScalarValue;
use quick_cache::sync::Cache;
use stoa_report::Report;

use super::bind::Values;
use super::fingerprint::{Fingerprint, Literal};
use super::shape::ReportShape;

/// Fingerprints that are remembered, whether they are reports or not.
const TEMPLATES_MAX: usize = 4096;

/// Shapes of one fingerprint, which differ in literals that are part of the shape.
const SHAPES_MAX: usize = 16;

/// What is known of fingerprints.
pub(crate) struct Templates {
    by_text: Cache<String, Known>,
}

#[derive(Clone)]
enum Known {
    Shapes(Arc<[Arc<ReportShape>]>),
    /// No report: nobody needs to look again.
    Other,
}

/// A statement that is a report.
#[derive(Clone, Debug)]
pub(crate) struct ReportStatement {
    pub(crate) shape: Arc<ReportShape>,
    literals: Arc<[Literal<'static>]>,
}

impl Default for Templates {
    fn default() -> Self {
        Self { by_text: Cache::new(TEMPLATES_MAX) }
    }
}

impl Templates {
    /// The report that `sql` is, if one of its kind was seen before in a session of this `context`.
    pub(crate) fn find(&self, context: &str, sql: &str) -> Option<ReportStatement> {
        let fingerprint = Fingerprint::of(sql)?;
        let Known::Shapes(shapes) = self.by_text.get(&fingerprint.key(context))? else {
            return None;
        };
        let shape = shapes.iter().find(|shape| fingerprint.has(&shape.pinned))?.clone();
        Some(ReportStatement::new(shape, fingerprint))
    }

    /// Remembers what `recognise` finds out about the fingerprint of `sql`, unless it is known to be
    /// no report. Gives the statement back as a report, if it is one.
    pub(crate) fn learn(
        &self,
        context: &str,
        sql: &str,
        recognise: impl FnOnce(&Fingerprint<'_>) -> Option<ReportShape>,
    ) -> Option<ReportStatement> {
        let fingerprint = Fingerprint::of(sql)?;
        let key = fingerprint.key(context);
        let known = self.by_text.get(&key);
        if matches!(known, Some(Known::Other)) {
            return None;
        }
        let Some(shape) = recognise(&fingerprint).map(Arc::new) else {
            self.by_text.insert(key, Known::Other);
            return None;
        };
        // One of the same pinned literals is replaced: its table has changed.
        let mut shapes = match known {
            Some(Known::Shapes(shapes)) => shapes.to_vec(),
            _ => Vec::new(),
        };
        shapes.retain(|known| known.pinned != shape.pinned);
        shapes.truncate(SHAPES_MAX - 1);
        shapes.insert(0, shape.clone());
        self.by_text.insert(key, Known::Shapes(shapes.into()));
        Some(ReportStatement::new(shape, fingerprint))
    }

    /// Whether a text is known to be no report.
    pub(crate) fn is_known(&self, context: &str, sql: &str) -> bool {
        let Some(fingerprint) = Fingerprint::of(sql) else { return true };
        matches!(self.by_text.get(&fingerprint.key(context)), Some(Known::Other))
    }

    /// How many fingerprints are known.
    pub(crate) fn known(&self) -> usize {
        self.by_text.len()
    }
}

impl ReportStatement {
    fn new(shape: Arc<ReportShape>, fingerprint: Fingerprint<'_>) -> Self {
        let own = |literal: Literal<'_>| Literal {
            kind: literal.kind,
            text: Cow::Owned(literal.text.into_owned()),
        };
        Self { shape, literals: fingerprint.literals.into_iter().map(own).collect() }
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
        self.shape.bind(&Values { literals: &self.literals, parameters })
    }
}
