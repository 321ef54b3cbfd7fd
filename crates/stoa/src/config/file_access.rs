//! The setting `file_access`.
//!
//! ```text
//! file_access = "off"
//! file_access = "/srv/exports:/srv/more"
//! ```

use std::path::{Path, PathBuf};

use stoa_query::FileAccess;

use super::Machine;
use super::setting::SettingValue;

/// Which files statements may name; `None` where that follows from the command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedFiles(pub Option<FileAccess>);

impl SettingValue for NamedFiles {
    const KIND: &'static str = "auto, off or folders";

    fn parse(text: &str, _machine: &Machine) -> Result<Self, String> {
        match text {
            "auto" => return Ok(Self(None)),
            "off" => return Ok(Self(Some(FileAccess::Off))),
            _ => {}
        }
        let folders: Vec<PathBuf> = text.split(':').map(PathBuf::from).collect();
        if folders.iter().any(|folder| folder.as_os_str().is_empty()) {
            return Err("must be auto, off, or folders with : between them".to_owned());
        }
        let access = match folders.iter().any(|folder| folder == Path::new("/")) {
            true => FileAccess::Everything,
            false => FileAccess::Folders(folders),
        };
        Ok(Self(Some(access)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_listed_as_in_a_path() {
        let machine = Machine::here();
        let parsed = |text: &str| NamedFiles::parse(text, &machine).map(|named| named.0);
        let folders =
            |names: &[&str]| FileAccess::Folders(names.iter().map(PathBuf::from).collect());
        assert_eq!(parsed("auto"), Ok(None));
        assert_eq!(parsed("off"), Ok(Some(FileAccess::Off)));
        assert_eq!(parsed("/a b:in"), Ok(Some(folders(&["/a b", "in"]))));
        assert_eq!(parsed("/data:/"), Ok(Some(FileAccess::Everything)));
        for wrong in ["", ":", "/a:", ":/a"] {
            assert!(parsed(wrong).is_err(), "{wrong}");
        }
    }
}
