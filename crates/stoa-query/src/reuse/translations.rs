//! Translations of HiveQL that are used again: by skeleton, the form of what queries become.
//!
//! **Invariant:** a text that is put together is the one that translating gives (`stoa-hiveql`, `forms`).

use std::sync::Arc;

use quick_cache::sync::Cache;
use stoa_hiveql::{Form, Options, Skeleton};

/// Skeletons that are remembered; each takes up to three times as many bytes as a short text has.
const SKELETONS_MAX: usize = 1024;

/// What queries of HiveQL became.
pub(crate) struct Translations {
    /// `None` where a form depends on more than places.
    by_skeleton: Cache<String, Option<Arc<Form>>>,
}

impl Default for Translations {
    fn default() -> Self {
        Self { by_skeleton: Cache::new(SKELETONS_MAX) }
    }
}

impl Translations {
    /// The text in Stoa's SQL; `None` where it has to be translated.
    pub(crate) fn find(&self, text: &str, options: Options) -> Option<String> {
        let skeleton = Skeleton::of(text, options)?;
        let form = self.by_skeleton.get(skeleton.key()).flatten()?;
        Some(skeleton.translated(&form))
    }

    /// Remembers what a query that was translated became, unless that is known.
    pub(crate) fn learn(&self, text: &str, options: Options) {
        let Some(skeleton) = Skeleton::of(text, options) else { return };
        if self.by_skeleton.get(skeleton.key()).is_none() {
            let form = skeleton.learn(options).map(Arc::new);
            self.by_skeleton.insert(skeleton.key().to_owned(), form);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_is_found_by_other_values() {
        let (known, options) = (Translations::default(), Options::default());
        let text = |id: u32| format!("SELECT a || b FROM t WHERE id = {id}");
        assert_eq!(known.find(&text(1), options), None);
        known.learn(&text(1), options);
        let translated = stoa_hiveql::translate(&text(2), options).unwrap();
        assert_eq!(known.find(&text(2), options), Some(translated));
        assert_eq!(known.find(&text(2), Options { nulls_last: true, ..options }), None);
    }
}
