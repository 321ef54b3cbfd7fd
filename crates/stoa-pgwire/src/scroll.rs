//! Cursors that go both ways: the rows that went by are kept, so that the query runs once.
//!
//! **Invariant:** rows are numbered from 1; a cursor stands before the first (0), on a row, or behind the last. What is
//! kept counts as what the session keeps (53200 beyond its bound).

use std::time::Instant;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use stoa_error::Result;
use stoa_query::{Kept, Session};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::encode::RowEncoder;
use crate::unsent::UnsentRows;
use crate::wire::stream::{FLUSH_BYTES, Stop, Wire};

/// Where a FETCH or MOVE goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    /// So many rows on.
    Forward(usize),
    /// So many rows back.
    Backward(usize),
    /// To a row by its number; from the end if it is negative.
    Absolute(i64),
    /// To a row by its distance.
    Relative(i64),
}

impl Direction {
    /// The rows of a cursor that only goes forward: how many to leave out, and how many to take. `None` where it
    /// would have to go back.
    pub(crate) fn forward(self) -> Option<(usize, usize)> {
        match self {
            Self::Forward(count) if count > 0 => Some((0, count)),
            Self::Relative(distance) if distance > 0 => {
                Some((usize::try_from(distance).ok()? - 1, 1))
            }
            _ => None,
        }
    }
}

/// The rows of a cursor that was declared with SCROLL.
pub(crate) struct ScrollRows {
    rows: UnsentRows,
    /// All that were read so far, with what they count for.
    batches: Vec<(RecordBatch, Kept)>,
    read: usize,
    has_ended: bool,
    /// The row it stands on; 0 before the first, one more than there are behind the last.
    at: usize,
}

/// The rows that one FETCH gives, by their numbers: `from` first, `to` last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Wanted {
    from: usize,
    to: usize,
    /// Where the cursor stands afterwards.
    at: usize,
}

impl ScrollRows {
    /// From the rows of a query that just began.
    pub(crate) fn new(rows: UnsentRows) -> Self {
        Self { rows, batches: Vec::new(), read: 0, has_ended: false, at: 0 }
    }

    /// The columns.
    pub(crate) fn schema(&self) -> SchemaRef {
        self.rows.schema()
    }

    /// Sends the rows that a FETCH asks for, unless it only moves; gives their number.
    pub(crate) async fn fetch<S: AsyncRead + AsyncWrite + Unpin>(
        &mut self,
        direction: Direction,
        wire: &mut Wire<S>,
        session: &Session,
        encoder: Option<&RowEncoder>,
        deadline: Option<Instant>,
    ) -> Result<u64, Stop> {
        let far = match direction {
            Direction::Forward(count) => self.at.saturating_add(count),
            Direction::Backward(_) => 0,
            Direction::Absolute(number) if number < 0 => usize::MAX,
            Direction::Absolute(number) => usize::try_from(number).unwrap_or(usize::MAX),
            Direction::Relative(distance) => distant(self.at, distance),
        };
        while self.read < far && !self.has_ended {
            match self.rows.next_batch(wire, deadline).await? {
                Some(batch) => {
                    let kept = session.keep(batch.get_array_memory_size())?;
                    self.read += batch.num_rows();
                    self.batches.push((batch, kept));
                }
                None => self.has_ended = true,
            }
        }
        let wanted = wanted(direction, self.at, self.read);
        self.at = wanted.at;
        let Some((from, to)) = wanted.rows() else { return Ok(0) };
        if let Some(encoder) = encoder {
            self.send(from, to, wire, encoder).await?;
        }
        Ok(from.abs_diff(to) as u64 + 1)
    }

    /// Sends rows by their numbers, backwards where `to` is less than `from`.
    async fn send<S: AsyncRead + AsyncWrite + Unpin>(
        &mut self,
        from: usize,
        to: usize,
        wire: &mut Wire<S>,
        encoder: &RowEncoder,
    ) -> Result<(), Stop> {
        let mut starts = Vec::with_capacity(self.batches.len());
        let mut rows = 1;
        for (batch, _) in &self.batches {
            starts.push(rows);
            rows += batch.num_rows();
        }
        let (mut number, is_forward) = (from, from <= to);
        loop {
            let index = starts.partition_point(|start| *start <= number) - 1;
            let Some((batch, _)) = self.batches.get(index) else { return Ok(()) };
            let (columns, start) = (encoder.columns(batch)?, starts[index]);
            let end = start + batch.num_rows() - 1;
            while (start..=end).contains(&number) {
                let row = number - start;
                columns.put_rows(row..row + 1, usize::MAX, wire.output.buffer())?;
                if wire.output.buffer().len() >= FLUSH_BYTES {
                    wire.flush().await?;
                }
                if number == to {
                    return Ok(());
                }
                number = if is_forward { number + 1 } else { number - 1 };
            }
        }
    }
}

impl Wanted {
    fn rows(self) -> Option<(usize, usize)> {
        (self.from > 0).then_some((self.from, self.to))
    }

    fn none(at: usize) -> Self {
        Self { from: 0, to: 0, at }
    }

    fn one(number: usize, rows: usize) -> Self {
        match number {
            0 => Self::none(0),
            number if number > rows => Self::none(rows + 1),
            number => Self { from: number, to: number, at: number },
        }
    }
}

fn distant(at: usize, distance: i64) -> usize {
    let steps = usize::try_from(distance.unsigned_abs()).unwrap_or(usize::MAX);
    if distance < 0 { at.saturating_sub(steps) } else { at.saturating_add(steps) }
}

/// The rows that a FETCH gives from where the cursor stands, of `rows` that are there as far as it goes.
fn wanted(direction: Direction, at: usize, rows: usize) -> Wanted {
    match direction {
        // The row it stands on, again.
        Direction::Forward(0) | Direction::Backward(0) | Direction::Relative(0) => {
            match (1..=rows).contains(&at) {
                true => Wanted { from: at, to: at, at },
                false => Wanted::none(at),
            }
        }
        Direction::Forward(count) => {
            let last = at.saturating_add(count);
            match at >= rows {
                true => Wanted::none(rows + 1),
                false if last <= rows => Wanted { from: at + 1, to: last, at: last },
                false => Wanted { from: at + 1, to: rows, at: rows + 1 },
            }
        }
        Direction::Backward(count) => match (at, at.saturating_sub(count)) {
            (0 | 1, _) => Wanted::none(0),
            (at, 0) => Wanted { from: at - 1, to: 1, at: 0 },
            (at, last) => Wanted { from: at - 1, to: last, at: last },
        },
        Direction::Absolute(number) if number < 0 => {
            let back = usize::try_from(number.unsigned_abs()).unwrap_or(usize::MAX);
            Wanted::one((rows + 1).saturating_sub(back), rows)
        }
        Direction::Absolute(number) => {
            Wanted::one(usize::try_from(number).unwrap_or(usize::MAX), rows)
        }
        Direction::Relative(distance) => Wanted::one(distant(at, distance), rows),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The answers are PostgreSQL 15's, of a cursor over five rows, one after another.
    #[test]
    fn a_cursor_goes_where_postgresqls_goes() {
        use Direction::{Absolute, Backward, Forward, Relative};
        let mut at = 0;
        for (direction, rows) in [
            (Backward(1), None),
            (Forward(2), Some((1, 2))),
            (Forward(0), Some((2, 2))),
            (Backward(1), Some((1, 1))),
            (Backward(1), None),
            (Forward(9), Some((1, 5))),
            (Forward(1), None),
            (Backward(2), Some((5, 4))),
            (Absolute(-1), Some((5, 5))),
            (Absolute(1), Some((1, 1))),
            (Relative(2), Some((3, 3))),
            (Relative(-1), Some((2, 2))),
            (Absolute(9), None),
            (Backward(usize::MAX), Some((5, 1))),
            (Relative(0), None),
            (Absolute(-9), None),
            (Forward(usize::MAX), Some((1, 5))),
            (Absolute(0), None),
            (Relative(3), Some((3, 3))),
            (Relative(9), None),
            (Relative(-1), Some((5, 5))),
        ] {
            let wanted = wanted(direction, at, 5);
            assert_eq!(wanted.rows(), rows, "{direction:?} from {at}");
            at = wanted.at;
        }
    }

    #[test]
    fn some_directions_only_go_forward() {
        assert_eq!(Direction::Forward(3).forward(), Some((0, 3)));
        assert_eq!(Direction::Relative(3).forward(), Some((2, 1)));
        for direction in [Direction::Forward(0), Direction::Backward(1), Direction::Absolute(1)] {
            assert_eq!(direction.forward(), None);
        }
    }
}
