//! Required ranges in, reads out.
//!
//! ```text
//! wanted   ##   ###      ########################              ##
//! read    [##...###]    [############][##########]            [##]
//!          a gap read over   one range split in two            a gap too wide
//! ```
//!
//! **Invariants** (property tests in `tests/plan.rs`): the parts of all reads together are exactly
//! the union of the ranges asked for; reads are sorted and disjoint, none larger than
//! `max_read_bytes`; extra bytes of the plan stay within `max_over_read`.

use std::ops::Range;

use crate::pack::{PlannedRead, allowed_gap, pack, union};
use crate::{PlanOptions, adaptive};

/// Plans reads that cover `ranges` (any order, overlaps allowed, empty ones ignored).
///
/// The reads come sorted and disjoint; their parts together are exactly the union of `ranges`.
pub fn plan(ranges: &[Range<u64>], options: &PlanOptions) -> Vec<PlannedRead> {
    let wanted = union(ranges);
    let max = options.max_read_bytes.max(1);
    match &options.profile {
        Some(profile) => adaptive::plan(&wanted, profile, max, options.max_over_read),
        None => {
            let gap = allowed_gap(&wanted, options.min_seek_size, options.max_over_read);
            pack(&wanted, gap, max)
        }
    }
}
