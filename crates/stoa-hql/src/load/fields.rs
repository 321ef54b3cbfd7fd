//! Lines to fields.

/// `family:qualifier` cut at the first colon; without one, the qualifier is empty.
pub(super) fn split_column(column: &[u8]) -> (&[u8], &[u8]) {
    match memchr::memchr(b':', column) {
        Some(at) => (&column[..at], &column[at + 1..]),
        None => (column, &[]),
    }
}

/// Where the fields of a line start and end; kept from line to line for its memory.
#[derive(Default)]
pub(super) struct Fields {
    ends: Vec<usize>,
}

impl Fields {
    /// Finds the fields of `line`.
    pub(super) fn find(&mut self, line: &[u8], separator: u8) {
        self.ends.clear();
        self.ends.extend(memchr::memchr_iter(separator, line));
        self.ends.push(line.len());
    }

    /// How many there are; an empty line has one.
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// A field of the line that was looked through; none if there are fewer.
    #[inline]
    pub(super) fn get<'a>(&self, line: &'a [u8], index: usize) -> Option<&'a [u8]> {
        let end = *self.ends.get(index)?;
        let start = match index.checked_sub(1) {
            Some(before) => self.ends[before] + 1,
            None => 0,
        };
        line.get(start..end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_what_stands_between_separators() {
        let mut fields = Fields::default();
        let line = b"a,,bc";
        fields.find(line, b',');
        assert_eq!(fields.len(), 3);
        let all: Vec<_> = (0..4).map(|i| fields.get(line, i)).collect();
        assert_eq!(all, [Some(&b"a"[..]), Some(b""), Some(b"bc"), None]);
        assert_eq!(split_column(b"cf:a:b"), (&b"cf"[..], &b"a:b"[..]));
    }
}
