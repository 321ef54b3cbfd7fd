//! The settings `scripts` and `script_roles`.
//!
//! ```text
//! scripts = "/usr/bin/awk:/srv/scripts"
//! script_roles = "etl, analysts"
//! ```

use std::path::PathBuf;

use super::Machine;
use super::setting::SettingValue;

/// Files and folders of programs that may run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptPaths(pub Vec<PathBuf>);

impl SettingValue for ScriptPaths {
    const KIND: &'static str = "off, files and folders";

    fn parse(text: &str, _machine: &Machine) -> Result<Self, String> {
        if text == "off" {
            return Ok(Self(Vec::new()));
        }
        let paths: Vec<PathBuf> = text.split(':').map(PathBuf::from).collect();
        match paths.iter().all(|path| path.is_absolute()) {
            true => Ok(Self(paths)),
            false => Err("must be off, or absolute paths with : between them".to_owned()),
        }
    }
}

/// Names of roles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoleNames(pub Vec<String>);

impl SettingValue for RoleNames {
    const KIND: &'static str = "names";

    fn parse(text: &str, _machine: &Machine) -> Result<Self, String> {
        if text.is_empty() {
            return Ok(Self(Vec::new()));
        }
        let names: Vec<String> = text.split(',').map(|name| name.trim().to_owned()).collect();
        match names.iter().any(String::is_empty) {
            true => Err("must be names with , between them".to_owned()),
            false => Ok(Self(names)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read() {
        let machine = Machine::here();
        let paths = |text: &str| ScriptPaths::parse(text, &machine).map(|paths| paths.0);
        assert_eq!(paths("off"), Ok(Vec::new()));
        assert_eq!(paths("/a b:/c"), Ok(vec!["/a b".into(), "/c".into()]));
        for wrong in ["", ":", "/a:", "a", "/a:b"] {
            assert!(paths(wrong).is_err(), "{wrong}");
        }
        let names = |text: &str| RoleNames::parse(text, &machine).map(|names| names.0);
        assert_eq!(names(""), Ok(Vec::new()));
        assert_eq!(names("a, b"), Ok(vec!["a".to_owned(), "b".to_owned()]));
        assert!(names("a,").is_err());
    }
}
