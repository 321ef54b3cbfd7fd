//! LZO1X: reading.
//!
//! ```text
//! first byte 18 ..= 255   literals before anything else: byte − 17 of them
//! 1LLDDDSS D8, 01LDDDSS D8   copy 3 ..= 8, distance up to 2 KiB
//! 001LLLLL … D14SS           copy 2 + L, distance up to 16 KiB
//! 0001HLLL … D14SS           copy 2 + L, distance 16 to 48 KiB; distance 16 KiB = the end
//! 0000LLLL …                 literals (after a copy without any), else a copy of 2 or 3
//! ```
//! `…`: a length of 0 goes on in further bytes, 255 for each zero. `SS`: 0 to 3 literals follow.
//! In: a chunk. Out: its content. **Invariant:** nothing outside of the chunk or the content is
//! touched, whatever the bytes say. Source: the Linux kernel's documentation of the LZO stream
//! format.

/// Smallest distance of the longest kind of copy.
const FAR: usize = 16 << 10;

/// Decompresses `input` into the front of `out` and returns how many bytes it holds; or what is
/// wrong.
pub(super) fn decompress(input: &[u8], out: &mut [u8]) -> Result<usize, &'static str> {
    let mut stream = Stream { input, out, read: 0, written: 0 };
    // How many literals came before this instruction; 4 = many.
    let mut literals = 0;
    if let Some(first @ 18..) = input.first() {
        stream.read = 1;
        let count = usize::from(first - 17);
        stream.copy_literals(count)?;
        literals = count.min(4);
    }
    loop {
        let instruction = usize::from(stream.byte()?);
        let (length, distance, after) = match instruction {
            0x40.. => {
                let distance = (instruction >> 2 & 7) + usize::from(stream.byte()?) * 8 + 1;
                ((instruction >> 5) + 1, distance, instruction & 3)
            }
            0x20.. => {
                let length = stream.length(instruction & 31, 31)? + 2;
                let word = stream.word()?;
                (length, (word >> 2) + 1, word & 3)
            }
            0x10.. => {
                let length = stream.length(instruction & 7, 7)? + 2;
                let word = stream.word()?;
                let distance = FAR + ((instruction & 8) << 11) + (word >> 2);
                if distance == FAR {
                    return stream.end(length);
                }
                (length, distance, word & 3)
            }
            _ if literals == 0 => {
                let count = stream.length(instruction, 15)? + 3;
                stream.copy_literals(count)?;
                literals = 4;
                continue;
            }
            _ => {
                let distance = (instruction >> 2) + usize::from(stream.byte()?) * 4 + 1;
                match literals {
                    4 => (3, distance + 2048, instruction & 3),
                    _ => (2, distance, instruction & 3),
                }
            }
        };
        stream.copy_back(length, distance)?;
        stream.copy_literals(after)?;
        literals = after;
    }
}

/// Where reading and writing are.
struct Stream<'a> {
    input: &'a [u8],
    out: &'a mut [u8],
    read: usize,
    written: usize,
}

const CUT_OFF: &str = "cut off";
const TOO_LONG: &str = "does not end within the block size";

impl Stream<'_> {
    fn byte(&mut self) -> Result<u8, &'static str> {
        let byte = self.input.get(self.read).ok_or(CUT_OFF)?;
        self.read += 1;
        Ok(*byte)
    }

    fn word(&mut self) -> Result<usize, &'static str> {
        Ok(usize::from(u16::from_le_bytes([self.byte()?, self.byte()?])))
    }

    /// A length that, where it is 0, goes on above `base` in the bytes that follow.
    fn length(&mut self, length: usize, base: usize) -> Result<usize, &'static str> {
        if length > 0 {
            return Ok(length);
        }
        let mut total = base;
        loop {
            match self.byte()? {
                0 => total += 255,
                last => return Ok(total + usize::from(last)),
            }
        }
    }

    fn copy_literals(&mut self, count: usize) -> Result<(), &'static str> {
        let from = self.input.get(self.read..self.read + count).ok_or(CUT_OFF)?;
        let to = self.out.get_mut(self.written..self.written + count).ok_or(TOO_LONG)?;
        to.copy_from_slice(from);
        (self.read, self.written) = (self.read + count, self.written + count);
        Ok(())
    }

    /// Repeats `length` bytes from `distance` bytes back; those just written may be among them.
    fn copy_back(&mut self, length: usize, distance: usize) -> Result<(), &'static str> {
        let from = self.written.checked_sub(distance).ok_or("points before its start")?;
        let end = self.written + length;
        if end > self.out.len() {
            return Err(TOO_LONG);
        }
        if distance >= length {
            self.out.copy_within(from..from + length, self.written);
        } else {
            for at in self.written..end {
                self.out[at] = self.out[at - distance];
            }
        }
        self.written = end;
        Ok(())
    }

    /// The end marker was read: it has a length of 3, and nothing comes behind it.
    fn end(&self, length: usize) -> Result<usize, &'static str> {
        match length == 3 && self.read == self.input.len() {
            true => Ok(self.written),
            false => Err("wrong end"),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn content(pieces: &[(Vec<u8>, usize)]) -> Vec<u8> {
        pieces.iter().flat_map(|(piece, times)| piece.repeat(*times)).collect()
    }

    proptest! {
        #[test]
        fn what_another_compressor_wrote_is_read(
            pieces in prop::collection::vec((prop::collection::vec(any::<u8>(), 1..60), 1usize..900), 1..20)
        ) {
            let content = content(&pieces);
            let compressed = lzokay_native::compress(&content).unwrap();
            let mut out = vec![0; content.len()];
            prop_assert_eq!(decompress(&compressed, &mut out), Ok(content.len()));
            prop_assert!(out == content);
            let short = &mut out[..content.len() - 1];
            prop_assert_eq!(decompress(&compressed, short), Err(TOO_LONG));
        }

        #[test]
        fn any_bytes_end(input in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = decompress(&input, &mut [0; 1000]);
        }
    }

    #[test]
    fn every_cut_is_an_error() {
        let compressed = lzokay_native::compress(&content(&[(vec![1, 2, 3], 99)])).unwrap();
        let mut out = [0; 300];
        for length in 0..compressed.len() {
            assert!(decompress(&compressed[..length], &mut out).is_err(), "cut to {length}");
        }
        assert!(decompress(&[&compressed[..], &[0]].concat(), &mut out).is_err());
    }

    #[test]
    fn copies_from_before_the_start_are_refused() {
        // A literal, then a copy of 3 from 2,049 back.
        assert_eq!(
            decompress(&[22, 1, 1, 1, 1, 1, 0, 0], &mut [0; 9]),
            Err("points before its start")
        );
    }
}
