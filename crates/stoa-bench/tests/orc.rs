//! A small run of the ORC measurement: everybody who is there answers rightly.
#![allow(clippy::unwrap_used)]

use std::path::Path;

use arrow_array::RecordBatch;
use stoa_bench::AdReportSpec;
use stoa_bench::orc::{
    Contender, Format, InProcess, Library, OrcOptions, Quantity, Sink, Workload, run,
};
use stoa_error::{ErrorKind, Result};

fn options(work_dir: &Path) -> OrcOptions {
    OrcOptions {
        spec: AdReportSpec { rows: 30_000, accounts: 500, seed: 3 },
        work_dir: work_dir.to_owned(),
        rounds: 1,
        python: None,
        works: Workload::ALL.to_vec(),
    }
}

#[test]
fn a_run_measures_everybody_and_keeps_its_table() {
    let dir = tempfile::tempdir().unwrap();
    let options = options(dir.path());
    let first = run(&options, Vec::new(), &mut |_| {}).unwrap();
    for work in [Workload::ReadAll, Workload::ReadThree, Workload::Report, Workload::Write] {
        let names: Vec<&str> = first
            .measurements()
            .iter()
            .filter(|m| m.work == work)
            .map(|m| m.contender.split(' ').next().unwrap())
            .collect();
        assert_eq!(names.first(), Some(&"stoa-orc"), "{work:?}");
        assert_eq!(names.last(), Some(&"parquet-rs"), "{work:?}");
    }
    let sizes = first.ratios().into_iter().filter(|r| r.quantity == Quantity::FileBytes).count();
    assert!(sizes >= 1);
    assert!(first.table().contains("read 3 of 11 columns"));
    let json: serde_json::Value = serde_json::from_str(&first.json().unwrap()).unwrap();
    assert_eq!(json["table"]["rows"], 30_000);
    let mut made = 0;
    run(&options, Vec::new(), &mut |_| made += 1).unwrap();
    assert!(made > 0);
}

/// Loses the last batch of all columns.
struct Forgetful;

impl Library for Forgetful {
    fn name(&self) -> String {
        "forgetful 1".to_owned()
    }

    fn format(&self) -> Format {
        Format::Orc
    }

    fn read(&self, _: &Path, _: Option<&[&str]>, _: &mut Sink<'_>) -> Result<()> {
        Ok(())
    }

    fn write(&self, path: &Path, _: &[RecordBatch]) -> Result<()> {
        std::fs::write(path, b"").map_err(|e| stoa_error::Error::internal("").with_source(e))
    }
}

#[test]
fn a_wrong_answer_ends_the_run() {
    let dir = tempfile::tempdir().unwrap();
    for work in Workload::ALL.into_iter().filter(|work| *work != Workload::ReadAllOfPyarrow) {
        let options = OrcOptions { works: vec![work], ..options(dir.path()) };
        let others: Vec<Box<dyn Contender>> = vec![Box::new(InProcess(Forgetful))];
        let error = run(&options, others, &mut |_| {}).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{work:?}: {error}");
        assert!(error.to_string().contains("forgetful"), "{error}");
    }
}

#[test]
fn a_python_without_pyarrow_is_said_so() {
    let dir = tempfile::tempdir().unwrap();
    let options = OrcOptions { python: Some("/bin/false".into()), ..options(dir.path()) };
    let error = run(&options, Vec::new(), &mut |_| {}).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.hint().is_some_and(|hint| hint.contains("--python")), "{error}");
}
