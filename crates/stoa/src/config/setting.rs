//! What is known about a setting, and the macro that declares all of them.

use super::Machine;

/// Commands that take a setting as a flag; bits that can be joined.
pub mod scope {
    /// `stoa server`.
    pub const SERVER: u8 = 1;
    /// Commands that open the warehouse themselves: `load`, `table`, `bench`.
    pub const ENGINE: u8 = 2;
    /// `stoa sql`, on a server or on a warehouse.
    pub const SHELL: u8 = 4;
    /// None: a secret would be seen in the list of processes.
    pub const FILE_ONLY: u8 = 0;
    /// All of them.
    pub const ALL: u8 = SERVER | ENGINE | SHELL;
}

/// One declared setting.
#[derive(Debug)]
pub struct Setting {
    /// The TOML key; flag and variable derive from it.
    pub name: &'static str,
    /// Lines of documentation.
    pub docs: &'static [&'static str],
    /// What a value looks like, in words: `size`, `port`.
    pub kind: &'static str,
    /// The value where none is given, as text.
    pub default: &'static str,
    /// Which commands have the flag (see [`scope`]).
    pub scope: u8,
    /// Whether the flag stands alone (`--insecure-listen`).
    pub is_switch: bool,
    /// Whether its value is never shown.
    pub is_secret: bool,
    /// Says what is wrong with a text.
    pub(super) check: fn(&str, &Machine) -> Result<(), String>,
    /// The value of a valid text as it is written in TOML.
    pub(super) to_toml: fn(&str) -> String,
}

impl Setting {
    /// The flag without its dashes: `http-port`.
    pub fn flag(&self) -> String {
        self.name.replace('_', "-")
    }

    /// The environment variable: `STOA_HTTP_PORT`.
    pub fn variable(&self) -> String {
        format!("STOA_{}", self.name.to_uppercase())
    }

    /// The documentation as one paragraph.
    pub fn doc(&self) -> String {
        let lines: Vec<_> = self.docs.iter().map(|line| line.trim()).collect();
        lines.join(" ")
    }
}

/// A type that settings can have.
pub(super) trait SettingValue: Sized {
    /// In words.
    const KIND: &'static str;
    /// Whether the flag stands alone.
    const IS_SWITCH: bool = false;
    /// Whether its value is never shown.
    const IS_SECRET: bool = false;
    /// Whether TOML writes it without quotes.
    const IS_BARE: bool = false;

    /// Reads it; the error says what would be valid.
    fn parse(text: &str, machine: &Machine) -> Result<Self, String>;
}

/// Writes a valid text as TOML.
pub(super) fn toml_text<T: SettingValue>(text: &str) -> String {
    if T::IS_BARE { text.to_owned() } else { toml::Value::from(text).to_string() }
}

/// Declares settings: the struct [`super::Config`] and the table [`super::SETTINGS`].
macro_rules! settings {
    ($( $(#[doc = $doc:literal])+ $name:ident: $type:ty = $default:literal for $scope:expr; )+) => {
        /// All settings with their types.
        #[derive(Clone, Debug)]
        pub struct Config {
            $( $(#[doc = $doc])+ pub $name: $type, )+
        }

        /// Every setting there is, in the order of the reference page.
        pub static SETTINGS: &[Setting] = &[
            $( Setting {
                name: stringify!($name),
                docs: &[$($doc),+],
                kind: <$type as SettingValue>::KIND,
                default: $default,
                scope: $scope,
                is_switch: <$type as SettingValue>::IS_SWITCH,
                is_secret: <$type as SettingValue>::IS_SECRET,
                check: |text, machine| <$type as SettingValue>::parse(text, machine).map(drop),
                to_toml: toml_text::<$type>,
            }, )+
        ];

        impl Config {
            /// Reads all settings from their texts; the error names the setting.
            pub(super) fn read<'a>(
                text_of: impl Fn(&str) -> &'a str,
                machine: &Machine,
            ) -> Result<Self, (&'static str, String)> {
                Ok(Self {
                    $( $name: <$type as SettingValue>::parse(text_of(stringify!($name)), machine)
                        .map_err(|why| (stringify!($name), why))?, )+
                })
            }
        }
    };
}
pub(super) use settings;
