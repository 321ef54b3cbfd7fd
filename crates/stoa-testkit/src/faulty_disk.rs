//! A disk that fails on command, below a program that is run for it.
//!
//! `c/faulty_disk.c` is preloaded into the program and stands before the calls that change files;
//! program and test share a control block in a file. Linux with a C compiler only.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where the fields of the control block are; the C source has the same layout.
const ARMED: u64 = 0;
const KINDS: u64 = 4;
const SEEN: u64 = 32;
const ROOT: u64 = 48;
const PART: u64 = ROOT + TEXT as u64;
const SIZE: u64 = PART + TEXT as u64;
const TEXT: usize = 512;

/// Kinds of calls, to be added up.
pub mod call {
    /// `write`, `pwrite`, `writev`.
    pub const WRITE: u32 = 1;
    /// `fsync`, `fdatasync`.
    pub const SYNC: u32 = 2;
    /// `rename`, `link`.
    pub const RENAME: u32 = 4;
    /// `open` that may make a file.
    pub const OPEN: u32 = 8;
    /// `ftruncate`, `fallocate`.
    pub const TRUNCATE: u32 = 16;
    /// `mkdir`.
    pub const MKDIR: u32 = 32;
    /// All of the above.
    pub const ANY: u32 = WRITE | SYNC | RENAME | OPEN | TRUNCATE | MKDIR;
}

/// What a call that fails says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// An I/O error.
    Eio = 0,
    /// No room.
    Enospc = 1,
    /// A write does half of what it should; all other calls, and what then follows, find no room.
    Short = 2,
}

/// Which calls fail.
#[derive(Clone, Copy, Debug)]
pub struct Plan<'a> {
    /// How.
    pub fault: Fault,
    /// Kinds of calls that count.
    pub calls: u32,
    /// Only those whose path holds this text count.
    pub part: &'a str,
    /// So many of them succeed first.
    pub skip: u64,
    /// So many fail then; 0 for all until the disk is healed.
    pub times: u64,
}

/// A disk for one program at a time.
#[derive(Debug)]
pub struct FaultyDisk {
    library: PathBuf,
    control: PathBuf,
    file: File,
}

impl FaultyDisk {
    /// Builds the library in `dir`; only calls on paths that contain `root` ever fail.
    ///
    /// # Panics
    /// Where there is no C compiler.
    pub fn new(dir: &Path, root: &str) -> Self {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("c/faulty_disk.c");
        let library = dir.join("faulty_disk.so");
        let built = Command::new("cc")
            .args(["-shared", "-fPIC", "-O1", "-o"])
            .arg(&library)
            .arg(&source)
            .arg("-ldl")
            .output();
        let built = built.expect("a C compiler, cc, is needed");
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        let disk = Self::at(dir);
        disk.file.set_len(SIZE).expect("the control file can be sized");
        disk.put_text(ROOT, root);
        disk
    }

    /// The disk that was built in `dir`, for the program that runs on it.
    ///
    /// # Panics
    /// Where `dir` cannot be written to.
    pub fn at(dir: &Path) -> Self {
        let control = dir.join("faulty_disk.control");
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let file = options.open(&control).expect("the control file can be opened");
        Self { library: dir.join("faulty_disk.so"), control, file }
    }

    /// Makes `command` run on this disk.
    pub fn below(&self, command: &mut Command) {
        command.env("LD_PRELOAD", &self.library).env("FAULTY_DISK", &self.control);
    }

    /// Lets calls fail from now on.
    pub fn arm(&self, plan: &Plan<'_>) {
        self.heal();
        self.put_text(PART, plan.part);
        let mut block = Vec::new();
        block.extend(plan.calls.to_ne_bytes());
        block.extend((plan.fault as u32).to_ne_bytes());
        block.extend(0_u32.to_ne_bytes());
        // Skip, times, and the two counts.
        for number in [plan.skip, plan.times, 0, 0] {
            block.extend(number.to_ne_bytes());
        }
        self.put(KINDS, &block);
        self.put(ARMED, &1_u32.to_ne_bytes());
    }

    /// Lets no more calls fail.
    pub fn heal(&self) {
        self.put(ARMED, &0_u32.to_ne_bytes());
    }

    /// Calls that counted since the disk was armed, and how many of them failed.
    ///
    /// # Panics
    /// Where the control file is gone.
    pub fn counts(&self) -> (u64, u64) {
        let mut counts = [[0; 8]; 2];
        self.file.read_exact_at(counts.as_flattened_mut(), SEEN).expect("the counts are there");
        (u64::from_ne_bytes(counts[0]), u64::from_ne_bytes(counts[1]))
    }

    fn put_text(&self, at: u64, text: &str) {
        assert!(text.len() < TEXT, "{text:?} is too long");
        let mut bytes = [0; TEXT];
        bytes[..text.len()].copy_from_slice(text.as_bytes());
        self.put(at, &bytes);
    }

    fn put(&self, at: u64, bytes: &[u8]) {
        self.file.write_all_at(bytes, at).expect("the control file can be written");
    }
}
