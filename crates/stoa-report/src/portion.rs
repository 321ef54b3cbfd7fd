//! Files in portions, so that a large report does not have all of its chunks in memory at once.
//!
//! In: the row groups that a report looks at. Out: the same, a portion at a time: in nearly all
//! reports there is only one.

use std::sync::Arc;

use crate::files::FileTail;
use crate::report::{Report, ValueKind, kind_of};
use crate::view::ViewFile;

/// Decoded bytes of a portion, about; a row group may be more.
const PORTION_BYTES: usize = 32 << 20;

/// Bytes of a short text and what belongs to it.
const TEXT_BYTES: u64 = 24;

/// How much smaller files are than their values, about.
const COMPRESSION: u64 = 4;

/// The row groups of one file that a report looks at.
pub(crate) struct FileWork<'a> {
    pub(crate) file: &'a ViewFile,
    pub(crate) tail: Arc<FileTail>,
    pub(crate) groups: Vec<u32>,
}

/// Takes the next portion out of `files`; `None` where nothing is left.
pub(crate) fn next_portion<'a>(
    files: &mut Vec<FileWork<'a>>,
    report: &Report,
) -> Option<Vec<FileWork<'a>>> {
    let mut bytes = 0_usize;
    for index in 0..files.len() {
        let work = &mut files[index];
        for at in 0..work.groups.len() {
            bytes = bytes.saturating_add(work.bytes_of([work.groups[at]].into_iter(), report));
            if bytes <= PORTION_BYTES || (index, at) == (0, 0) {
                continue;
            }
            let groups = work.groups.split_off(at);
            let rest = FileWork { file: work.file, tail: work.tail.clone(), groups };
            let others = files.split_off(index + 1);
            let portion = std::mem::take(files);
            files.push(rest);
            files.extend(others);
            return Some(portion);
        }
    }
    Some(std::mem::take(files)).filter(|portion| !portion.is_empty())
}

impl FileWork<'_> {
    /// Bytes of a report's columns in some row groups once they are decoded, about.
    pub(crate) fn bytes_of(&self, groups: impl Iterator<Item = u32>, report: &Report) -> usize {
        let rows = groups.filter_map(|group| self.tail.groups.get(group as usize));
        let rows: u64 = rows.map(|place| u64::from(place.rows)).sum();
        if rows == 0 {
            return 0;
        }
        let row_bytes = self.file.file.file_bytes / self.file.file.rows.max(1);
        let width = report.columns.iter().map(|column| match kind_of(&column.data_type) {
            Some(ValueKind::Text) => TEXT_BYTES + COMPRESSION * row_bytes,
            Some(ValueKind::Decimal) => 16,
            _ => 8,
        });
        usize::try_from(rows.saturating_mul(width.sum())).unwrap_or(usize::MAX)
    }
}
