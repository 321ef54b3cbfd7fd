use std::io::{Cursor, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use proptest::prelude::*;
use stoa_error::Error;

use super::*;
use crate::batch::CellBatchBuilder;
use crate::budget::{MemoryBudget, Unlimited};
use crate::cell::{Cell, CellKind};
use crate::files::{Files, ReadFile};
use crate::lang::ast::{KeyColumn, KeyFormat, LoadOptions};
use crate::output::CellFormat;
use crate::schema::{FamilyDefinition, TableDefinitions, TableOptions, TableSchema};
use crate::time_text::{TimestampFormat, Zone};
use crate::timestamp::TimestampSource;
use crate::{MemoryCells, lang};

/// One file, whatever it is called.
struct OneFile(Vec<u8>);

impl Files for OneFile {
    fn open(&self, _name: &str) -> stoa_error::Result<ReadFile> {
        // In small pieces, so that lines cross their borders.
        let pieces = Pieces(Cursor::new(self.0.clone()));
        Ok(ReadFile { bytes: Box::new(pieces), length: Some(self.0.len() as u64) })
    }

    fn create(&self, name: &str) -> stoa_error::Result<Box<dyn Write + Send>> {
        Err(Error::unsupported(name.to_owned()))
    }
}

/// One file, read in large pieces.
struct Plain(Vec<u8>);

impl Files for Plain {
    fn open(&self, _name: &str) -> stoa_error::Result<ReadFile> {
        Ok(ReadFile { bytes: Box::new(Cursor::new(self.0.clone())), length: None })
    }

    fn create(&self, name: &str) -> stoa_error::Result<Box<dyn Write + Send>> {
        Err(Error::unsupported(name.to_owned()))
    }
}

struct Pieces(Cursor<Vec<u8>>);

impl std::io::Read for Pieces {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let length = buffer.len().min(7);
        self.0.read(&mut buffer[..length])
    }
}

fn schema() -> TableSchema {
    let family = |name: &str| FamilyDefinition { name: name.into(), options: Default::default() };
    let definitions = TableDefinitions {
        families: vec![family("a"), family("b"), family("Query")],
        ..TableDefinitions::default()
    };
    TableSchema::create(&definitions, TableOptions::default()).unwrap()
}

type Loaded = (Vec<Cell>, Vec<String>);

fn load_as(name: &str, bytes: &[u8], options: &LoadOptions) -> stoa_error::Result<Loaded> {
    let store = Arc::new(MemoryCells::new(TimestampSource::manual(1000)));
    let files = OneFile(bytes.to_vec());
    let families = Families::of(&schema());
    let budget = Arc::new(Unlimited);
    let mut reader = LoadReader::open(&files, name, options, Zone::Utc, families, store, budget)?;
    let mut cells = Vec::new();
    while let Some(batch) = reader.next_batch()? {
        cells.extend(batch.iter().map(|cell| cell.to_cell()));
    }
    assert_eq!(reader.counts().cells, cells.len() as u64);
    Ok((cells, reader.take_warnings().0))
}

fn load(text: &str, options: &LoadOptions) -> stoa_error::Result<Loaded> {
    load_as("f.tsv", text.as_bytes(), options)
}

fn keyed(name: &str) -> LoadOptions {
    let column = KeyColumn { name: name.into(), format: KeyFormat::Plain };
    LoadOptions { row_key_columns: vec![column], ..LoadOptions::default() }
}

fn places(cells: &[Cell]) -> Vec<String> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let place = |c: &Cell| {
        format!(
            "{} {}:{} {} @{}",
            text(&c.row),
            c.family,
            text(&c.qualifier),
            text(&c.value),
            c.timestamp
        )
    };
    cells.iter().map(place).collect()
}

#[test]
fn headers_with_and_without_mark_are_the_same() {
    let body = "k\tQuery\ta:x\n1\tq\t\n2\tr\tclick\n";
    let expected = ["1 3: q @1000", "2 3: r @1001", "2 1:x click @1002"];
    for text in [body.to_owned(), format!("#{body}"), format!("# {body}")] {
        assert_eq!(places(&load(&text, &keyed("k")).unwrap().0), expected, "{text}");
        assert_eq!(places(&load(&text, &LoadOptions::default()).unwrap().0), expected, "{text}");
    }
    // Without a key column that is named, and a name that is no family, it cannot be a header.
    let error = load("k\tquery\n1\tq\n", &LoadOptions::default()).unwrap_err();
    assert_eq!(error.message(), "f.tsv: bad load file format: line 1 is \"k\\tquery\"");
}

#[test]
fn a_line_without_header_is_a_cell() {
    let (cells, _) = load("r1\ta\tv\nr2\tb:q\tw\n", &LoadOptions::default()).unwrap();
    assert_eq!(places(&cells), ["r1 1: v @1000", "r2 2:q w @1001"]);
    let (cells, _) = load("2020-01-01\tr1\ta\tv\n", &LoadOptions::default()).unwrap();
    assert_eq!(places(&cells), ["r1 1: v @1577836800000000000"]);
    let (cells, _) = load("r1\ta\t\tDELETE\n", &LoadOptions::default()).unwrap();
    assert_eq!(cells[0].kind, CellKind::DeleteFamily);
}

#[test]
fn short_lines_lack_their_last_cells() {
    let text = "k\ta\tb\n1\n2\tx\n3\tx\ty\n4\t\ty\n5\tNULL\t\\N\n";
    let (cells, warnings) = load(text, &LoadOptions::default()).unwrap();
    let expected = ["2 1: x @1000", "3 1: x @1001", "3 2: y @1002", "4 2: y @1003"];
    assert_eq!(places(&cells), expected);
    assert_eq!(warnings, [""; 0]);
}

#[test]
fn the_end_of_the_file_ends_the_last_line() {
    for text in ["k\ta\r\n1\tx\r\n2\ty", "k\ta\n1\tx\n\n2\ty\n", "k\ta\n1\tx\n2\ty"] {
        let (cells, _) = load(text, &keyed("k")).unwrap();
        assert_eq!(places(&cells), ["1 1: x @1000", "2 1: y @1001"], "{text:?}");
    }
    assert_eq!(load("", &keyed("k")).unwrap().0, []);
    assert_eq!(load("k\ta", &keyed("k")).unwrap().0, []);
}

#[test]
fn gzipped_files_may_be_of_several_parts_and_damage_is_told() {
    let part = |text: &str| {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(text.as_bytes()).unwrap();
        gzip.finish().unwrap()
    };
    let bytes = [part("k\ta\n1\tx\n"), part("2\ty\n")].concat();
    let (cells, _) = load_as("f.gz", &bytes, &keyed("k")).unwrap();
    assert_eq!(places(&cells), ["1 1: x @1000", "2 1: y @1001"]);
    let error = load_as("f.gz", &bytes[..bytes.len() - 9], &keyed("k")).unwrap_err();
    let damaged = "the file is damaged, cut off or not compressed with gzip";
    assert_eq!(error.message(), format!("f.gz: line 4: {damaged}"));
    let error = load_as("f.gz", b"k\ta\n1\tx\n", &keyed("k")).unwrap_err();
    assert_eq!(error.message(), format!("f.gz: line 1: {damaged}"));
}

/// So many bytes, and how many are left.
struct Left(AtomicUsize);

impl MemoryBudget for Left {
    fn take(&self, bytes: usize) -> stoa_error::Result<()> {
        let left = self.0.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(bytes));
        let none = |left| Error::unavailable(format!("{bytes} of {left} bytes"));
        left.map(|_| ()).map_err(none)
    }

    fn give_back(&self, bytes: usize) {
        self.0.fetch_add(bytes, Relaxed);
    }
}

#[test]
fn a_line_without_end_takes_no_more_memory_than_there_is() {
    const BYTES: usize = 16 << 20;
    let budget = Arc::new(Left(AtomicUsize::new(BYTES)));
    for (line_bytes, fits) in [(3 << 20, true), (12 << 20, false)] {
        let store = Arc::new(MemoryCells::default());
        let text = ["k\ta\n1\t", &"x".repeat(line_bytes)].concat();
        let files = Plain(text.into_bytes());
        let families = Families::of(&schema());
        let taken = Arc::clone(&budget) as Arc<dyn MemoryBudget>;
        let options = keyed("k");
        let mut reader =
            LoadReader::open(&files, "f", &options, Zone::Utc, families, store, taken).unwrap();
        match reader.next_batch() {
            Ok(batch) => assert!(fits && batch.is_some()),
            Err(error) => assert!(!fits && error.message().starts_with("f: line 2: "), "{error}"),
        }
        assert!(budget.0.load(Relaxed) < BYTES);
        drop(reader);
        assert_eq!(budget.0.load(Relaxed), BYTES);
    }
}

#[test]
fn many_warnings_are_counted() {
    let text = format!("k\ta\n{}", "\tno key\n".repeat(150));
    let store = Arc::new(MemoryCells::default());
    let families = Families::of(&schema());
    let files = OneFile(text.into_bytes());
    let options = keyed("k");
    let budget = Arc::new(Unlimited);
    let mut reader =
        LoadReader::open(&files, "f", &options, Zone::Utc, families, store, budget).unwrap();
    assert!(reader.next_batch().unwrap().is_none());
    let (warnings, more) = reader.take_warnings();
    assert_eq!((warnings.len(), more), (WARNINGS_MAX, 50));
    assert_eq!(warnings[0], "warn: zero-length row key on line 2, skipping...");
}

fn any_cell() -> impl Strategy<Value = Cell> {
    let bytes = |max: usize| {
        let byte = prop_oneof![any::<u8>(), Just(b'\t'), Just(b'\n'), Just(b'\\'), Just(b'n')];
        prop::collection::vec(byte, 0..max)
    };
    let key = |bytes: Vec<u8>| bytes.into_iter().filter(|b| *b != 0).collect::<Vec<u8>>();
    let marker = prop_oneof![
        9 => Just(CellKind::Insert), 1 => Just(CellKind::DeleteRow),
        1 => Just(CellKind::DeleteFamily), 1 => Just(CellKind::DeleteCell),
        1 => Just(CellKind::DeleteVersion)
    ];
    let parts = (bytes(6), 1_u8..4, bytes(4), 0_i64..i64::MAX, bytes(9), marker);
    parts.prop_map(move |(row, family, qualifier, timestamp, value, kind)| {
        let mut cell = Cell {
            row: [b"r".to_vec(), key(row)].concat(),
            family,
            qualifier: key(qualifier),
            timestamp,
            value: if kind.is_delete() { Vec::new() } else { value },
            kind,
        };
        if kind == CellKind::DeleteRow {
            cell.family = 0;
        }
        if kind == CellKind::DeleteRow || kind == CellKind::DeleteFamily {
            cell.qualifier.clear();
        }
        cell
    })
}

proptest! {
    #[test]
    fn printed_cells_load_as_they_were(
        cells in prop::collection::vec(any_cell(), 0..20), comma in any::<bool>(),
    ) {
        let mut builder = CellBatchBuilder::new();
        cells.iter().for_each(|cell| builder.push(cell.as_cell_ref()).unwrap());
        let format = CellFormat::new(&schema());
        let mut format = format.with_timestamps(TimestampFormat::Nanoseconds, Zone::Utc);
        let mut options = LoadOptions::default();
        let has = |byte: u8| cells.iter().any(|c| [&c.row, &c.qualifier, &c.value].iter().any(|b| b.contains(&byte)));
        if comma && !has(b',') {
            format = format.with_separator(b',');
            options.field_separator = Some(b',');
        }
        let mut text = format.header();
        format.write(&builder.finish(), &mut text);
        let (loaded, warnings) = load_as("f", &text, &options).unwrap();
        prop_assert_eq!(warnings, Vec::<String>::new());
        prop_assert_eq!(loaded, cells);
    }

    #[test]
    fn any_bytes_load_or_are_refused(
        bytes in any::<Vec<u8>>(), text in "(#?(k|a|b|row|column|value|x:y|DELETE|2020-01-01|\\\\n)?[\t\n]){0,40}",
        flags in any::<[bool; 6]>(),
    ) {
        let statement = "LOAD DATA INFILE ROW_KEY_COLUMN='%03k'+a ROW_UNIQUIFY_CHARS=3 'f' INTO TABLE t";
        let Ok(lang::ast::Statement::LoadData(load)) = lang::parse(statement) else { unreachable!() };
        let mut options = if flags[0] { load.options } else { LoadOptions::default() };
        options.duplicate_key_columns = flags[1];
        options.ignore_unknown_columns = flags[2];
        options.single_cell_format = flags[3];
        options.no_escape = flags[4];
        options.timestamp_column = flags[5].then(|| "b".to_owned());
        for name in ["f", "f.gz"] {
            let _ = load_as(name, &bytes, &options);
            let _ = load_as(name, text.as_bytes(), &options);
        }
    }
}
