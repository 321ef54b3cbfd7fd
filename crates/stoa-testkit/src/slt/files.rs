//! Where the files are, and a test for each of them.

use std::path::{Path, PathBuf};

/// The folder with all files.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../stoa-query/tests/slt")
}

/// The names of all files in [`folder`], without `.slt`, in order.
///
/// # Panics
/// If the folder cannot be read.
pub fn files() -> Vec<String> {
    let entries = std::fs::read_dir(folder()).expect("the folder of .slt files");
    let paths = entries.map(|entry| entry.expect("an entry of the folder").path());
    let mut names: Vec<String> = paths
        .filter(|path| path.extension().is_some_and(|extension| extension == "slt"))
        .filter_map(|path| path.file_stem().map(|name| name.to_string_lossy().into_owned()))
        .collect();
    names.sort();
    names
}

/// Makes a test of each file of [`folder`]: `slt_tests!(run)` calls `run("ddl").await`, and so on.
///
/// One more test fails where a file of the folder is missing in the list that is kept here.
#[macro_export]
macro_rules! slt_tests {
    ($run:path) => {
        $crate::slt_tests! { $run;
            bytea casts changes changes_from copy ddl declared_types defaults floats functions functions_declared functions_numbers
            functions_others functions_texts functions_times grouping interval_styles joins json laterals like literals looking_after maintenance overwrite
            postgres prune queries refused relational returning roles rows select series set_operations settings
            shapes show tables time_travel transactions type_of types upsert values views windows
        }
    };
    ($run:path; $($name:ident)*) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                $run(stringify!($name)).await;
            }
        )*

        #[test]
        fn every_file_is_run() {
            assert_eq!($crate::slt::files(), [$(stringify!($name)),*]);
        }
    };
}

#[cfg(test)]
mod tests {
    use sqllogictest::{DefaultColumnType, Record};

    use super::*;

    #[test]
    fn every_file_can_be_parsed_and_asks_something() {
        for name in files() {
            let path = folder().join(format!("{name}.slt"));
            let script = std::fs::read_to_string(&path).unwrap();
            let records =
                sqllogictest::parse_with_name::<DefaultColumnType>(&script, name.as_str())
                    .unwrap_or_else(|error| panic!("{error}"));
            let asks = |record: &Record<DefaultColumnType>| {
                matches!(record, Record::Query { .. } | Record::Statement { .. })
            };
            assert!(records.iter().any(asks), "{name}");
        }
    }
}
