//! Settings as command-line flags, for the commands in whose scope they are.

use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};

use super::setting::Setting;
use super::settings::SETTINGS;

/// Flags that were given for the settings of `SCOPE`, for `#[command(flatten)]`.
#[derive(Clone, Debug, Default)]
pub struct SettingFlags<const SCOPE: u8> {
    given: Vec<(&'static Setting, String)>,
}

impl<const SCOPE: u8> SettingFlags<SCOPE> {
    /// The settings given, with their texts.
    pub fn given(&self) -> &[(&'static Setting, String)] {
        &self.given
    }
}

fn in_scope(scope: u8) -> impl Iterator<Item = &'static Setting> {
    SETTINGS.iter().filter(move |setting| setting.scope & scope != 0)
}

fn argument(setting: &'static Setting) -> Arg {
    let help = format!("{} [default: {}]", setting.doc(), setting.default);
    let arg = Arg::new(setting.name).long(setting.flag()).help_heading("Settings");
    if setting.is_switch {
        return arg.help(setting.doc()).action(ArgAction::SetTrue);
    }
    let help = if setting.default.is_empty() { setting.doc() } else { help };
    arg.help(help).value_name(value_name(setting)).action(ArgAction::Set)
}

fn value_name(setting: &Setting) -> String {
    match setting.kind {
        "text" if setting.name == "warehouse" => "DIR|URL".into(),
        "directory" => "DIR".into(),
        "IP address" => "ADDRESS".into(),
        "level or filters" => "LEVEL".into(),
        "text or json" => "text|json".into(),
        kind => kind.to_uppercase(),
    }
}

impl<const SCOPE: u8> Args for SettingFlags<SCOPE> {
    fn augment_args(command: Command) -> Command {
        command.args(in_scope(SCOPE).map(argument))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<const SCOPE: u8> FromArgMatches for SettingFlags<SCOPE> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut flags = Self::default();
        flags.update_from_arg_matches(matches)?;
        Ok(flags)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        for setting in in_scope(SCOPE) {
            if matches.value_source(setting.name) != Some(ValueSource::CommandLine) {
                continue;
            }
            let text = if setting.is_switch {
                matches.get_flag(setting.name).to_string()
            } else {
                matches.get_one::<String>(setting.name).cloned().unwrap_or_default()
            };
            self.given.push((setting, text));
        }
        Ok(())
    }
}
