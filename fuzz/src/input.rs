//! The fuzzer's bytes, taken apart: choices first, then blocks of bytes with their length in front.
//!
//! What is not there is zero or empty, so that every input means something.

/// What is left of the bytes.
pub struct Input<'a> {
    rest: &'a [u8],
}

impl<'a> Input<'a> {
    /// From the fuzzer.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// A byte.
    pub fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.rest.split_first() else { return 0 };
        self.rest = rest;
        *first
    }

    /// A choice among `count` things.
    pub fn below(&mut self, count: usize) -> usize {
        usize::from(self.byte()) % count.max(1)
    }

    /// Yes or no.
    pub fn flag(&mut self) -> bool {
        self.byte() & 1 == 1
    }

    /// Two bytes, the low one first.
    pub fn word(&mut self) -> u16 {
        u16::from_le_bytes([self.byte(), self.byte()])
    }

    /// A number of any size: mostly a small one.
    pub fn number(&mut self) -> u64 {
        let bytes = usize::from(self.byte() % 9);
        (0..bytes).fold(0, |value, _| value << 8 | u64::from(self.byte()))
    }

    /// Two bytes that say how long it is, then as many bytes, or what is left.
    pub fn block(&mut self) -> &'a [u8] {
        let length = usize::from(self.word()).min(self.rest.len());
        let (block, rest) = self.rest.split_at(length);
        self.rest = rest;
        block
    }

    /// All that is left.
    pub fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.rest)
    }

    /// Whether nothing is left.
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }
}
