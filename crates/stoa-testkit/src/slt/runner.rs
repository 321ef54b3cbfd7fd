//! Runs one file over one protocol.

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use sqllogictest::{AsyncDB, DBOutput, DefaultColumnType, Record, Runner};

use super::{Answer, Connection, Failure, Protocol};

/// How many failures of a file are told.
const FAILURES_MAX: usize = 40;

/// What a file's comment with its protocols begins with.
const PROTOCOLS: &str = "# Protocols:";

/// Runs all records of a file, whether or not earlier ones failed. `folder` is what `$DIR` stands for.
///
/// A file whose comment `# Protocols:` does not name this one is skipped, and says so on stderr.
///
/// # Errors
/// All failures as one text, each with file and line.
pub async fn run(path: &Path, protocol: &Arc<dyn Protocol>, folder: &Path) -> Result<(), String> {
    let name = path.display().to_string();
    let script = std::fs::read_to_string(path).map_err(|error| format!("{name}: {error}"))?;
    run_script(&script, &name, protocol, folder).await
}

async fn run_script(
    script: &str,
    name: &str,
    protocol: &Arc<dyn Protocol>,
    folder: &Path,
) -> Result<(), String> {
    if !is_for(script, protocol.name()) {
        eprintln!("skipped: {name} is not for {}", protocol.name());
        return Ok(());
    }
    let records = sqllogictest::parse_with_name(script, name).map_err(|error| error.to_string())?;
    let mut runner = Runner::new(|| {
        let protocol = Arc::clone(protocol);
        async move {
            let (name, connection) = (protocol.name(), protocol.connect().await?);
            Ok(Database { name, connection })
        }
    });
    runner.set_var("DIR".to_owned(), folder.display().to_string());
    let mut failures: Vec<String> = Vec::new();
    for record in records {
        if matches!(record, Record::Halt { .. }) {
            break;
        }
        if let Err(failure) = runner.run_async(record).await {
            failures.push(failure.to_string());
        }
    }
    runner.shutdown_async().await;
    if failures.is_empty() { Ok(()) } else { Err(told(protocol.name(), &failures)) }
}

fn is_for(script: &str, protocol: &str) -> bool {
    let named = script.lines().find_map(|line| line.strip_prefix(PROTOCOLS));
    named.is_none_or(|names| names.split_whitespace().any(|name| name == protocol))
}

fn told(protocol: &str, failures: &[String]) -> String {
    let mut text = format!("{} records failed over {protocol}:\n", failures.len());
    for failure in failures.iter().take(FAILURES_MAX) {
        text.push_str(failure.trim_end());
        text.push_str("\n\n");
    }
    text
}

/// A connection as sqllogictest wants it.
struct Database {
    name: &'static str,
    connection: Box<dyn Connection>,
}

#[async_trait]
impl AsyncDB for Database {
    type Error = Failure;
    type ColumnType = DefaultColumnType;

    async fn run(&mut self, sql: &str) -> Result<DBOutput<Self::ColumnType>, Self::Error> {
        match self.connection.run(sql).await? {
            Answer::Done(rows) => Ok(DBOutput::StatementComplete(rows)),
            Answer::Rows(rows) => {
                let columns = rows.first().map_or(0, Vec::len);
                Ok(DBOutput::Rows { types: vec![DefaultColumnType::Any; columns], rows })
            }
        }
    }

    async fn shutdown(&mut self) {}

    fn engine_name(&self) -> &str {
        self.name
    }

    fn error_sql_state(error: &Self::Error) -> Option<String> {
        Some(error.sqlstate.clone()).filter(|sqlstate| !sqlstate.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers each statement with its own text, `fail` with an error.
    struct Echo;

    #[async_trait]
    impl Protocol for Echo {
        fn name(&self) -> &'static str {
            "echo"
        }

        async fn connect(&self) -> Result<Box<dyn Connection>, Failure> {
            Ok(Box::new(Self))
        }
    }

    #[async_trait]
    impl Connection for Echo {
        async fn run(&mut self, sql: &str) -> Result<Answer, Failure> {
            match sql {
                "fail" => {
                    Err(Failure { sqlstate: "42P01".to_owned(), message: "no table".to_owned() })
                }
                "done" => Ok(Answer::Done(3)),
                other => Ok(Answer::Rows(vec![vec![other.to_owned()]])),
            }
        }
    }

    fn ran(script: &str) -> Result<(), String> {
        let protocol: Arc<dyn Protocol> = Arc::new(Echo);
        let running = run_script(script, "some.slt", &protocol, Path::new("/files"));
        futures::executor::block_on(running)
    }

    #[test]
    fn records_are_compared() {
        ran("query T\nSELECT 1\n----\nSELECT 1\n\nstatement count 3\ndone\n").unwrap();
        ran("statement error 42P01\nfail\n\nstatement error (42P01)\nfail\n").unwrap();
    }

    #[test]
    fn every_failure_is_told_with_its_line() {
        let told = ran("statement ok\nfail\n\nquery T\nSELECT 1\n----\n2\n\nstatement ok\ndone\n");
        let told = told.unwrap_err();
        assert!(told.starts_with("2 records failed over echo:"), "{told}");
        assert!(told.contains("at some.slt:1\n") && told.contains("at some.slt:4\n"), "{told}");
        assert!(told.contains("42P01: no table"), "{told}");
    }

    #[test]
    fn what_is_not_for_a_protocol_is_left_out() {
        ran("skipif echo\nstatement ok\nfail\n\nonlyif other\nstatement ok\nfail\n").unwrap();
        ran("onlyif echo\nstatement ok\nfail\n").unwrap_err();
        ran("# Protocols: one other\n\nstatement ok\nfail\n").unwrap();
        ran("# Protocols: one echo\n\nstatement ok\nfail\n").unwrap_err();
    }

    #[test]
    fn the_folder_is_put_in_where_it_is_asked_for() {
        ran("control substitution on\n\nquery T\n$DIR/a\n----\n/files/a\n").unwrap();
    }

    #[test]
    fn what_cannot_be_parsed_is_a_failure() {
        assert!(ran("statment ok\ndone\n").unwrap_err().contains("some.slt:1"));
    }
}
