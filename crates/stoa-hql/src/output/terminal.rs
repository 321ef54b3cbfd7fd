//! Text for a terminal, which takes control characters for commands.
//!
//! In: bytes, cut anywhere. Out: UTF-8 text without control characters but line feed and TAB; the
//! others, those of C1, and bytes that are not UTF-8 are written as `\x1b`.

use std::fmt::Write as _;

/// Makes control characters readable.
#[derive(Debug, Default)]
pub(super) struct TerminalText {
    /// The start of a character whose other bytes did not come yet.
    held: Vec<u8>,
}

impl TerminalText {
    /// What is shown of `bytes` now.
    pub(super) fn push(&mut self, bytes: &[u8]) -> String {
        let joined;
        let bytes = match self.held.is_empty() {
            true => bytes,
            false => {
                joined = [std::mem::take(&mut self.held).as_slice(), bytes].concat();
                &joined
            }
        };
        let whole = bytes.len() - cut_character(bytes);
        self.held.extend_from_slice(&bytes[whole..]);
        readable(&bytes[..whole])
    }

    /// What is shown of bytes that nothing follows.
    pub(super) fn finish(&mut self) -> String {
        readable(&std::mem::take(&mut self.held))
    }
}

/// How many bytes at the end are the start of a character.
fn cut_character(bytes: &[u8]) -> usize {
    let at_end = &bytes[bytes.len().saturating_sub(3)..];
    let starts = (1..=at_end.len()).find(|back| at_end[at_end.len() - back] >= 0xc0);
    let Some(back) = starts else { return 0 };
    match std::str::from_utf8(&at_end[at_end.len() - back..]) {
        Err(error) if error.error_len().is_none() => back,
        _ => 0,
    }
}

/// `bytes` with control characters written out.
pub(super) fn readable(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '\n' | '\t' => text.push(character),
                _ if character.is_control() => push_code(u32::from(character), &mut text),
                _ => text.push(character),
            }
        }
        chunk.invalid().iter().for_each(|byte| push_code(u32::from(*byte), &mut text));
    }
    text
}

fn push_code(code: u32, text: &mut String) {
    let _ = write!(text, "\\x{code:02x}");
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn in_pieces(bytes: &[u8], piece: usize) -> String {
        let mut terminal = TerminalText::default();
        let mut text: String = bytes.chunks(piece).map(|part| terminal.push(part)).collect();
        text.push_str(&terminal.finish());
        text
    }

    #[test]
    fn a_terminal_gets_no_commands() {
        for (bytes, shown) in [
            ("r\ta\tgr\u{fc}n \u{1f34b}\n".as_bytes(), "r\ta\tgr\u{fc}n \u{1f34b}\n"),
            (b"\x1b]0;title\x07\x1b[2J\r", "\\x1b]0;title\\x07\\x1b[2J\\x0d"),
            (b"\x7f \xc2\x9b2J \x9b2J \xff\xe2\x82", "\\x7f \\x9b2J \\x9b2J \\xff\\xe2\\x82"),
        ] {
            assert_eq!(in_pieces(bytes, bytes.len()), shown);
        }
    }

    proptest! {
        #[test]
        fn cuts_change_nothing(
            text in "[a\\x1b\u{9b}\u{fc}\u{20ac}\u{1f34b}]{0,20}", more in any::<Vec<u8>>(), piece in 1_usize..9,
        ) {
            let bytes = [text.as_bytes(), &more, text.as_bytes()].concat();
            let shown = in_pieces(&bytes, piece);
            prop_assert_eq!(&shown, &readable(&bytes));
            prop_assert!(shown.chars().all(|c| !c.is_control() || c == '\n' || c == '\t'));
        }
    }
}
