//! Which programs may run, and which files they may be given.
//!
//! An administrator lists files and folders. A listed file may run as a command, with any operands: whoever may run an
//! interpreter may run anything that it can do. Files in a listed folder may run as commands, and sessions may add them
//! (`ADD FILE`), so that programs find them in the folder where they run.
//!
//! **Invariant:** links and `..` are resolved before anything is compared, and the resolved file is what runs. Nothing is
//! told of files elsewhere, not even whether they are there.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use stoa_error::{Error, ErrorKind, Result};

use crate::command::words;

/// The list of an administrator.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allowed {
    entries: Vec<Entry>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    /// The last part of the path as it was listed: `python3`, though the file is `python3.11`.
    name: String,
    /// Where it really is.
    real: PathBuf,
    is_folder: bool,
}

/// A program that may run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// The file.
    pub program: PathBuf,
    /// What it is called (`argv[0]`), and its operands.
    pub words: Vec<String>,
    /// Files that it finds where it runs, by name.
    pub files: Vec<(String, PathBuf)>,
}

/// The files that a session has added, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionFiles {
    files: Vec<(String, PathBuf)>,
}

/// Files of one session.
const FILES_MAX: usize = 1000;

impl SessionFiles {
    /// All of them: names, and where they are.
    pub fn all(&self) -> &[(String, PathBuf)] {
        &self.files
    }

    /// Takes out the file that was added by this path, or by its name; whether there was one.
    pub fn remove(&mut self, path: &str) -> bool {
        let before = self.files.len();
        let name = file_name(Path::new(path));
        self.files.retain(|(known, _)| *known != name);
        self.files.len() < before
    }

    /// Takes out all.
    pub fn clear(&mut self) {
        self.files.clear();
    }

    fn find(&self, name: &str) -> Option<&Path> {
        self.files.iter().find(|(known, _)| known == name).map(|(_, path)| path.as_path())
    }
}

impl Allowed {
    /// The files and folders of a list, as they are now.
    ///
    /// # Errors
    /// 22023 for one that is not there, or is neither.
    pub fn resolved(paths: &[PathBuf]) -> Result<Self> {
        let entries = paths.iter().map(|path| Entry::of(path)).collect::<Result<_>>()?;
        Ok(Self { entries })
    }

    /// Whether nothing may run.
    pub fn is_off(&self) -> bool {
        self.entries.is_empty()
    }

    /// Adds a file to those of a session; another one of the same name goes.
    ///
    /// # Errors
    /// 42501 for a file that is in no listed folder, 58P01 for one that is not there, 54000 for too many.
    pub fn add(&self, files: &mut SessionFiles, path: &str) -> Result<()> {
        let real = self.within_folders(Path::new(path)).ok_or_else(|| elsewhere(path))?;
        if !real.is_file() {
            return Err(Error::invalid(format!("{path} is not a regular file"))
                .with_sqlstate("42809")
                .with_hint("add files one by one"));
        }
        let name = file_name(Path::new(path));
        let _ = files.remove(&name);
        if files.files.len() >= FILES_MAX {
            return Err(Error::invalid(format!("a session has at most {FILES_MAX} files"))
                .with_sqlstate("54000")
                .with_hint("DELETE FILE takes files out"));
        }
        files.files.push((name, real));
        Ok(())
    }

    /// What runs for a command.
    ///
    /// # Errors
    /// 42501 for a program that is not allowed, 42601 for a command without words.
    pub fn launch(&self, command: &str, files: &SessionFiles) -> Result<Launch> {
        let words = words(command);
        let Some(first) = words.first() else {
            return Err(Error::invalid("the command of USING is empty").with_sqlstate("42601"));
        };
        let program = self.program(first, files).ok_or_else(|| not_allowed(first))?;
        let is_executable = std::fs::metadata(&program)
            .is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0);
        if !is_executable {
            return Err(Error::invalid(format!("{first} cannot be executed"))
                .with_sqlstate("42501")
                .with_hint("make it executable (chmod +x), or name its interpreter in USING"));
        }
        // What was added may have become a link to elsewhere since.
        let files = files.files.iter().map(|(name, path)| {
            let shown = || path.display().to_string();
            let real = self.within_folders(path).ok_or_else(|| elsewhere(&shown()))?;
            Ok((name.clone(), real))
        });
        Ok(Launch { program, words, files: files.collect::<Result<_>>()? })
    }

    /// Where the program is: an added file, a listed one, or one in a listed folder.
    fn program(&self, word: &str, files: &SessionFiles) -> Option<PathBuf> {
        if word.contains('\0') {
            return None;
        }
        let local = word.strip_prefix("./").unwrap_or(word);
        if !local.contains('/') {
            if let Some(added) = files.find(local) {
                return self.within_folders(added);
            }
            let listed = self.entries.iter().find(|entry| !entry.is_folder && entry.name == word);
            if let Some(entry) = listed {
                return Some(entry.real.clone());
            }
            let folders = self.entries.iter().filter(|entry| entry.is_folder);
            return folders
                .map(|entry| entry.real.join(local))
                .filter(|path| path.is_file())
                .find_map(|path| self.within_folders(&path));
        }
        let path = Path::new(word);
        let real = path.is_absolute().then(|| path.canonicalize().ok()).flatten()?;
        let is_listed = self.entries.iter().any(|entry| entry.real == real);
        if is_listed { Some(real) } else { self.within_folders(&real) }
    }

    /// The real path of a file within the listed folders.
    fn within_folders(&self, path: &Path) -> Option<PathBuf> {
        let real = path.canonicalize().ok()?;
        let mut folders = self.entries.iter().filter(|entry| entry.is_folder);
        folders.any(|entry| real.starts_with(&entry.real)).then_some(real)
    }
}

impl Entry {
    fn of(path: &Path) -> Result<Self> {
        let cannot = |what: &str| {
            Error::invalid(format!("scripts names {}, which {what}", path.display()))
                .with_hint("list files and folders that are there, or take it out of scripts")
        };
        let real = path.canonicalize().map_err(|e| cannot("cannot be found").with_source(e))?;
        let is_folder = real.is_dir();
        if !is_folder && !real.is_file() {
            return Err(cannot("is no file and no folder"));
        }
        if real == Path::new("/") {
            return Err(cannot("is the whole machine"));
        }
        Ok(Self { name: file_name(path), real, is_folder })
    }
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_else(|| OsStr::new("")).to_string_lossy().into_owned()
}

fn elsewhere(path: &str) -> Error {
    forbidden(format!("file {path} is in no folder that scripts lists"))
        .with_hint("put it into one of these folders, or have an administrator list its folder")
}

fn not_allowed(word: &str) -> Error {
    forbidden(format!("the program {word} may not be run"))
        .with_hint("have an administrator list it, or its folder, in the setting scripts")
}

fn forbidden(message: String) -> Error {
    Error::new(ErrorKind::Forbidden, message).with_sqlstate("42501")
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    struct Place {
        directory: tempfile::TempDir,
        allowed: Allowed,
    }

    fn executable(path: &Path) {
        std::fs::write(path, "#!/bin/sh\ncat\n").unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// `in/run.sh`, `in/data.txt`, `out/run2.sh`, a listed `tool -> tool-1.0`; links that lead out of `in`.
    fn place() -> Place {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        for folder in ["in/sub", "out"] {
            std::fs::create_dir_all(path(folder)).unwrap();
        }
        for file in ["in/run.sh", "in/sub/deep.sh", "out/run2.sh", "tool-1.0"] {
            executable(&path(file));
        }
        std::fs::write(path("in/data.txt"), "1\n").unwrap();
        symlink(path("tool-1.0"), path("tool")).unwrap();
        symlink(path("out/run2.sh"), path("in/leads_out.sh")).unwrap();
        symlink(path("out"), path("in/folder_out")).unwrap();
        let allowed = Allowed::resolved(&[path("in"), path("tool")]).unwrap();
        Place { directory, allowed }
    }

    fn said<T>(result: Result<T>) -> &'static str {
        result.err().map_or("ok", |error| error.sqlstate())
    }

    #[test]
    fn only_listed_programs_run() {
        let place = place();
        let files = SessionFiles::default();
        let root = place.directory.path().display().to_string();
        let check = |command: &str, expected: &str| {
            let command = command.replace("ROOT", &root);
            assert_eq!(said(place.allowed.launch(&command, &files)), expected, "{command}");
        };
        for command in [
            "run.sh",
            "./run.sh",
            "run.sh a 'b c'",
            "tool x",
            "ROOT/tool",
            "ROOT/tool-1.0",
            "ROOT/in/run.sh",
            "ROOT/in/sub/deep.sh",
            "ROOT/out/../in/run.sh",
        ] {
            check(command, "ok");
        }
        for command in [
            "cat",
            "/bin/cat",
            "run2.sh",
            "tool-1.0",
            "deep.sh",
            "leads_out.sh",
            "folder_out/run2.sh",
            "./sub/deep.sh",
            "../out/run2.sh",
            "ROOT/out/run2.sh",
            "ROOT/in/../out/run2.sh",
            "ROOT/in/leads_out.sh",
            "ROOT/in/missing.sh",
            "ROOT/in",
            "sub",
            "..",
            "run.sh;cat",
            "sh -c run.sh",
            "data.txt",
            "a\0b",
        ] {
            check(command, "42501");
        }
        check(" ", "42601");
        assert_eq!(said(Allowed::default().launch("cat", &files)), "42501");
        assert_eq!(said(Allowed::resolved(&["/".into()])), "22023");
        assert_eq!(said(Allowed::resolved(&["/missing/x".into()])), "22023");
    }

    #[test]
    fn sessions_add_files_of_listed_folders() {
        let place = place();
        let root = place.directory.path();
        let mut files = SessionFiles::default();
        let mut add = |name: &str| {
            let path = root.join(name);
            said(place.allowed.add(&mut files, path.to_str().unwrap()))
        };
        assert_eq!(add("in/data.txt"), "ok");
        assert_eq!(add("in/sub/deep.sh"), "ok");
        assert_eq!(add("in/data.txt"), "ok");
        for outside in ["out/run2.sh", "in/leads_out.sh", "in/folder_out/run2.sh", "in/missing"] {
            assert_eq!(add(outside), "42501", "{outside}");
        }
        assert_eq!(add("tool"), "42501");
        assert_eq!(add("in/sub"), "42809");
        assert_eq!(files.all().len(), 2);
        // An added file runs by its name, and goes along.
        let launch = place.allowed.launch("deep.sh x", &files).unwrap();
        assert!(launch.program.ends_with("in/sub/deep.sh"), "{launch:?}");
        assert_eq!((launch.words.len(), launch.files.len()), (2, 2));
        // What it became a link to later is not what was added.
        std::fs::remove_file(root.join("in/sub/deep.sh")).unwrap();
        symlink(root.join("out/run2.sh"), root.join("in/sub/deep.sh")).unwrap();
        assert_eq!(said(place.allowed.launch("deep.sh", &files)), "42501");
        assert!(files.remove("/anywhere/deep.sh") && !files.remove("deep.sh"));
        files.clear();
        assert!(files.all().is_empty());
    }
}
