//! Rows in Arrow's stream format: all of them, or none.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{DataType, Field, Schema};
use reqwest::Method;
use serde_json::json;

use crate::support::Server;

/// Rows of a batch.
const ROWS: i64 = 1000;

/// A stream of four batches, and where the message of each begins.
fn stream() -> (Vec<u8>, Vec<usize>) {
    let field = |name: &str| Field::new(name, DataType::Int64, false);
    let schema = Arc::new(Schema::new(vec![field("a"), field("b")]));
    let mut writer = StreamWriter::try_new(Vec::new(), &schema).unwrap();
    let mut begins = Vec::new();
    for part in 0..4 {
        begins.push(writer.get_ref().len());
        let numbers = part * ROWS..(part + 1) * ROWS;
        let column: ArrayRef = Arc::new(Int64Array::from_iter_values(numbers));
        let columns = vec![Arc::clone(&column), column];
        let batch = RecordBatch::try_new(Arc::clone(&schema), columns);
        writer.write(&batch.unwrap()).unwrap();
    }
    (writer.into_inner().unwrap(), begins)
}

/// Where the message that begins at `begin` says how many bytes its body has, and where the body begins.
fn body_of(stream: &[u8], begin: usize) -> (usize, usize) {
    let metadata = begin + 8;
    let bytes = u32::from_le_bytes(stream[begin + 4..metadata].try_into().unwrap());
    let body = metadata + usize::try_from(bytes).unwrap();
    let message = arrow_ipc::root_as_message(&stream[metadata..body]).unwrap();
    let length = message.bodyLength().to_le_bytes();
    let windows = stream[metadata..body].windows(length.len()).enumerate();
    let found: Vec<usize> = windows.filter(|(_, w)| *w == length).map(|(at, _)| at).collect();
    assert_eq!(found.len(), 1, "no other number is that of the body's bytes");
    (metadata + found[0], body)
}

async fn send(server: &Server, body: Vec<u8>) -> u16 {
    let request = server.request(Method::POST, "/v1/tables/public/t/rows");
    let request = request.header("content-type", "application/vnd.apache.arrow.stream");
    request.body(body).send().await.unwrap().status().as_u16()
}

#[tokio::test]
async fn a_damaged_batch_leaves_none_of_those_before() {
    let server = Server::start().await;
    server.sql("CREATE TABLE t (a bigint, b bigint)").await;
    let (good, begins) = stream();
    let third = begins[2];
    let mut damaged = Vec::new();

    // A body that is shorter than its columns.
    let mut short = good.clone();
    let (at, body) = body_of(&short, third);
    short[at..at + 8].copy_from_slice(&8_i64.to_le_bytes());
    damaged.push(("short body", short));
    // The same, and the rest fits again.
    let mut cut = good.clone();
    cut[at..at + 8].copy_from_slice(&0_i64.to_le_bytes());
    let body_end = begins[3];
    cut.drain(body..body_end);
    damaged.push(("no body", cut));
    // Metadata that is none.
    let mut garbage = good.clone();
    garbage[third + 8..third + 40].fill(0xa5);
    damaged.push(("garbage for metadata", garbage));
    // The end within a batch.
    damaged.push(("cut off", good[..body_end - 100].to_vec()));

    for (what, body) in damaged {
        let status = send(&server, body).await;
        assert!(status >= 400, "{what}: {status}");
        let rows = &server.sql("SELECT count(*) FROM t").await["rows"];
        assert_eq!(rows, &json!([[0]]), "{what}");
    }
    assert_eq!(send(&server, good).await, 200);
    assert_eq!(server.sql("SELECT count(*) FROM t").await["rows"], json!([[4 * ROWS]]));
}
