//! Prepared statements: parameters, updates, closing.

use std::sync::Arc;

use arrow_array::{Int32Array, Int64Array, StringArray};
use arrow_schema::DataType;
use tonic::Code;

use crate::support::*;

#[tokio::test]
async fn parameters_are_bound_by_either_mark() {
    let server = Server::start().await;
    let mut client = server.client().await;
    run(&mut client, "CREATE TABLE t (id bigint, name text)").await;
    run(&mut client, "INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c?')").await;
    for sql in [
        "SELECT name FROM t WHERE id >= $1 AND name <> $2 ORDER BY id",
        "SELECT name FROM t WHERE id >= ? AND name <> ? AND name <> '?' /* ? */ ORDER BY id -- ?",
    ] {
        let mut statement = client.prepare(sql.to_owned(), None).await.unwrap();
        let types: Vec<_> = statement
            .parameter_schema()
            .unwrap()
            .fields()
            .iter()
            .map(|f| f.data_type().clone())
            .collect();
        assert_eq!(types, [DataType::Int64, DataType::Utf8], "{sql}");
        assert_eq!(statement.dataset_schema().unwrap().field(0).name(), "name");
        for (id, expected) in [(2, vec!["b", "c?"]), (3, vec!["c?"])] {
            let values = batch(vec![
                ("1", Arc::new(Int32Array::from(vec![id]))),
                ("2", Arc::new(StringArray::from(vec!["a"]))),
            ]);
            statement.set_parameters(values).unwrap();
            let info = statement.execute().await.unwrap();
            assert_eq!(lines(&fetch(&mut client, info).await.unwrap()), expected, "{sql}");
        }
        statement.close().await.unwrap();
    }
}

#[tokio::test]
async fn a_query_runs_for_each_row_of_values() {
    let server = Server::start().await;
    let mut client = server.client().await;
    let mut statement = client.prepare("SELECT ? * 10 AS n".to_owned(), None).await.unwrap();
    let values = batch(vec![("1", Arc::new(Int64Array::from(vec![1, 2, 3])))]);
    statement.set_parameters(values).unwrap();
    let info = statement.execute().await.unwrap();
    assert_eq!(lines(&fetch(&mut client, info).await.unwrap()), ["10", "20", "30"]);
}

#[tokio::test]
async fn updates_count_their_rows() {
    let server = Server::start().await;
    let mut client = server.client().await;
    run(&mut client, "CREATE TABLE t (id bigint, name text)").await;
    let sql = "INSERT INTO t VALUES (?, ?)";
    let mut statement = client.prepare(sql.to_owned(), None).await.unwrap();
    statement.set_parameters(people(0..5)).unwrap();
    assert_eq!(statement.execute_update().await.unwrap(), 5);
    assert_eq!(shown(&mut client, "SELECT count(*), sum(id) FROM t").await, ["5,10"]);
    let mut statement = client.prepare("DELETE FROM t".to_owned(), None).await.unwrap();
    assert_eq!(statement.execute_update().await.unwrap(), 5);
    assert!(statement.dataset_schema().unwrap().fields().is_empty());
}

#[tokio::test]
async fn wrong_parameters_and_unknown_statements_are_refused() {
    let server = Server::start().await;
    let mut client = server.client().await;
    let sql = "SELECT $1::int + $2::int AS n";
    let mut statement = client.prepare(sql.to_owned(), None).await.unwrap();
    statement.set_parameters(integers("1", &[1])).unwrap();
    let error = from_flight(statement.execute().await.unwrap_err());
    is_error(&error, Code::InvalidArgument, &["2 parameters", "08P01"]);

    let error = client.prepare("SELECT 1; SELECT 2".to_owned(), None).await.unwrap_err();
    is_error(&from_flight(error), Code::InvalidArgument, &["multiple commands"]);
    let error = client.prepare("SELECT * FROM nope".to_owned(), None).await.unwrap_err();
    is_error(&from_flight(error), Code::NotFound, &["nope"]);
    let error = client.begin_transaction().await.unwrap_err();
    is_error(&from_flight(error), Code::Unimplemented, &["transactions", "autocommit"]);
}

#[tokio::test]
async fn a_session_that_keeps_too_much_loses_what_it_used_first() {
    let server = Server::start().await;
    let (mut client, mut other) = (server.client().await, server.client().await);
    let columns: Vec<String> = (0..2000).map(|column| format!("{column} AS c{column}")).collect();
    let wide = format!("SELECT {}", columns.join(", "));
    let others = other.prepare(wide.clone(), None).await.unwrap();
    let mut first = client.prepare(wide.clone(), None).await.unwrap();
    let one = server.engine.kept_bytes() / 2;
    // As many as an eighth of a quarter of the memory for queries has room for.
    let room = server.engine.options().memory_limit_bytes / 32 / one;
    let mut last = None;
    for _ in 0..room {
        last = Some(client.prepare(wide.clone(), None).await.unwrap());
    }
    assert!(server.engine.kept_bytes() <= (room + 1) * one);
    let error = first.execute().await.unwrap_err();
    assert!(error.to_string().contains("26000"), "{error}");
    for mut kept in [last.unwrap(), others] {
        kept.execute().await.unwrap();
    }
}
