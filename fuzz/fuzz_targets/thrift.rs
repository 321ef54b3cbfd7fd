//! HiveServer2's messages: any bytes are a message, a part of one, or none; what is one can be read.
#![no_main]

use libfuzzer_sys::fuzz_target;
use stoa_thrift::sasl::{LoginFrame, Plain};
use stoa_thrift::{Extent, Reader, Request, extent, read_header};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(Some((frame, length))) = LoginFrame::read(bytes) {
        assert!(length <= bytes.len());
        let _ = Plain::read(frame.payload);
    }
    match extent(bytes) {
        Ok(Extent::Whole(length)) => {
            let message = &bytes[..length];
            // It ends there whatever follows, and no earlier.
            assert_eq!(extent(message).unwrap(), Extent::Whole(length));
            let mut reader = Reader::new(message);
            let header = read_header(&mut reader).unwrap();
            if let Ok(Err(unknown)) = Request::read(&header, &mut reader) {
                assert!(!unknown.answer(&header).is_empty());
            }
        }
        Ok(Extent::Partial { at_least }) => assert!(at_least > bytes.len()),
        Err(error) => assert_eq!(error.sqlstate(), "08P01"),
    }
});
