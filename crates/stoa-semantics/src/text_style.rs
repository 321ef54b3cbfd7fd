//! How a session writes values as texts: what of its settings casts to `text` need.

use std::any::Any;

use datafusion::common::config::{ConfigEntry, ConfigExtension, ConfigOptions, ExtensionOptions};
use datafusion::error::{DataFusionError, Result};
use stoa_sql::intervals::IntervalStyle;

/// The key of [`TextStyle`] among a session's options.
pub const INTERVAL_STYLE_KEY: &str = "stoa.interval_style";

/// An extension of a session's options.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TextStyle {
    /// `IntervalStyle`.
    pub intervals: IntervalStyle,
}

impl TextStyle {
    /// The style of a session, the default where nothing was set.
    pub(super) fn of(options: &ConfigOptions) -> Self {
        options.extensions.get::<Self>().copied().unwrap_or_default()
    }
}

impl ConfigExtension for TextStyle {
    const PREFIX: &'static str = "stoa";
}

impl ExtensionOptions for TextStyle {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }

    fn cloned(&self) -> Box<dyn ExtensionOptions> {
        Box::new(*self)
    }

    fn set(&mut self, key: &str, value: &str) -> Result<()> {
        let wrong = || DataFusionError::Configuration(format!("{key} cannot be \"{value}\""));
        self.intervals =
            IntervalStyle::named(value).filter(|_| key == "interval_style").ok_or_else(wrong)?;
        Ok(())
    }

    fn entries(&self) -> Vec<ConfigEntry> {
        let value = Some(self.intervals.name().to_owned());
        vec![ConfigEntry { key: INTERVAL_STYLE_KEY.to_owned(), value, description: "" }]
    }
}
