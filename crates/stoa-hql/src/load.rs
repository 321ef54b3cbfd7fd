//! Load files to cells: what LOAD DATA INFILE reads.
//!
//! In: bytes of a file or a stream, gzipped or not, and [`LoadOptions`](crate::lang::ast::LoadOptions).
//! Out: batches of cells, unsorted, in the order of the lines, with timestamps that grow from cell
//! to cell; warnings about lines that were passed over; counts.
//!
//! Two formats (reference §1.4): *multi-cell*, where a line is a row and the header names the
//! column of each field; *single-cell*, where a line is a cell. `header` decides which one it is.
//!
//! **Invariants:** memory is bounded by a block, a line ([`LINE_BYTES_MAX`]) and a batch. A line
//! that is passed over is told, with its number; what is not told is loaded. No bytes make the
//! reader panic.
//!
//! Not here: opening files (`files`), writing cells (`store`).

mod families;
mod fields;
mod header;
mod lines;
mod multi_cell;
mod reader;
mod row_key;
mod single_cell;
mod sink;

pub(crate) use families::Families;
pub(crate) use reader::LoadReader;

/// Bytes a line may have.
pub const LINE_BYTES_MAX: usize = 256 << 20;

/// Warnings that are kept; of more, only the number.
const WARNINGS_MAX: usize = 100;

#[cfg(test)]
mod tests;
