use super::*;
use crate::batch::CellBatchBuilder;
use crate::cell::{CellKind, CellRef};
use crate::schema::{FamilyDefinition, TableDefinitions, TableOptions, TableSchema};
use crate::time_text::{TimestampFormat, Zone};

fn schema() -> TableSchema {
    let families = vec![FamilyDefinition { name: "tag".into(), options: Default::default() }];
    let definitions = TableDefinitions { families, ..TableDefinitions::default() };
    TableSchema::create(&definitions, TableOptions::default()).unwrap()
}

fn check(mut format: CellFormat, header: &str, lines: &str) {
    let mut builder = CellBatchBuilder::new();
    let value = CellRef::insert(b"r\t1", 1, b"a\\b", 1_250_000_000_000_000_007, b"x\ny\0");
    let plain = CellRef { qualifier: b"", ..value };
    let marker = |family, kind| CellRef { family, kind, value: b"", ..plain };
    for cell in [value, plain, marker(0, CellKind::DeleteRow), marker(1, CellKind::DeleteFamily)] {
        builder.push(cell).unwrap();
    }
    let mut out = Vec::new();
    format.write(&builder.finish(), &mut out);
    assert_eq!(String::from_utf8(out).unwrap(), lines);
    assert_eq!(String::from_utf8(format.header()).unwrap(), header);
}

#[test]
fn cells_are_lines_of_fields() {
    check(
        CellFormat::new(&schema()),
        "#row\tcolumn\tvalue\n",
        "r\\t1\ttag:a\\\\b\tx\\ny\\0\nr\\t1\ttag\tx\\ny\\0\n\
         r\\t1\t\tDELETE ROW\nr\\t1\ttag\t\tDELETE COLUMN FAMILY\n",
    );
    let format = CellFormat::new(&schema()).with_separator(b',').with_revisions();
    check(
        format.with_timestamps(TimestampFormat::Default, Zone::Utc).keys_only(),
        "#revision,timestamp,row\n",
        &"1250000000000000007,2009-08-11 14:13:20.000000007,r\t1\n".repeat(4),
    );
    check(
        CellFormat::new(&schema()).without_escapes(),
        "#row\tcolumn\tvalue\n",
        "r\t1\ttag:a\\b\tx\ny\0\nr\t1\ttag\tx\ny\0\nr\t1\t\tDELETE ROW\n\
         r\t1\ttag\t\tDELETE COLUMN FAMILY\n",
    );
}

#[test]
fn statistics_are_a_block_of_numbers() {
    let mut statistics = Statistics::start();
    statistics.cells = 2000;
    statistics.key_bytes = 14_200;
    statistics.value_bytes = 30_400;
    statistics.file_bytes = Some(85_000);
    let expected = "\n  Elapsed time:  2.00 s\nAvg value size:  15.20 bytes\n  \
        Avg key size:  7.10 bytes\n    Throughput:  22300.00 bytes/s (42500.00 bytes/s)\n   \
        Total cells:  2000\n    Throughput:  1000.00 cells/s\n       Resends:  0\n\n";
    assert_eq!(statistics.text_after(2.0, true), expected);
}

#[test]
fn progress_is_fifty_one_stars() {
    let mut out = BufferOutput::default();
    let mut display = ProgressDisplay::start(Some(2_279_142_775), &mut out).unwrap();
    display.advance(1_139_571_388, &mut out).unwrap();
    assert!(out.progress.starts_with("\nLoading 2,279,142,775 bytes of input data...\n\n0%   10"));
    assert_eq!(out.progress.lines().last().unwrap(), "*".repeat(25));
    display.finish(&mut out).unwrap();
    assert_eq!(out.progress.lines().last().unwrap(), "*".repeat(51));

    let mut silent = BufferOutput::default();
    let mut display = ProgressDisplay::start(None, &mut silent).unwrap();
    display.finish(&mut silent).unwrap();
    assert_eq!(silent.progress, "");
}
