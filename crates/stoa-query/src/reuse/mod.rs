//! What earlier statements left for later ones: forms of reports, plans with places for values, translations of HiveQL,
//! answers.
//!
//! In: a statement's text or plan, and values. Out: a report, a plan or an answer that is the same as if the
//! statement had been planned and run.

pub(crate) mod composite;
pub(crate) mod forms;
pub(crate) mod report;
pub(crate) mod results;
pub(crate) mod template;
pub(crate) mod translations;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use forms::Forms;
use results::Results;
use translations::Translations;

/// What all sessions of an engine share of it, and how often it was of use.
pub(crate) struct Reuse {
    forms: Forms,
    translations: Translations,
    results: Arc<Results>,
    reports_answered: AtomicU64,
    plans_used: AtomicU64,
}

impl Reuse {
    /// Keeps answers of at most `result_bytes_max` bytes together.
    pub(crate) fn new(result_bytes_max: u64) -> Self {
        Self {
            forms: Forms::default(),
            translations: Translations::default(),
            results: Arc::new(Results::new(result_bytes_max)),
            reports_answered: AtomicU64::new(0),
            plans_used: AtomicU64::new(0),
        }
    }

    /// What statements became.
    pub(crate) fn forms(&self) -> &Forms {
        &self.forms
    }

    /// What queries of HiveQL became.
    pub(crate) fn translations(&self) -> &Translations {
        &self.translations
    }

    /// What they were answered.
    pub(crate) fn results(&self) -> &Arc<Results> {
        &self.results
    }

    /// Counts a report that was answered without the planner.
    pub(crate) fn count_report(&self) {
        self.reports_answered.fetch_add(1, Ordering::Relaxed);
    }

    /// Reports that were answered without the planner, since the start.
    pub(crate) fn reports_answered(&self) -> u64 {
        self.reports_answered.load(Ordering::Relaxed)
    }

    /// Counts a statement whose plan was one used before.
    pub(crate) fn count_plan(&self) {
        self.plans_used.fetch_add(1, Ordering::Relaxed);
    }

    /// Statements whose plan was one used before, since the start.
    pub(crate) fn plans_used(&self) -> u64 {
        self.plans_used.load(Ordering::Relaxed)
    }
}
