//! Which files of the machine statements may name.
//!
//! In: a file as a statement names it. Out: the path to open, or the error. Symbolic links and `..` are
//! resolved first, and paths are compared folder by folder, not letter by letter: `/data` holds neither
//! `/database` nor what `/data/link` leads to elsewhere.
//!
//! **Invariant:** of what lies outside of the folders nothing is told, not even whether it is there.
//!
//! Not here: who may (superusers, `access`), reading itself (`stoa-load`).

use std::io::ErrorKind as IoErrorKind;
use std::path::{Path, PathBuf};

use stoa_error::{Error, ErrorKind, Result};

/// The files of the machine that statements may read, and make for rows that are rejected.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum FileAccess {
    /// None.
    #[default]
    Off,
    /// Those in these folders, at any depth.
    Folders(Vec<PathBuf>),
    /// All that the process may open itself.
    Everything,
}

impl FileAccess {
    /// The same with folders as they are really called.
    ///
    /// # Errors
    /// `Invalid` for a folder that is not there or cannot be reached.
    pub(crate) fn resolved(self) -> Result<Self> {
        let Self::Folders(folders) = self else { return Ok(self) };
        let folders = folders.iter().map(|folder| real_folder(folder)).collect::<Result<_>>()?;
        Ok(Self::Folders(folders))
    }

    /// The path under which `file` is to be read.
    ///
    /// # Errors
    /// 42501 where it may not be read, 58P01 where it is not there, `Invalid` for a folder or a device.
    pub(crate) fn to_read(&self, file: &str) -> Result<PathBuf> {
        let folders = match self {
            Self::Everything => return Ok(file.into()),
            Self::Off => return Err(is_off()),
            Self::Folders(folders) => folders,
        };
        let path = Path::new(file);
        match path.canonicalize() {
            Ok(real) if is_within(folders, &real) => match real.is_file() {
                true => Ok(real),
                false => Err(Error::invalid(format!("{file} is not a regular file"))
                    .with_sqlstate("42809")
                    .with_hint("name its files one by one")),
            },
            Err(error) if error.kind() == IoErrorKind::NotFound && is_missing(folders, path) => {
                Err(Error::not_found(format!("file {file} does not exist"))
                    .with_sqlstate("58P01")
                    .with_hint("the path is relative to where the server runs"))
            }
            _ => Err(elsewhere(file)),
        }
    }

    /// The paths under which a file, or the files of a folder, are to be read, in the order of their names. Those whose
    /// names begin with `_` or `.` are left out, as Hive does.
    ///
    /// # Errors
    /// As [`Self::to_read`]; 0A000 for a folder within the folder.
    pub(crate) fn files_of(&self, path: &str) -> Result<Vec<PathBuf>> {
        let folder = match self {
            Self::Off => return Err(is_off()),
            Self::Everything => PathBuf::from(path),
            Self::Folders(folders) => match Path::new(path).canonicalize() {
                Ok(real) if is_within(folders, &real) => real,
                // It says whether that may be told.
                _ => return self.to_read(path).map(|file| vec![file]),
            },
        };
        if !folder.is_dir() {
            return self.to_read(path).map(|file| vec![file]);
        }
        let cannot = |e| Error::unavailable(format!("cannot list {path}")).with_source(e);
        let entries = std::fs::read_dir(&folder).map_err(cannot)?;
        let entries = entries.map(|entry| entry.map(|entry| entry.path()).map_err(cannot));
        let mut entries = entries.collect::<Result<Vec<_>>>()?;
        entries.sort();
        let mut files = Vec::new();
        for file in entries {
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            if name.starts_with(['_', '.']) {
                continue;
            }
            if file.is_dir() {
                return Err(Error::unsupported(format!("{path} has a folder, {name}"))
                    .with_hint("load the files of each folder by themselves"));
            }
            files.push(self.to_read(&file.to_string_lossy())?);
        }
        Ok(files)
    }

    /// The path under which `file` is to be made.
    ///
    /// # Errors
    /// 42501 where no file may be made.
    pub(crate) fn to_make(&self, file: &Path) -> Result<PathBuf> {
        let folders = match self {
            Self::Everything => return Ok(file.to_owned()),
            Self::Off => return Err(is_off()),
            Self::Folders(folders) => folders,
        };
        let shown = file.display().to_string();
        let folder = folder_of(file).canonicalize().map_err(|_| elsewhere(&shown))?;
        match file.file_name() {
            Some(name) if is_within(folders, &folder) => Ok(folder.join(name)),
            _ => Err(elsewhere(&shown)),
        }
    }

    /// The directory of an external table as it is really called; it need not be there yet.
    ///
    /// # Errors
    /// 42501 where statements may not use it, `Invalid` for a file.
    pub(crate) fn directory(&self, path: &Path) -> Result<PathBuf> {
        if *self == Self::Off {
            return Err(is_off());
        }
        let shown = path.display().to_string();
        // What is there is resolved; what is not cannot lead elsewhere.
        let mut there = path.to_owned();
        let mut missing = Vec::new();
        let real = loop {
            match there.canonicalize() {
                Ok(real) => break real,
                Err(_) => match (there.file_name(), there.parent()) {
                    (Some(name), Some(parent)) => {
                        missing.push(name.to_owned());
                        there = parent.to_owned();
                    }
                    _ => return Err(elsewhere(&shown)),
                },
            }
        };
        let real = missing.iter().rev().fold(real, |real, name| real.join(name));
        match self {
            Self::Folders(folders) if !is_within(folders, &real) => Err(elsewhere(&shown)),
            _ if real.is_file() => Err(Error::invalid(format!("{shown} is no directory"))
                .with_sqlstate("42809")
                .with_hint("name the directory that its files are in")),
            _ => Ok(real),
        }
    }

    /// Refuses a location, as it is really called, that statements may not use now. Object stores have rules of their
    /// own, and are refused only where statements may use no files at all.
    ///
    /// # Errors
    /// 42501.
    pub(crate) fn may_use(&self, location: &str) -> Result<()> {
        match (self, location.strip_prefix("file://")) {
            (Self::Off, _) => Err(is_off()),
            (Self::Folders(folders), Some(path)) if !is_within(folders, Path::new(path)) => {
                Err(elsewhere(path))
            }
            _ => Ok(()),
        }
    }

    /// Whether files that are there already must be left as they are.
    pub(crate) fn keeps_files(&self) -> bool {
        *self != Self::Everything
    }
}

fn real_folder(folder: &Path) -> Result<PathBuf> {
    let cannot = |what: &str| {
        Error::invalid(format!("file_access names {}, which {what}", folder.display()))
            .with_hint("make the folder, or take it out of file_access")
    };
    let real = folder.canonicalize().map_err(|e| cannot("cannot be found").with_source(e))?;
    if real.is_dir() { Ok(real) } else { Err(cannot("is no folder")) }
}

fn is_within(folders: &[PathBuf], real: &Path) -> bool {
    folders.iter().any(|folder| real.starts_with(folder))
}

/// Whether the folder of a file that is not there is one of those that may be looked into.
fn is_missing(folders: &[PathBuf], file: &Path) -> bool {
    folder_of(file).canonicalize().is_ok_and(|folder| is_within(folders, &folder))
}

fn folder_of(file: &Path) -> &Path {
    match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        Some(_) => Path::new("."),
        None => file,
    }
}

fn is_off() -> Error {
    forbidden("statements may not name files of the server: file_access is off".to_owned())
        .with_hint(
            "send the rows (COPY … FROM STDIN, \\copy in psql), or set file_access to folders",
        )
}

fn elsewhere(file: &str) -> Error {
    forbidden(format!("file {file} is in no folder that file_access names"))
        .with_hint("put it into one of these folders, or send its rows with COPY … FROM STDIN")
}

fn forbidden(message: String) -> Error {
    Error::new(ErrorKind::Forbidden, message).with_sqlstate("42501")
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Place {
        directory: tempfile::TempDir,
        access: FileAccess,
    }

    /// `data/a.csv`, `data/in/b.csv`, `database/c.csv`, `c.csv`; `data` may be read.
    fn place() -> Place {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        for folder in ["data/in", "database"] {
            std::fs::create_dir_all(path(folder)).unwrap();
        }
        for file in ["data/a.csv", "data/in/b.csv", "database/c.csv", "c.csv"] {
            std::fs::write(path(file), "1\n").unwrap();
        }
        let link = |to: &str, from: &str| std::os::unix::fs::symlink(path(to), path(from)).unwrap();
        link("c.csv", "data/leads_out.csv");
        link("database", "data/leads_out");
        link("data/in", "leads_in");
        link("nowhere", "data/leads_nowhere");
        let access = FileAccess::Folders(vec![path("data")]).resolved().unwrap();
        Place { directory, access }
    }

    fn said<T>(result: Result<T>) -> &'static str {
        result.err().map_or("ok", |error| error.sqlstate())
    }

    #[test]
    fn files_are_where_links_lead() {
        let place = place();
        let root = place.directory.path();
        let check = |file: &str, expected: &str| {
            let file = root.join(file);
            assert_eq!(said(place.access.to_read(file.to_str().unwrap())), expected, "{file:?}");
        };
        for inside in ["data/a.csv", "data/in/b.csv", "leads_in/b.csv", "database/../data/a.csv"] {
            check(inside, "ok");
        }
        for outside in [
            "c.csv",
            "missing.csv",
            "database/c.csv",
            "database/missing.csv",
            "data/../c.csv",
            "data/../missing.csv",
            "data/leads_out.csv",
            "data/leads_out/c.csv",
            "data/leads_out/missing.csv",
            "missing/../data/a.csv",
            "database",
            "",
        ] {
            check(outside, "42501");
        }
        check("data/missing.csv", "58P01");
        check("data/leads_nowhere", "58P01");
        check("data/in", "42809");
        assert_eq!(said(place.access.to_read("")), "42501");
        assert_eq!(said(place.access.to_read("a\0b")), "42501");
    }

    #[test]
    fn folders_are_their_files() {
        let place = place();
        let root = place.directory.path();
        for file in ["data/in/_hidden", "data/in/.hidden", "data/in/a.csv"] {
            std::fs::write(root.join(file), "1\n").unwrap();
        }
        let files = |path: &str| place.access.files_of(root.join(path).to_str().unwrap());
        let names = |path: &str| {
            let files = files(path).unwrap().into_iter();
            files.map(|file| file.file_name().unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(names("data/in"), ["a.csv", "b.csv"]);
        assert_eq!(names("leads_in"), ["a.csv", "b.csv"]);
        assert_eq!(names("data/a.csv"), ["a.csv"]);
        assert_eq!(said(files("data")), "0A000");
        for outside in
            ["database", "data/leads_out", "data/leads_out.csv", "missing", "data/../c.csv"]
        {
            assert_eq!(said(files(outside)), "42501", "{outside}");
        }
        assert_eq!(said(files("data/missing")), "58P01");
        assert_eq!(said(FileAccess::Off.files_of("/")), "42501");
        // A link in a folder leads elsewhere.
        let link = root.join("data/in/z.csv");
        std::os::unix::fs::symlink(root.join("c.csv"), link).unwrap();
        assert_eq!(said(files("data/in")), "42501");
    }

    #[test]
    fn files_are_made_within_folders_only() {
        let place = place();
        let root = place.directory.path();
        let check = |file: &str, expected: &str| {
            assert_eq!(said(place.access.to_make(&root.join(file))), expected, "{file}");
        };
        check("data/new.csv", "ok");
        check("leads_in/new.csv", "ok");
        for outside in
            ["new.csv", "data/../new.csv", "data/leads_out/new.csv", "database/new.csv", "data/.."]
        {
            check(outside, "42501");
        }
    }

    #[test]
    fn directories_of_tables_are_within_folders_only() {
        let place = place();
        let root = place.directory.path();
        let check = |path: &str, expected: &str| {
            assert_eq!(said(place.access.directory(&root.join(path))), expected, "{path}");
        };
        check("data", "ok");
        check("data/in", "ok");
        check("data/new/deep", "ok");
        check("leads_in", "ok");
        check("data/a.csv", "42809");
        for outside in
            ["database", "data/leads_out", "data/leads_out/new", "new", "data/../database"]
        {
            check(outside, "42501");
        }
        assert_eq!(said(FileAccess::Off.directory(root)), "42501");
        assert_eq!(said(FileAccess::Off.may_use("s3://bucket/x")), "42501");
        assert_eq!(said(place.access.may_use("s3://bucket/x")), "ok");
        assert_eq!(said(place.access.may_use("file:///etc")), "42501");
    }

    #[test]
    fn nothing_is_named_where_it_is_off() {
        let place = place();
        let file = place.directory.path().join("data/a.csv");
        assert_eq!(said(FileAccess::Off.to_read(file.to_str().unwrap())), "42501");
        assert_eq!(said(FileAccess::Off.to_make(&file)), "42501");
        assert_eq!(said(FileAccess::Everything.to_read("/etc/passwd")), "ok");
        let missing = FileAccess::Folders(vec![place.directory.path().join("missing")]);
        assert_eq!(said(missing.resolved()), "22023");
    }
}
