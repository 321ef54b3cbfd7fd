//! A flipped bit in a data file is found by who reads the bytes, and names where it is.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Home, append, ident, report_rows, report_spec};
use stoa_orc::{Decoder, Predicate, Projection, ReadOptions, Step};
use stoa_table::Table;

const ROWS: usize = 300;

/// The files of the table on disk.
async fn files(table: &Table) -> Vec<std::path::PathBuf> {
    let plan = table.plan_scan(&Predicate::always()).await.unwrap();
    let path = |location: &str| location.strip_prefix("file://").unwrap().into();
    plan.files.iter().map(|file| path(&file.location)).collect()
}

/// Reads all rows of the current snapshot as scans do.
async fn scan(table: &Table) -> stoa_error::Result<usize> {
    let mut rows = 0;
    for file in &table.plan_scan(&Predicate::always()).await?.files {
        let metadata = file.read_metadata(&file.reader).await?;
        let options = ReadOptions::default().with_projection(Projection::Fields(table.schema()));
        let mut decoder = Decoder::new(metadata.into(), options)?;
        loop {
            match decoder.next().map_err(|error| file.failed(error))? {
                Step::NeedsData(ranges) => {
                    for range in ranges {
                        let bytes = file.reader.read_one(&file.path, range.clone()).await?;
                        decoder.push(range.start, bytes);
                    }
                }
                Step::Batch(batch) => rows += batch.num_rows(),
                Step::Finished => break,
            }
        }
    }
    Ok(rows)
}

#[tokio::test]
async fn each_flipped_bit_is_found() {
    let home = Home::new().await;
    let table = home.warehouse.create_table(&ident("report"), report_spec()).await.unwrap();
    let table = append(&table, report_rows(16_436, ROWS)).await;
    let sound = table.check_data().await.unwrap();
    assert_eq!(sound.problems, []);
    let data = sound.data.unwrap();
    let paths = files(&table).await;
    assert_eq!((data.files, data.without_checksums), (paths.len(), 0));
    assert_eq!((data.bytes, scan(&table).await.unwrap()), (sound.bytes, ROWS));

    let path = &paths[1];
    let right = std::fs::read(path).unwrap();
    let name = path.file_name().unwrap().to_str().unwrap();
    for at in (0..right.len()).step_by(61) {
        let mut bytes = right.clone();
        bytes[at] ^= 1 << (at % 8);
        std::fs::write(path, &bytes).unwrap();
        let report = table.check_data().await.unwrap();
        assert_eq!(report.problems.len(), 1, "byte {at}: {:?}", report.problems);
        assert!(report.problems[0].place.ends_with(name), "{:?}", report.problems);
        // All of a small file is one block, and so is read by each scan.
        let error = scan(&table).await.unwrap_err();
        let message = error.message_with_sources();
        assert_eq!(error.sqlstate(), "XX001", "byte {at}: {message}");
        assert!(message.contains(name), "byte {at}: {message}");
    }
    std::fs::write(path, &right).unwrap();
    assert_eq!(table.check_data().await.unwrap().problems, []);
}
