//! Damage at many places: what is read, what is not, and what is said about it.
#![allow(clippy::unwrap_used, clippy::expect_used)] // A test may end in a panic.

mod support;

use prost::Message;
use serde_json::Value;
use stoa_orc::{Compression, WriterOptions};
use stoa_orc_tools::{DataOptions, MetaOptions, ScanOptions, ScanReport, data, meta, scan};
use support::{File, counting, plain, texts, without_directory};

fn scanned(file: &File) -> (ScanReport, String) {
    let mut out = Vec::new();
    let report = scan(&file.path(), &ScanOptions { verbose: true }, &mut out).unwrap();
    (report, without_directory(&String::from_utf8(out).unwrap(), &file.path()))
}

/// Three stripes of ten row groups of 100 rows, in chunks smaller than the texts of a row group.
fn file() -> File {
    let options = WriterOptions::default()
        .with_checksums(false)
        .with_compression(Compression::Zstd { level: 1 })
        .with_compression_block_bytes(1024)
        .with_stripe_rows(1000)
        .with_row_index_stride(100);
    File::of(vec![("a", counting(3000)), ("b", texts(3000))], options)
}

/// Where a stream begins.
fn stream(meta: &Value, stripe: usize, column: u64, section: &str) -> u64 {
    let streams = meta["stripes"][stripe]["streams"].as_array().unwrap();
    let of = |s: &&Value| s["columnId"] == column && s["section"] == section;
    streams.iter().find(of).unwrap()["startOffset"].as_u64().unwrap()
}

#[test]
fn a_sound_file_is_one_line() {
    let (report, text) = scanned(&file());
    assert!(report.is_sound());
    assert_eq!(text, "File: t.orc, bad batches: 0, rows: 3000/3000\n");
}

#[test]
fn damage_in_data_costs_row_groups_of_a_column() {
    let file = file();
    let meta = file.meta_with_index("b");
    let group = &meta["stripes"][1]["indexes"][0]["rowGroupIndexes"][5];
    let chunk = stream(&meta, 1, 2, "DATA") + group["positions"][0].as_u64().unwrap();
    // The header of a chunk: all of the stream behind it cannot be read without the index.
    let (report, text) = scanned(&file.damaged(chunk, 3));
    assert!(!report.is_sound());
    // The chunk may begin with the end of the row group before.
    let bad = report.bad_batches();
    assert!((1..=2).contains(&bad) && report.rows == 3000 - 100 * bad, "{text}");
    let spot = &report.bad[0];
    let first = 1600 - 100 * bad;
    assert_eq!((spot.stripe, spot.rows.clone()), (1, first..1600));
    assert_eq!(spot.columns.iter().map(|(column, _)| *column).collect::<Vec<_>>(), [2]);
    for part in [
        &format!(
            "Unable to read batch at row {first} in stripe 1 (rows 1000-2000), recovery at row 1600"
        ),
        "\n  t.orc: stripe 1: column 2 (b): DATA stream, before offset ",
        &format!("\nColumn 2 (b) failed at row {first}\n"),
        &format!("\nFile: t.orc, bad batches: {bad}, rows: {}/3000\n", report.rows),
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
}

#[test]
fn damage_in_a_stripe_footer_costs_the_stripe() {
    // The compact copy of the footers would do instead.
    let options = plain().with_stripe_rows(1000).with_compact_index(false);
    let file = File::of(vec![("a", counting(3000)), ("b", texts(3000))], options);
    let info = &file.meta()["stripes"][2]["stripeInformation"];
    let number = |name: &str| info[name].as_u64().unwrap();
    let at = number("offset") + number("indexLength") + number("dataLength");
    let (report, text) = scanned(&file.damaged(at, number("footerLength") as usize));
    assert_eq!((report.rows, report.bad_batches()), (2000, 1), "{text}");
    assert!(report.bad[0].columns.is_empty(), "{text}");
    assert_eq!(report.bad[0].rows, 2000..3000);
    for part in [
        "row 2000 in stripe 2 (rows 2000-3000), recovery at row 3000, the end of the file",
        &format!("t.orc: stripe 2: offset {at}: stripe footer: "),
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
}

#[test]
fn every_place_of_damage_is_named_or_does_no_harm() {
    let file = file();
    let length = file.bytes().len() as u64;
    for at in (0..length - 16).step_by(97) {
        let damaged = file.damaged(at, 16);
        let mut out = Vec::new();
        match scan(&damaged.path(), &ScanOptions::default(), &mut out) {
            Err(error) => assert!(error.message().contains("t.orc: file tail"), "{at}: {error:?}"),
            Ok(report) => {
                let lost: u64 = report.bad.iter().map(|b| b.rows.end - b.rows.start).sum();
                assert_eq!(report.rows + lost, report.rows_total, "{at}");
                for spot in &report.bad {
                    let message = spot.error.message();
                    let place = format!("t.orc: stripe {}: ", spot.stripe);
                    assert!(
                        message.contains(&place) && message.contains("offset"),
                        "{at}: {message}"
                    );
                }
            }
        }
    }
}

#[test]
fn a_file_cut_off_is_an_error() {
    let bytes = file().bytes();
    for length in [1, 100, bytes.len() / 2, bytes.len() - 1] {
        let cut = File::of_bytes(&bytes[..length]);
        let error = scan(&cut.path(), &ScanOptions::default(), &mut Vec::new()).unwrap_err();
        assert!(error.message().contains("t.orc: file tail"), "{length}: {error:?}");
    }
}

#[test]
fn damage_anywhere_is_an_error_that_names_the_file() {
    let file = file();
    let all = MetaOptions { row_index: vec!["*".to_owned()], ..MetaOptions::default() };
    let json = MetaOptions { json: true, ..all.clone() };
    for at in (0..file.bytes().len() as u64 - 2).step_by(41) {
        let damaged = file.damaged(at, 2);
        let path = damaged.path();
        let mut sink = std::io::sink();
        let rows = data(&path, &DataOptions::default(), &mut sink).map(|_| ());
        for result in [rows, meta(&path, &all, &mut sink), meta(&path, &json, &mut sink)] {
            let error = result.err();
            assert!(error.is_none_or(|e| e.message().contains("t.orc: ")), "{at}");
        }
    }
}

#[test]
fn columns_of_a_wide_file_are_found_by_halves() {
    let columns = 1000u64;
    let names: Vec<String> = (0..columns).map(|column| format!("c{column}")).collect();
    let columns_of = names.iter().map(|name| (name.as_str(), counting(40)));
    let options = plain().with_row_index_stride(10).with_compact_index(false);
    let file = File::of(columns_of.collect(), options);
    let meta = file.meta();
    // Three columns: the first, the last, one between. A header of a run that needs more bytes.
    let bad = [1, 777, columns];
    let mut bytes = file.bytes();
    for column in bad {
        let at = stream(&meta, 0, column, "DATA") as usize;
        bytes[at..at + 4].fill(0xff);
    }
    let (report, text) = scanned(&File::of_bytes(&bytes));
    let found: Vec<u64> = report.bad[0].columns.iter().map(|(at, _)| u64::from(*at)).collect();
    assert_eq!(found, bad, "{text}");
    assert!(!report.bad[0].has_more_columns);

    // Nearly all of them: some are named, and that there are more.
    for column in 2..=columns {
        let at = stream(&meta, 0, column, "DATA") as usize;
        bytes[at..at + 4].fill(0xff);
    }
    let (report, text) = scanned(&File::of_bytes(&bytes));
    assert_eq!(report.bad[0].columns.len(), 64);
    assert!(text.contains("More columns may have failed at row 0"), "{text}");
}

#[test]
fn a_stripe_cannot_say_that_it_has_any_number_of_rows() {
    // 78 bytes: no columns, and a stripe of 2^60 rows.
    let footer = stoa_orc::proto::Footer {
        stripes: vec![stoa_orc::proto::StripeInformation {
            offset: Some(3),
            index_length: Some(0),
            data_length: Some(0),
            footer_length: Some(30),
            number_of_rows: Some(1 << 60),
        }],
        types: vec![stoa_orc::proto::Type { kind: Some(12), ..Default::default() }],
        number_of_rows: Some(1 << 60),
        ..Default::default()
    };
    let footer = footer.encode_to_vec();
    let postscript = stoa_orc::proto::PostScript {
        footer_length: Some(footer.len() as u64),
        magic: Some("ORC".to_owned()),
        ..Default::default()
    };
    let postscript = postscript.encode_to_vec();
    let mut bytes = b"ORC".to_vec();
    bytes.extend_from_slice(&[0; 30]);
    bytes.extend_from_slice(&footer);
    bytes.extend_from_slice(&postscript);
    bytes.push(postscript.len() as u8);
    let file = File::of_bytes(&bytes);
    let error = scan(&file.path(), &ScanOptions::default(), &mut Vec::new()).unwrap_err();
    assert!(error.message().contains("stripe 0: too many rows"), "{error:?}");
}
