//! Templates of statements, by fingerprint.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion::common::ScalarValue;
use quick_cache::sync::Cache;

use super::lift::{Lift, value_of};
use super::plan::{PlanTemplate, fitting};
use crate::report::fingerprint::Fingerprint;

/// Fingerprints that are remembered. A plan takes some ten KB.
const TEMPLATES_MAX: usize = 1024;

/// Templates of one fingerprint, which differ in literals that are part of the form.
const FORMS_MAX: usize = 16;

/// What is known of fingerprints.
pub(crate) struct PlanTemplates {
    by_text: Cache<String, Known>,
}

#[derive(Clone)]
enum Known {
    /// Seen once: the next time a template is worth its cost.
    Once,
    Forms(Arc<[Arc<Form>]>),
    /// Nobody needs to look again.
    Other,
}

/// A statement whose values are lifted.
#[derive(Debug)]
struct Form {
    pinned: Vec<(usize, String)>,
    values: Vec<usize>,
    template: PlanTemplate,
    schema: SchemaRef,
}

/// A statement like one that was planned before, and its values.
#[derive(Clone, Debug)]
pub(crate) struct LiftedStatement {
    form: Arc<Form>,
    values: Arc<[ScalarValue]>,
}

impl Default for PlanTemplates {
    fn default() -> Self {
        Self { by_text: Cache::new(TEMPLATES_MAX) }
    }
}

impl PlanTemplates {
    /// The statement `sql` as one of a known form, in a session like `context`.
    pub(crate) fn find(&self, context: &str, sql: &str) -> Option<LiftedStatement> {
        let fingerprint = Fingerprint::of(sql)?;
        let Known::Forms(forms) = self.by_text.get(&fingerprint.key(context))? else {
            return None;
        };
        let form = forms.iter().find(|form| fingerprint.has(&form.pinned))?.clone();
        let value = |number: &usize| value_of(fingerprint.literals.get(*number)?);
        let values: Vec<ScalarValue> = form.values.iter().map(value).collect::<Option<_>>()?;
        let values = fitting(&values, form.template.types())?;
        Some(LiftedStatement { form, values: values.into() })
    }

    /// The statement to plan so as to learn the form of `sql`, which was just planned as it stands;
    /// `None` if it was not seen before, or is known.
    pub(crate) fn wanted(&self, context: &str, sql: &str) -> Option<Wanted> {
        let fingerprint = Fingerprint::of(sql)?;
        let key = fingerprint.key(context);
        let forms = match self.by_text.get(&key) {
            None => {
                self.by_text.insert(key, Known::Once);
                return None;
            }
            Some(Known::Other) => return None,
            Some(Known::Once) => Arc::default(),
            Some(Known::Forms(forms)) => forms,
        };
        let lift = match forms.len() < FORMS_MAX {
            true => Lift::of(&fingerprint),
            false => None,
        };
        if lift.is_none() && forms.is_empty() {
            self.by_text.insert(key.clone(), Known::Other);
        }
        Some(Wanted { key, lift: lift? })
    }

    /// Remembers the template of a form; without one, nobody looks again.
    pub(crate) fn learn(&self, wanted: Wanted, template: Option<(PlanTemplate, SchemaRef)>) {
        let Some((template, schema)) = template else {
            self.by_text.insert(wanted.key, Known::Other);
            return;
        };
        let Lift { values, pinned, .. } = wanted.lift;
        let mut forms = match self.by_text.get(&wanted.key) {
            Some(Known::Forms(forms)) => forms.to_vec(),
            _ => Vec::new(),
        };
        // One of the same pinned literals is replaced: its table has changed.
        forms.retain(|known| known.pinned != pinned);
        forms.truncate(FORMS_MAX - 1);
        forms.insert(0, Arc::new(Form { pinned, values, template, schema }));
        self.by_text.insert(wanted.key, Known::Forms(forms.into()));
    }

    /// How many fingerprints have a template.
    pub(crate) fn known(&self) -> usize {
        self.by_text.iter().filter(|(_, known)| matches!(known, Known::Forms(_))).count()
    }
}

/// A form that is to be planned.
pub(crate) struct Wanted {
    key: String,
    lift: Lift,
}

impl Wanted {
    /// The statement with parameters.
    pub(crate) fn text(&self) -> &str {
        &self.lift.text
    }

    /// How many it has.
    pub(crate) fn parameters(&self) -> usize {
        self.lift.values.len()
    }
}

impl LiftedStatement {
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
