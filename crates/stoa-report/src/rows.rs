//! Which rows of some chunks count: a range of them, or a list.
//!
//! Where a table is sorted, what a report asks for lies together. A range needs no memory, loops over
//! it no indirection, and sums over it few additions.

use std::ops::Range;

/// Rows of a chunk, ascending.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ChunkRows<'a> {
    Range(Range<usize>),
    List(&'a [u32]),
}

/// Rows that were selected; the memory of a list is used again for the next ones.
#[derive(Debug, Default)]
pub(crate) struct Selection {
    pub(crate) range: Range<usize>,
    pub(crate) list: Vec<u32>,
    /// Whether it is the list that counts.
    pub(crate) is_list: bool,
}

impl Selection {
    pub(crate) fn rows(&self) -> ChunkRows<'_> {
        match self.is_list {
            true => ChunkRows::of(&self.list),
            false => ChunkRows::Range(self.range.clone()),
        }
    }
}

impl<'a> ChunkRows<'a> {
    /// A range where no row is left out between the first of `list` (ascending) and the last.
    pub(crate) fn of(list: &'a [u32]) -> Self {
        let ends = list.first().zip(list.last()).map(|(a, b)| (*a as usize, *b as usize));
        match ends {
            Some((first, last)) if last - first + 1 == list.len() => Self::Range(first..last + 1),
            _ => Self::List(list),
        }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Range(range) => range.len(),
            Self::List(list) => list.len(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The row at a position below [`len`](Self::len).
    pub(crate) fn at(&self, position: usize) -> usize {
        match self {
            Self::Range(range) => range.start + position,
            Self::List(list) => list[position] as usize,
        }
    }

    /// The rows at some positions.
    pub(crate) fn part(&self, positions: Range<usize>) -> Self {
        match self {
            Self::Range(range) => {
                Self::Range(range.start + positions.start..range.start + positions.end)
            }
            Self::List(list) => Self::of(&list[positions]),
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = usize> + use<'_> {
        let (range, list) = match self {
            Self::Range(range) => (range.clone(), [].as_slice()),
            Self::List(list) => (0..0, *list),
        };
        range.chain(list.iter().map(|row| *row as usize))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_without_gaps_are_ranges() {
        assert_eq!(ChunkRows::of(&[3, 4, 5]), ChunkRows::Range(3..6));
        assert_eq!(ChunkRows::of(&[3, 5]), ChunkRows::List(&[3, 5]));
        assert_eq!(ChunkRows::of(&[]), ChunkRows::List(&[]));
        let list = ChunkRows::List(&[1, 4, 5, 9]);
        assert_eq!(list.part(1..3), ChunkRows::Range(4..6));
        assert_eq!(list.iter().collect::<Vec<_>>(), [1, 4, 5, 9]);
        let range = ChunkRows::Range(2..6);
        assert_eq!((range.part(1..2), range.at(3)), (ChunkRows::Range(3..4), 5));
        assert_eq!(range.iter().collect::<Vec<_>>(), [2, 3, 4, 5]);
    }
}
