//! A query log like the one of 2008, made from a seed.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use stoa_error::{Error, Result};

/// Lines per user of the original.
const LINES_PER_USER: u64 = 55;

/// Lines in a thousand that have a click: 19,442,629 of 36,389,567.
const CLICKS_PER_MILLE: u64 = 534;

/// First line of each file.
const HEADER: &str = "AnonID\tQuery\tItemRank\tClickURL\n";

/// What words are made of.
const SYLLABLES: [&str; 32] = [
    "an", "ber", "ca", "do", "el", "fi", "go", "hor", "in", "ja", "ki", "lo", "ma", "ni", "or",
    "pa", "qui", "ro", "sa", "ti", "un", "ve", "wa", "xi", "yo", "zu", "st", "ing", "er", "ness",
    "com", "ly",
];

/// A synthetic query log.
#[derive(Clone, Copy, Debug)]
pub struct QueryLog {
    /// Lines of all files together, headers aside.
    pub lines: u64,
    /// How many files they are split into.
    pub files: u64,
    /// Other seeds, other logs.
    pub seed: u64,
}

/// One file of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryLogFile {
    /// Where it is.
    pub path: PathBuf,
    /// Lines without the header.
    pub lines: u64,
    /// Lines that have a click.
    pub clicks: u64,
    /// Bytes of the file.
    pub bytes: u64,
}

impl QueryLogFile {
    /// Cells that a load makes of it.
    pub fn cells(&self) -> u64 {
        self.lines + 2 * self.clicks
    }
}

impl QueryLog {
    /// Writes the files `a.tsv`, `b.tsv`, … into a directory.
    ///
    /// # Errors
    /// [`Unavailable`](stoa_error::ErrorKind::Unavailable) if they cannot be written.
    pub fn write(&self, directory: &Path) -> Result<Vec<QueryLogFile>> {
        let mut random = Random(self.seed | 1);
        (0..self.files).map(|nth| self.write_file(directory, nth, &mut random)).collect()
    }

    /// The row key of a user of the log; users with low numbers have the most lines.
    pub fn user(&self, number: u64) -> u64 {
        100_000 + mixed(number ^ self.seed) % 11_900_000
    }

    /// Users of the log.
    pub fn users(&self) -> u64 {
        (self.lines / LINES_PER_USER).max(1)
    }

    fn write_file(&self, directory: &Path, nth: u64, random: &mut Random) -> Result<QueryLogFile> {
        let letter = char::from(b'a' + u8::try_from(nth % 26).unwrap_or(0));
        let path = directory.join(format!("{letter}.tsv"));
        let failed = |source| {
            Error::unavailable(format!("cannot write {}", path.display())).with_source(source)
        };
        let mut out = BufWriter::with_capacity(1 << 20, File::create(&path).map_err(failed)?);
        let lines = self.lines * (nth + 1) / self.files - self.lines * nth / self.files;
        let (mut clicks, mut bytes) = (0, HEADER.len() as u64);
        out.write_all(HEADER.as_bytes()).map_err(failed)?;
        let mut line = String::new();
        for _ in 0..lines {
            line.clear();
            clicks += u64::from(self.push_line(random, &mut line));
            bytes += line.len() as u64;
            out.write_all(line.as_bytes()).map_err(failed)?;
        }
        out.flush().map_err(failed)?;
        drop(out);
        Ok(QueryLogFile { path, lines, clicks, bytes })
    }

    /// Appends a line; says whether it has a click.
    fn push_line(&self, random: &mut Random, line: &mut String) -> bool {
        // The square of an even distribution: few users with many lines, many with few.
        let place = random.fraction();
        let user = self.user((place * place * self.users() as f64) as u64);
        line.push_str(&user.to_string());
        line.push('\t');
        let place = random.fraction();
        let query = (place * place * place * self.lines as f64) as u64;
        let words = mixed(query);
        for word in 0..1 + words % 3 {
            if word > 0 {
                line.push(' ');
            }
            push_word(mixed(words ^ word), line);
        }
        let has_click = random.below(1000) < CLICKS_PER_MILLE;
        if has_click {
            let rank = 1 + (random.fraction() * random.fraction() * 12.0) as u64;
            line.push_str(&format!("\t{rank}\thttp://www."));
            push_word(mixed(query ^ random.below(3)), line);
            line.push_str(".com");
        }
        line.push('\n');
        has_click
    }
}

/// Three to five syllables.
fn push_word(number: u64, line: &mut String) {
    for syllable in 0..3 + number % 3 {
        let at = (number >> (8 + 5 * syllable)) % SYLLABLES.len() as u64;
        line.push_str(SYLLABLES[at as usize]);
    }
}

/// SplitMix64's finish: each number to another one that looks random.
fn mixed(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// A xorshift generator: the same numbers for the same seed.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, limit: u64) -> u64 {
        (self.next() >> 11) % limit
    }

    /// At least 0, below 1.
    fn fraction(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_has_the_marginals_of_the_original() {
        let directory = tempfile::tempdir().unwrap();
        let log = QueryLog { lines: 100_000, files: 5, seed: 7 };
        let files = log.write(directory.path()).unwrap();
        let sum = |of: fn(&QueryLogFile) -> u64| files.iter().map(of).sum::<u64>() as f64;
        assert_eq!((files.len(), sum(|file| file.lines)), (5, 100_000.0));
        let cells = sum(QueryLogFile::cells) / 100_000.0;
        assert!((cells - 2.069).abs() < 0.02, "{cells} cells per line");
        let text = std::fs::read_to_string(&files[0].path).unwrap();
        assert_eq!(text.len() as u64, files[0].bytes);
        let fields = text.lines().skip(1).map(|line| line.split('\t').collect::<Vec<_>>());
        let fields: Vec<Vec<&str>> = fields.collect();
        let keys: usize = fields.iter().map(|fields| fields[0].len()).sum();
        let values: usize = fields.iter().flat_map(|fields| &fields[1..]).map(|v| v.len()).sum();
        let key = keys as f64 / fields.len() as f64;
        let value = values as f64 / files[0].cells() as f64;
        assert!((key - 7.1).abs() < 0.3, "{key} bytes per key");
        assert!((value - 15.2).abs() < 1.0, "{value} bytes per value");
        assert!(fields.iter().all(|fields| fields.len() == 2 || fields.len() == 4));
    }
}
