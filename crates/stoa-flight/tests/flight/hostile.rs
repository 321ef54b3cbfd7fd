//! Bytes that no honest client sends.

use arrow_flight::encode::FlightDataEncoderBuilder;
use arrow_flight::sql::{Any, ProstMessageExt};
use arrow_flight::{Action, FlightData, FlightDescriptor, Ticket};
use futures::{StreamExt, TryStreamExt, stream};
use prost::Message;
use stoa_flight::FlightOptions;
use tonic::{Code, IntoRequest};

use crate::support::*;

/// Bytes that are the same in every run.
fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let next = std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    });
    next.take(length).collect()
}

async fn messages() -> Vec<FlightData> {
    let command = into_table("t", APPEND).as_any().encode_to_vec();
    FlightDataEncoderBuilder::new()
        .with_flight_descriptor(Some(FlightDescriptor::new_cmd(command)))
        .build(stream::iter([Ok(people(0..50))]))
        .try_collect()
        .await
        .unwrap()
}

#[tokio::test]
async fn damaged_batches_end_their_call_and_nothing_else() {
    let server = Server::start().await;
    let mut client = server.client().await;
    run(&mut client, "CREATE TABLE t (id bigint, name text)").await;
    let good = messages().await;
    let (mut refused, mut taken) = (0, 0);
    for seed in 0..400u64 {
        let mut messages = good.clone();
        let at = (seed % messages.len() as u64) as usize;
        let message = &mut messages[at];
        let in_header = seed % 3 != 0;
        let mut bytes =
            if in_header { message.data_header.to_vec() } else { message.data_body.to_vec() };
        for change in noise(seed, 6).chunks(2) {
            if let Some(length) = bytes.len().checked_sub(1).filter(|length| *length > 0) {
                bytes[(usize::from(change[0]) * 7 + seed as usize) % length] = change[1];
            }
        }
        if seed % 5 == 0 {
            bytes.truncate(bytes.len() / 2);
        }
        match in_header {
            true => message.data_header = bytes.into(),
            false => message.data_body = bytes.into(),
        }
        let put = client.do_put(stream::iter(messages)).await;
        match put {
            Ok(answers) => {
                let _: Vec<_> = answers.collect().await;
                taken += 1;
            }
            Err(error) => {
                let error = from_flight(error);
                assert_ne!(error.code(), Code::Internal, "seed {seed}: {error}");
                assert_ne!(error.code(), Code::Unknown, "seed {seed}: {error}");
                refused += 1;
            }
        }
    }
    assert!(refused > 100, "{refused} refused, {taken} taken");
    // The connection and the server still work.
    let before = query(&mut client, "SELECT count(*) FROM t").await.unwrap();
    let put = client.do_put(stream::iter(good)).await.unwrap();
    assert_eq!(put.count().await, 1);
    assert_ne!(lines(&before), shown(&mut client, "SELECT count(*) FROM t").await);
}

#[tokio::test]
async fn commands_tickets_and_actions_of_noise_are_refused() {
    let server = Server::start().await;
    let mut client = server.client().await;
    let known = |seed: u64| {
        let commands = [
            "CommandStatementQuery",
            "CommandGetTables",
            "TicketStatementQuery",
            "CommandPreparedStatementQuery",
            "CommandStatementIngest",
            "CommandGetSqlInfo",
        ];
        let name = commands[seed as usize % commands.len()];
        let type_url = format!("type.googleapis.com/arrow.flight.protocol.sql.{name}");
        Any { type_url, value: noise(seed, 40).into() }.encode_to_vec()
    };
    for seed in 0..60 {
        for bytes in [noise(seed, 1 + seed as usize), known(seed)] {
            let descriptor = FlightDescriptor::new_cmd(bytes.clone());
            let inner = client.inner_mut();
            let refused = inner.get_flight_info(descriptor.clone().into_request()).await;
            assert_ne!(refused.err().map(|e| e.code()), Some(Code::Internal), "{seed}");
            let refused = inner.get_schema(descriptor.clone().into_request()).await;
            assert_ne!(refused.err().map(|e| e.code()), Some(Code::Internal), "{seed}");
            let refused = inner.do_get(Ticket::new(bytes.clone()).into_request()).await;
            assert_ne!(refused.err().map(|e| e.code()), Some(Code::Internal), "{seed}");
            for name in ["CreatePreparedStatement", "CancelFlightInfo", "SetSessionOptions", "?"] {
                let action = Action::new(name, bytes.clone());
                let refused = inner.do_action(action.into_request()).await;
                assert_ne!(refused.err().map(|e| e.code()), Some(Code::Internal), "{seed}");
            }
            let put = FlightData::new().with_descriptor(descriptor);
            let refused = inner.do_put(stream::iter([put])).await;
            assert_ne!(refused.err().map(|e| e.code()), Some(Code::Internal), "{seed}");
        }
    }
    assert_eq!(shown(&mut client, "SELECT 1").await, ["1"]);
}

#[tokio::test]
async fn a_message_that_is_too_large_is_refused_by_name() {
    let options = FlightOptions { message_bytes_max: 64 << 10, ..FlightOptions::default() };
    let server = Server::start_with(options).await;
    let mut client = server.client().await;
    run(&mut client, "CREATE TABLE t (id bigint, name text)").await;
    let error = ingest(&mut client, into_table("t", APPEND), vec![people(0..20_000)]).await;
    is_error(&error.unwrap_err(), Code::InvalidArgument, &["65536", "fewer rows", "54000"]);
    assert_eq!(shown(&mut client, "SELECT count(*) FROM t").await, ["0"]);
}
