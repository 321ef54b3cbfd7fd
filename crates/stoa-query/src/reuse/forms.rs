//! What statements became that differ from later ones in their literals only: reports, and plans with places
//! for values. By fingerprint, one look for both.
//!
//! In: the fingerprint of a statement, and in which sessions it means the same (`context`). Out: the report or the plan
//! that it is. **Invariant:** a form is found only by texts whose literals outside of its places are the same.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use stoa_sql::fingerprint::{Fingerprint, SharedFingerprint};

use super::report::{ReportShape, ReportStatement};
use super::template::{Lift, LiftedForm, LiftedStatement, PlanTemplate};

/// Fingerprints that are remembered, whether anything is known of them or not; fewer where there are plans.
const FINGERPRINTS_MAX: u64 = 4096;

/// What a plan takes of [`FINGERPRINTS_MAX`]: some ten KB.
const PLAN_WEIGHT: u64 = 4;

/// Forms of one kind and one fingerprint, which differ in literals that are part of the form.
const FORMS_MAX: usize = 16;

/// What is known of statements, by fingerprint.
pub(crate) struct Forms {
    by_text: Cache<String, KnownForms, FormWeights>,
}

/// What statements of one fingerprint became.
#[derive(Clone, Default)]
struct KnownForms {
    reports: Learnt<ReportShape>,
    plans: Learnt<LiftedForm>,
}

/// What is known of one kind.
#[derive(Default)]
enum Learnt<F> {
    /// Nobody has looked.
    #[default]
    Unknown,
    /// Seen once: the next time a form is worth its cost.
    SeenOnce,
    Forms(Arc<[Arc<F>]>),
    /// They are not of this kind: nobody needs to look again.
    NotOfThisKind,
}

/// Statements with places, of which only some literals differ.
trait Form {
    /// Literals that are part of it, by number.
    fn pinned(&self) -> &[(usize, String)];
}

/// A statement that is known.
pub(crate) enum KnownStatement {
    Report(ReportStatement),
    Lifted(LiftedStatement),
}

/// Which kinds of forms a session uses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FormKinds {
    pub(crate) reports: bool,
    pub(crate) plans: bool,
}

/// A form that is to be planned.
pub(crate) struct Wanted {
    key: String,
    lift: Lift,
}

impl Default for Forms {
    fn default() -> Self {
        let by_text =
            Cache::with_weighter(FINGERPRINTS_MAX as usize, FINGERPRINTS_MAX, FormWeights);
        Self { by_text }
    }
}

impl Forms {
    /// The statement with this fingerprint as one of a known form, in a session like `context`; a report rather
    /// than a plan.
    pub(crate) fn find(
        &self,
        context: &str,
        fingerprint: &SharedFingerprint,
        kinds: FormKinds,
    ) -> Option<KnownStatement> {
        let known = self.by_text.get(&fingerprint.key(context))?;
        if kinds.reports
            && let Some(shape) = known.reports.find(fingerprint)
        {
            let report = ReportStatement::new(shape, Arc::clone(fingerprint));
            return Some(KnownStatement::Report(report));
        }
        let form = kinds.plans.then(|| known.plans.find(fingerprint)).flatten()?;
        LiftedStatement::of(form, fingerprint).map(KnownStatement::Lifted)
    }

    /// The report that a statement is, if one of its form was seen before.
    pub(crate) fn find_report(
        &self,
        context: &str,
        fingerprint: &SharedFingerprint,
    ) -> Option<ReportStatement> {
        match self.find(context, fingerprint, FormKinds { reports: true, plans: false })? {
            KnownStatement::Report(report) => Some(report),
            KnownStatement::Lifted(_) => None,
        }
    }

    /// Whether a statement is known to be no report.
    pub(crate) fn is_no_report(&self, context: &str, fingerprint: &Fingerprint<'_>) -> bool {
        let known = self.by_text.get(&fingerprint.key(context));
        known.is_some_and(|known| matches!(known.reports, Learnt::NotOfThisKind))
    }

    /// Remembers which report a statement is, if it is one, unless it is known to be none. Gives the statement
    /// back as a report.
    pub(crate) fn learn_report(
        &self,
        context: &str,
        fingerprint: &SharedFingerprint,
        recognise: impl FnOnce() -> Option<ReportShape>,
    ) -> Option<ReportStatement> {
        let key = fingerprint.key(context);
        let known = self.by_text.get(&key).unwrap_or_default();
        if matches!(known.reports, Learnt::NotOfThisKind) {
            return None;
        }
        let shape = recognise().map(Arc::new);
        let reports = match &shape {
            Some(shape) => known.reports.with(Arc::clone(shape)),
            None => Learnt::NotOfThisKind,
        };
        self.by_text.insert(key, KnownForms { reports, ..known });
        shape.map(|shape| ReportStatement::new(shape, Arc::clone(fingerprint)))
    }

    /// The statement to plan so as to learn the form of one that was just planned as it stands; `None` if it
    /// was not seen before, or is known.
    pub(crate) fn wanted(&self, context: &str, fingerprint: &Fingerprint<'_>) -> Option<Wanted> {
        let key = fingerprint.key(context);
        let known = self.by_text.get(&key).unwrap_or_default();
        let has_room = match &known.plans {
            Learnt::Unknown => {
                self.by_text.insert(key, KnownForms { plans: Learnt::SeenOnce, ..known });
                return None;
            }
            Learnt::NotOfThisKind => return None,
            Learnt::SeenOnce => true,
            Learnt::Forms(forms) => forms.len() < FORMS_MAX,
        };
        let lift = if has_room { Lift::of(fingerprint) } else { None };
        if lift.is_none() && matches!(known.plans, Learnt::SeenOnce) {
            self.by_text.insert(key.clone(), KnownForms { plans: Learnt::NotOfThisKind, ..known });
        }
        Some(Wanted { key, lift: lift? })
    }

    /// Remembers the template of a form; without one, nobody looks again.
    pub(crate) fn learn_plan(&self, wanted: Wanted, template: Option<(PlanTemplate, SchemaRef)>) {
        let known = self.by_text.get(&wanted.key).unwrap_or_default();
        let plans = match template {
            Some((template, schema)) => {
                let Lift { parameters, values, pinned, .. } = wanted.lift;
                let form = LiftedForm { parameters, pinned, values, template, schema };
                known.plans.with(Arc::new(form))
            }
            None => Learnt::NotOfThisKind,
        };
        self.by_text.insert(wanted.key, KnownForms { plans, ..known });
    }

    /// Fingerprints of which it is known whether they are reports.
    pub(crate) fn reports_known(&self) -> usize {
        self.by_text.iter().filter(|(_, known)| !matches!(known.reports, Learnt::Unknown)).count()
    }

    /// Fingerprints that have a plan with places.
    pub(crate) fn plans_known(&self) -> usize {
        self.by_text.iter().filter(|(_, known)| matches!(known.plans, Learnt::Forms(_))).count()
    }
}

impl Wanted {
    /// The statement with parameters.
    pub(crate) fn text(&self) -> &str {
        &self.lift.text
    }

    /// How many of them it had before.
    pub(crate) fn own_parameters(&self) -> usize {
        self.lift.parameters
    }

    /// How many it has.
    pub(crate) fn parameters(&self) -> usize {
        self.lift.parameters + self.lift.values.len()
    }
}

impl<F: Form> Learnt<F> {
    fn find(&self, fingerprint: &Fingerprint<'_>) -> Option<Arc<F>> {
        let Self::Forms(forms) = self else { return None };
        forms.iter().find(|form| fingerprint.has(form.pinned())).cloned()
    }

    /// With one form more. One of the same pinned literals is replaced: its table has changed.
    fn with(&self, form: Arc<F>) -> Self {
        let mut forms = match self {
            Self::Forms(forms) => forms.to_vec(),
            Self::Unknown | Self::SeenOnce | Self::NotOfThisKind => Vec::new(),
        };
        forms.retain(|known| known.pinned() != form.pinned());
        forms.truncate(FORMS_MAX - 1);
        forms.insert(0, form);
        Self::Forms(forms.into())
    }
}

impl<F> Clone for Learnt<F> {
    fn clone(&self) -> Self {
        match self {
            Self::Unknown => Self::Unknown,
            Self::SeenOnce => Self::SeenOnce,
            Self::Forms(forms) => Self::Forms(Arc::clone(forms)),
            Self::NotOfThisKind => Self::NotOfThisKind,
        }
    }
}

impl Form for ReportShape {
    fn pinned(&self) -> &[(usize, String)] {
        &self.pinned
    }
}

impl Form for LiftedForm {
    fn pinned(&self) -> &[(usize, String)] {
        &self.pinned
    }
}

/// What is known of a fingerprint, by what it takes.
#[derive(Clone)]
struct FormWeights;

impl Weighter<String, KnownForms> for FormWeights {
    fn weight(&self, _: &String, known: &KnownForms) -> u64 {
        match &known.plans {
            Learnt::Forms(forms) => 1 + PLAN_WEIGHT * forms.len() as u64,
            _ => 1,
        }
    }
}
