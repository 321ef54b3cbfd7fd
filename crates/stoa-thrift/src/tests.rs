//! Bytes as clients send them, and bytes as nobody should.

use proptest::prelude::*;

use crate::reader::{Reader, VALUES_MAX};
use crate::sasl::{COMPLETE, LoginFrame, OK, Plain, START};
use crate::{
    Answer, Extent, Failure, FetchKind, Handle, Header, Orientation, Request, Writer, extent,
    read_header,
};

/// OpenSession as PyHive 0.7.0 sends it (V6, configuration unprefixed), as recorded.
const PYHIVE_OPEN: &[u8] = b"\x80\x01\x00\x01\x00\x00\x00\x0bOpenSession\x00\x00\x00\x00\
    \x0c\x00\x01\x08\x00\x01\x00\x00\x00\x05\x0b\x00\x02\x00\x00\x00\x02me\
    \x0d\x00\x04\x0b\x0b\x00\x00\x00\x01\x00\x00\x00\x01k\x00\x00\x00\x01v\x00\x00";

fn read(bytes: &[u8]) -> (Header, Request) {
    assert_eq!(extent(bytes).unwrap(), Extent::Whole(bytes.len()));
    let mut reader = Reader::new(bytes);
    let header = read_header(&mut reader).unwrap();
    let request = Request::read(&header, &mut reader).unwrap().unwrap();
    (header, request)
}

fn call(name: &str, arguments: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x80, 1, 0, 1];
    bytes.extend_from_slice(&(name.len() as u32).to_be_bytes());
    bytes.extend_from_slice(name.as_bytes());
    bytes.extend_from_slice(&[0, 0, 0, 7]);
    bytes.extend_from_slice(arguments);
    bytes
}

fn handle() -> Handle {
    Handle { guid: [0xab; 16], secret: [0xff; 16] }
}

/// The arguments of a call on a handle, with more fields.
fn on_handle(more: impl FnOnce(&mut Writer)) -> Vec<u8> {
    let mut out = Writer::new();
    out.structure(1, |out| {
        out.structure(1, |out| handle().write(1, out));
        more(out);
    });
    out.stop();
    out.into_bytes()
}

#[test]
fn a_session_is_opened_as_pyhive_does() {
    let (header, request) = read(PYHIVE_OPEN);
    assert_eq!((header.name.as_str(), header.sequence), ("OpenSession", 0));
    let expected = Request::OpenSession {
        protocol: 5,
        user: Some("me".to_owned()),
        password: None,
        configuration: vec![("k".to_owned(), "v".to_owned())],
    };
    assert_eq!(request, expected);
}

#[test]
fn calls_are_read_with_their_fields() {
    let execute = call(
        "ExecuteStatement",
        &on_handle(|out| {
            out.text_field(2, "SELECT 1");
            out.map_field(3, crate::Kind::Bytes, 0);
            out.bool_field(4, true);
            out.i64_field(5, 30);
        }),
    );
    let expected = Request::ExecuteStatement {
        session: Some(handle()),
        statement: "SELECT 1".to_owned(),
        run_async: true,
        timeout_s: 30,
    };
    assert_eq!(read(&execute).1, expected);
    let fetch = call(
        "FetchResults",
        &on_handle(|out| {
            out.i32_field(2, 4);
            out.i64_field(3, 1000);
            out.i16_field(4, 1);
        }),
    );
    let expected = Request::FetchResults {
        operation: Some(handle()),
        orientation: Orientation::First,
        rows_max: 1000,
        kind: FetchKind::Log,
    };
    assert_eq!(read(&fetch).1, expected);
    let tables = call(
        "GetTables",
        &on_handle(|out| {
            out.text_field(3, "default");
            out.text_field(4, "%");
            out.texts_field(5, &["TABLE"]);
        }),
    );
    let expected = Request::GetTables {
        session: Some(handle()),
        schema: Some("default".to_owned()),
        table: Some("%".to_owned()),
        types: Some(vec!["TABLE".to_owned()]),
    };
    assert_eq!(read(&tables).1, expected);
}

#[test]
fn calls_that_nobody_knows_are_answered_as_such() {
    let bytes = call("GetLog", &on_handle(|_| {}));
    assert_eq!(extent(&bytes).unwrap(), Extent::Whole(bytes.len()));
    let mut reader = Reader::new(&bytes);
    let header = read_header(&mut reader).unwrap();
    let unknown = Request::read(&header, &mut reader).unwrap().unwrap_err();
    let answer = unknown.answer(&header);
    assert_eq!(&answer[..4], [0x80, 1, 0, 3]);
    assert!(answer.ends_with(&[8, 0, 2, 0, 0, 0, 1, 0]));
}

#[test]
fn a_message_ends_where_it_ends() {
    for end in 0..PYHIVE_OPEN.len() {
        match extent(&PYHIVE_OPEN[..end]).unwrap() {
            Extent::Partial { at_least } => {
                assert!(at_least > end && at_least <= PYHIVE_OPEN.len(), "{end} {at_least}");
            }
            whole => panic!("{end} {whole:?}"),
        }
    }
    let twice = [PYHIVE_OPEN, PYHIVE_OPEN].concat();
    assert_eq!(extent(&twice).unwrap(), Extent::Whole(PYHIVE_OPEN.len()));
}

#[test]
fn bytes_that_no_client_sends_are_refused() {
    let refused = |bytes: &[u8]| assert_eq!(extent(bytes).unwrap_err().sqlstate(), "08P01");
    refused(b"GET / HTTP/1.1\r\n");
    // An answer, a name of 4 GiB, a negative length, an unknown type.
    refused(b"\x80\x01\x00\x02\x00\x00\x00\x01a\x00\x00\x00\x00\x00");
    refused(b"\x80\x01\x00\x01\x7f\xff\xff\xff");
    refused(&call("a", b"\x0b\x00\x01\xff\xff\xff\xff"));
    refused(&call("a", b"\x63\x00\x01"));
    // Structs without end, and more values than anybody walks over.
    refused(&call("a", &b"\x0c\x00\x01".repeat(100)));
    let count = (VALUES_MAX as u32 + 1).to_be_bytes();
    refused(&call("a", &[&b"\x0f\x00\x01\x0b"[..], &count].concat()));
    // Two thousand million numbers are only waited for.
    let numbers = call("a", b"\x0f\x00\x01\x0a\x7f\xff\xff\xff");
    assert!(
        matches!(extent(&numbers).unwrap(), Extent::Partial { at_least } if at_least > 1 << 33)
    );
}

#[test]
fn handles_of_other_lengths_are_none() {
    let mut out = Writer::new();
    out.structure(1, |out| {
        out.structure(1, |out| {
            out.structure(1, |out| {
                out.bytes_field(1, &[1; 15]);
                out.bytes_field(2, &[2; 16]);
            });
        });
    });
    out.stop();
    let bytes = call("CloseSession", &out.into_bytes());
    assert_eq!(read(&bytes).1, Request::CloseSession(None));
}

#[test]
fn failures_have_no_information_messages() {
    let failure = Failure { message: "m".to_owned(), sql_state: "42S02", code: 10001 };
    let header = Header { name: "ExecuteStatement".to_owned(), sequence: 3 };
    let bytes = Answer::Failed(failure).write(&header);
    let expected = b"\x80\x01\x00\x02\x00\x00\x00\x10ExecuteStatement\x00\x00\x00\x03\
        \x0c\x00\x00\x0c\x00\x01\x08\x00\x01\x00\x00\x00\x03\x0b\x00\x03\x00\x00\x00\x0542S02\
        \x08\x00\x04\x00\x00\x27\x11\x0b\x00\x05\x00\x00\x00\x01m\x00\x00\x00";
    assert_eq!(bytes, expected);
}

#[test]
fn logins_of_java_and_python_are_read() {
    let start = LoginFrame::write(START, b"PLAIN");
    let (frame, used) = LoginFrame::read(&start).unwrap().unwrap();
    assert_eq!((frame.status, frame.payload, used), (START, &b"PLAIN"[..], start.len()));
    for status in [OK, COMPLETE] {
        let bytes = LoginFrame::write(status, b"\0me\0secret");
        let (frame, _) = LoginFrame::read(&bytes).unwrap().unwrap();
        let plain = Plain::read(frame.payload).unwrap();
        assert_eq!((plain.user.as_str(), plain.password.as_str()), ("me", "secret"));
        assert!(LoginFrame::read(&bytes[..bytes.len() - 1]).unwrap().is_none());
    }
    assert!(LoginFrame::read(&[1, 0x7f, 0xff, 0xff, 0xff]).is_err());
    assert!(LoginFrame::read(&[1, 0xff, 0xff, 0xff, 0xff]).is_err());
    for wrong in [&b""[..], b"\0me", b"\0me\0a\0b", b"\0\xff\0x"] {
        assert!(Plain::read(wrong).is_err(), "{wrong:?}");
    }
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = extent(&bytes);
        let _ = LoginFrame::read(&bytes);
        for name in ["OpenSession", "FetchResults", "GetTables", "ExecuteStatement"] {
            let header = Header { name: name.to_owned(), sequence: 0 };
            let _ = Request::read(&header, &mut Reader::new(&bytes));
        }
    }

    #[test]
    fn damaged_messages_are_messages_or_errors(at in 0..PYHIVE_OPEN.len(), byte in any::<u8>()) {
        let mut bytes = PYHIVE_OPEN.to_vec();
        bytes[at] = byte;
        if let Ok(Extent::Whole(length)) = extent(&bytes) {
            let mut reader = Reader::new(&bytes[..length]);
            let header = read_header(&mut reader).unwrap();
            // What is a message can be read, or says why not.
            let _ = Request::read(&header, &mut reader);
        }
    }
}
