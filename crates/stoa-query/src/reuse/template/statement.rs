//! Statements whose values are lifted out of a plan that is used again.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion::common::ScalarValue;
use stoa_sql::fingerprint::Fingerprint;

use super::lift::value_of;
use super::plan::{PlanTemplate, fitting};

/// A plan with places for the values of statements of one form.
#[derive(Debug)]
pub(crate) struct LiftedForm {
    /// Literals that are part of the form.
    pub(crate) pinned: Vec<(usize, String)>,
    /// Numbers of the literals that are values, in order.
    pub(crate) values: Vec<usize>,
    pub(crate) template: PlanTemplate,
    pub(crate) schema: SchemaRef,
}

/// A statement like one that was planned before, and its values.
#[derive(Clone, Debug)]
pub(crate) struct LiftedStatement {
    form: Arc<LiftedForm>,
    values: Arc<[ScalarValue]>,
}

impl LiftedStatement {
    /// The statement with this fingerprint; `None` where its values are of other types than the form's.
    pub(crate) fn of(form: Arc<LiftedForm>, fingerprint: &Fingerprint<'_>) -> Option<Self> {
        let value = |number: &usize| value_of(fingerprint.literals.get(*number)?);
        let values: Vec<ScalarValue> = form.values.iter().map(value).collect::<Option<_>>()?;
        let values = fitting(&values, form.template.types())?;
        Some(Self { form, values: values.into() })
    }

    /// Columns of the answer.
    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.form.schema
    }

    /// Its plan with places.
    pub(crate) fn template(&self) -> &PlanTemplate {
        &self.form.template
    }

    /// Its values.
    pub(crate) fn values(&self) -> &[ScalarValue] {
        &self.values
    }
}
