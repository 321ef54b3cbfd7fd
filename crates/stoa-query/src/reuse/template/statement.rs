//! Statements whose values are lifted out of a plan that is used again.

use std::borrow::Cow;
use std::sync::Arc;

use arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::ScalarValue;
use stoa_sql::fingerprint::Fingerprint;

use super::lift::value_of;
use super::plan::{PlanTemplate, fitting};

/// A plan with places for the values of statements of one form.
#[derive(Debug)]
pub(crate) struct LiftedForm {
    /// How many parameters its statements have.
    pub(crate) parameters: usize,
    /// Literals that are part of the form.
    pub(crate) pinned: Vec<(usize, String)>,
    /// Numbers of the literals that are values, in order.
    pub(crate) values: Vec<usize>,
    pub(crate) template: PlanTemplate,
    pub(crate) schema: SchemaRef,
}

/// A statement like one that was planned before, and the values in it.
#[derive(Clone, Debug)]
pub(crate) struct LiftedStatement {
    form: Arc<LiftedForm>,
    /// Those that were literals.
    values: Arc<[ScalarValue]>,
}

impl LiftedStatement {
    /// The statement with this fingerprint; `None` where its values are of other types than the form's.
    pub(crate) fn of(form: Arc<LiftedForm>, fingerprint: &Fingerprint<'_>) -> Option<Self> {
        let value = |number: &usize| value_of(fingerprint.literals.get(*number)?);
        let values: Vec<ScalarValue> = form.values.iter().map(value).collect::<Option<_>>()?;
        let values = fitting(&values, form.template.types().get(form.parameters..)?)?;
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

    /// Types of its parameters.
    pub(crate) fn parameter_types(&self) -> &[DataType] {
        self.form.template.types().get(..self.form.parameters).unwrap_or_default()
    }

    /// All values, those of its parameters first; `None` where these are not as many as it has.
    pub(crate) fn values<'a>(
        &'a self,
        parameters: &[ScalarValue],
    ) -> Option<Cow<'a, [ScalarValue]>> {
        (parameters.len() == self.form.parameters).then(|| match parameters {
            [] => Cow::Borrowed(&*self.values),
            parameters => parameters.iter().chain(&*self.values).cloned().collect(),
        })
    }
}
