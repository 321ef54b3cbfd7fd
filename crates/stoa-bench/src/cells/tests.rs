use super::{CellsOptions, QueryLog, run};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_small_run_counts_what_it_loaded() {
    let directory = tempfile::tempdir().unwrap();
    let mut options = CellsOptions::new(directory.path().to_owned());
    options.log = QueryLog { lines: 3000, files: 3, seed: 5 };
    (options.runs, options.rows) = (1, 20);
    let mut steps = Vec::new();
    let result = run(&options, &mut |step| steps.push(step.to_owned())).await.unwrap();
    assert!(steps.len() == 3 && result.cells > 2 * result.lines, "{steps:?} {result:?}");
    let step = |name: &str| result.steps.iter().find(|step| step.name == name).unwrap();
    assert!(step("load through the log").log_syncs > 0);
    assert_eq!(step("load into files").log_bytes, 0);
    assert_eq!(step("dump").cells, result.cells);
    assert!(result.table().lines().count() > result.steps.len());
    assert!(result.json().unwrap().contains("cells_per_second"));
}
