//! The files that a statement names.

use super::ast::{LoadTarget, Statement, TableChange, TableSource};

impl Statement {
    /// The files it reads, those first that are read whole before others.
    pub fn input_files(&self) -> Vec<&str> {
        match self {
            Self::LoadData(load) => {
                let header = load.options.header_file.as_deref();
                header.into_iter().chain([load.source.as_str()]).collect()
            }
            Self::CreateTable { source: TableSource::SchemaFile(file), .. }
            | Self::AlterTable { change: TableChange::SchemaFile(file), .. } => vec![file],
            _ => Vec::new(),
        }
    }

    /// The file it writes.
    pub fn output_file(&self) -> Option<&str> {
        match self {
            Self::Select(select) => select.options.into_file.as_deref(),
            Self::DumpTable(dump) => dump.into_file.as_deref(),
            Self::LoadData(load) => match &load.target {
                LoadTarget::File(file) => Some(file),
                LoadTarget::Table(_) => None,
            },
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::lang::parse;

    #[test]
    fn files_are_named() {
        let files = |text: &str| {
            let statement = parse(text).unwrap();
            let inputs = statement.input_files().into_iter().map(str::to_owned).collect::<Vec<_>>();
            (inputs, statement.output_file().map(str::to_owned))
        };
        let load = "LOAD DATA INFILE HEADER_FILE='h' 'd.tsv' INTO TABLE t";
        assert_eq!(files(load), (vec!["h".to_owned(), "d.tsv".to_owned()], None));
        assert_eq!(files("SELECT * FROM t INTO FILE 'o.gz'"), (vec![], Some("o.gz".to_owned())));
        assert_eq!(files("DUMP TABLE t INTO FILE 'o'"), (vec![], Some("o".to_owned())));
        assert_eq!(files("CREATE TABLE t WITH 's.xml'"), (vec!["s.xml".to_owned()], None));
        assert_eq!(files("SELECT * FROM t"), (vec![], None));
    }
}
