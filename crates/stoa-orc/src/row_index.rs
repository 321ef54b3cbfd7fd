//! The row index of a column.
//!
//! In: the bytes of a ROW_INDEX stream. Out: per row group where it starts and what it holds.
//! **Invariant:** an index that was parsed can be asked for everything in it.
//! Not here: what a position means (`decode::position`), which statistics may be trusted (`prune`).

use std::ops::Range;
use std::sync::OnceLock;

use bytes::Bytes;
use prost::Message;

use crate::error::Result;
use crate::message::Budget;
use crate::proto;
use crate::statistics::ColumnStatistics;

/// The row index of a column: positions and statistics per row group. Both stay encoded until they are
/// asked for, which takes a third of the memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RowIndex {
    /// The stream as it was read; it may be a part of something that others hold as well.
    message: Bytes,
    /// Per row group: where its entry is in the message.
    entries: Vec<Range<u32>>,
    /// Of texts that ascend; found out when it is first asked for.
    ascending: OnceLock<Option<AscendingTexts>>,
}

impl RowIndex {
    /// Parses an inflated ROW_INDEX stream, which may take as much memory as `budget` has.
    pub(crate) fn parse(bytes: Bytes, budget: &mut Budget) -> Result<Self> {
        let RowIndexView { entry } = budget.decode(bytes.clone()).map_err(|e| e.at("row index"))?;
        let mut entries = Vec::with_capacity(entry.len());
        for encoded in entry {
            // Looked at as a whole, so that nothing is damaged that is asked for later.
            let checked =
                budget.decode_packed::<RowIndexEntryView>(encoded.clone(), size_of::<u64>());
            checked.map_err(|e| e.at(format!("row index: entry {}", entries.len())))?;
            entries.push(place_in(&bytes, &encoded));
        }
        Ok(Self { message: bytes, entries, ascending: OnceLock::new() })
    }

    /// Number of row groups.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are no row groups.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The positions of a row group in the column's streams.
    pub fn positions(&self, group: usize) -> Option<Vec<u64>> {
        let entry = RowIndexEntryView::decode(self.entry(group)?).ok()?;
        Some(entry.positions)
    }

    /// The statistics of a row group.
    pub fn statistics(&self, group: usize) -> Option<ColumnStatistics> {
        let StatisticsView { statistics } = StatisticsView::decode(self.entry(group)?).ok()?;
        if statistics.is_empty() {
            return None;
        }
        let message = proto::ColumnStatistics::decode(statistics).ok()?;
        Some(ColumnStatistics::from_proto(&message))
    }

    /// Where the texts of row groups are, if they ascend from each row group to the next; `None` if they do
    /// not, or are no texts.
    fn ascending_texts(&self) -> Option<&AscendingTexts> {
        self.ascending.get_or_init(|| AscendingTexts::of(self)).as_ref()
    }

    /// Bounds of the texts of a row group without NULL.
    fn texts(&self, group: usize) -> Option<TextBounds> {
        let StatisticsView { statistics } = StatisticsView::decode(self.entry(group)?).ok()?;
        let TextStatisticsView { texts, has_null } = TextStatisticsView::decode(statistics).ok()?;
        let texts = texts.filter(|_| has_null == Some(false))?;
        let lower = texts.minimum.or(texts.lower_bound)?;
        let upper = texts.maximum.or(texts.upper_bound)?;
        Some(TextBounds {
            group: u32::try_from(group).ok()?,
            lower: place_in(&self.message, &lower),
            upper: place_in(&self.message, &upper),
        })
    }

    fn text(&self, place: &Range<u32>) -> &[u8] {
        &self.message[place.start as usize..place.end as usize]
    }

    /// Leaves out row groups of which it is known that all of their texts are below `low` or above `high`. Whether
    /// the writer's bounds may be trusted is the caller's to know.
    pub(crate) fn leave_out_beyond(
        &self,
        low: Option<&[u8]>,
        high: Option<&[u8]>,
        groups: &mut [bool],
    ) {
        let Some(AscendingTexts(bounds)) = self.ascending_texts() else { return };
        let start = low.map_or(0, |low| bounds.partition_point(|of| self.text(&of.upper) < low));
        let end = match high {
            Some(high) => bounds.partition_point(|of| self.text(&of.lower) <= high),
            None => bounds.len(),
        };
        let beyond = bounds.iter().take(start).chain(bounds.iter().skip(end));
        for of in beyond {
            if let Some(keep) = groups.get_mut(of.group as usize) {
                *keep = false;
            }
        }
    }

    fn entry(&self, group: usize) -> Option<Bytes> {
        let Range { start, end } = self.entries.get(group)?;
        Some(self.message.slice(*start as usize..*end as usize))
    }

    /// Memory this takes, about, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        let ascending = self.ascending.get().and_then(Option::as_ref);
        let ascending = ascending.map_or(0, |texts| texts.0.len() * size_of::<TextBounds>());
        let entries = self.entries.len() * size_of::<Range<u32>>();
        size_of::<Self>() + self.message.len() + entries + ascending
    }
}

/// Row groups without NULL whose texts ascend: neither bound is below that of the row group before. Others
/// may be between them. So a text is found by bisection; to judge each of thousands of row groups takes
/// longer than to read the one that has it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct AscendingTexts(Vec<TextBounds>);

/// Bounds of the texts of a row group: where they are in the message of the index.
#[derive(Clone, Debug, PartialEq, Eq)]
struct TextBounds {
    group: u32,
    lower: Range<u32>,
    upper: Range<u32>,
}

impl AscendingTexts {
    fn of(index: &RowIndex) -> Option<Self> {
        let bounds: Vec<_> = (0..index.len()).filter_map(|group| index.texts(group)).collect();
        let ascend = |a: &TextBounds, b: &TextBounds| {
            index.text(&a.lower) <= index.text(&b.lower)
                && index.text(&a.upper) <= index.text(&b.upper)
        };
        let all = bounds.is_sorted_by(ascend);
        (all && !bounds.is_empty()).then_some(Self(bounds))
    }
}

/// Where in a message of less than 4 GiB a part of it is.
fn place_in(message: &Bytes, part: &Bytes) -> Range<u32> {
    // A part without bytes may be anywhere.
    let start = (part.as_ptr() as usize).wrapping_sub(message.as_ptr() as usize);
    match start.checked_add(part.len()).filter(|end| *end <= message.len()) {
        Some(end) => start as u32..end as u32,
        None => 0..0,
    }
}

/// [`proto::RowIndex`], encoded per row group.
#[derive(Clone, PartialEq, Message)]
struct RowIndexView {
    #[prost(bytes = "bytes", repeated, tag = "1")]
    entry: Vec<Bytes>,
}

/// [`proto::RowIndexEntry`] with encoded statistics.
#[derive(Clone, PartialEq, Message)]
struct RowIndexEntryView {
    #[prost(uint64, repeated, tag = "1")]
    positions: Vec<u64>,
    #[prost(bytes = "bytes", tag = "2")]
    statistics: Bytes,
}

/// [`proto::RowIndexEntry`] without positions.
#[derive(Clone, PartialEq, Message)]
struct StatisticsView {
    #[prost(bytes = "bytes", tag = "2")]
    statistics: Bytes,
}

/// [`proto::ColumnStatistics`] of texts.
#[derive(Clone, PartialEq, Message)]
struct TextStatisticsView {
    #[prost(message, optional, tag = "4")]
    texts: Option<TextBoundsView>,
    #[prost(bool, optional, tag = "10")]
    has_null: Option<bool>,
}

/// [`proto::StringStatistics`] whose texts are parts of the message.
#[derive(Clone, PartialEq, Message)]
struct TextBoundsView {
    #[prost(bytes = "bytes", optional, tag = "1")]
    minimum: Option<Bytes>,
    #[prost(bytes = "bytes", optional, tag = "2")]
    maximum: Option<Bytes>,
    #[prost(bytes = "bytes", optional, tag = "4")]
    lower_bound: Option<Bytes>,
    #[prost(bytes = "bytes", optional, tag = "5")]
    upper_bound: Option<Bytes>,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// An index of row groups with these texts; `None` is NULL.
    fn index(groups: &[Vec<Option<String>>]) -> RowIndex {
        let entry = groups.iter().map(|texts| {
            let values: Vec<&str> = texts.iter().flatten().map(String::as_str).collect();
            let bound = |text: Option<&&str>| text.map(|text| text.as_bytes().to_vec());
            let string_statistics = proto::StringStatistics {
                minimum: bound(values.iter().min()),
                maximum: bound(values.iter().max()),
                ..Default::default()
            };
            let statistics = proto::ColumnStatistics {
                number_of_values: Some(values.len() as u64),
                has_null: Some(values.len() < texts.len()),
                string_statistics: Some(string_statistics),
                ..Default::default()
            };
            proto::RowIndexEntry { positions: vec![1, 2], statistics: Some(statistics) }
        });
        let message = proto::RowIndex { entry: entry.collect() }.encode_to_vec();
        RowIndex::parse(Bytes::from(message), &mut Budget::new(1 << 20)).unwrap()
    }

    fn texts() -> impl Strategy<Value = Vec<Vec<Option<String>>>> {
        let text = prop::option::weighted(0.9, "[a-d]{0,2}");
        (prop::collection::vec(text, 0..40), 1usize..5, any::<bool>()).prop_map(
            |(mut texts, size, is_sorted)| {
                if is_sorted {
                    // NULL at the end, as tables of cells have them.
                    texts.sort_by_key(|text| (text.is_none(), text.clone()));
                }
                texts.chunks(size).map(<[_]>::to_vec).collect()
            },
        )
    }

    proptest! {
        /// Those left out have nothing in between; of those that ascend, all others are left out.
        #[test]
        fn what_is_left_out_is_beyond(
            groups in texts(),
            low in prop::option::of("[a-d]{0,2}"),
            high in prop::option::of("[a-d]{0,2}"),
        ) {
            let index = index(&groups);
            let mut kept = vec![true; groups.len()];
            index.leave_out_beyond(low.as_deref().map(str::as_bytes), high.as_deref().map(str::as_bytes), &mut kept);
            let inside = |text: &Option<String>| text.as_ref().is_none_or(|text| {
                low.as_ref().is_none_or(|low| low <= text) && high.as_ref().is_none_or(|high| text <= high)
            });
            let texts: Vec<_> = groups.iter().flatten().collect();
            let ascend = texts.is_sorted() && !texts.contains(&&None);
            for (texts, kept) in groups.iter().zip(kept) {
                prop_assert!(kept || !texts.iter().any(inside), "{texts:?}");
                // Bounds may have between them what no row has.
                let bounds = [texts.iter().min(), texts.iter().max()];
                let between = bounds.iter().flatten().any(|text| inside(text)) || texts.len() > 1;
                prop_assert!(!kept || !ascend || between, "{texts:?}");
            }
        }
    }

    #[test]
    fn a_text_is_in_one_of_many_row_groups() {
        let group = |at: usize| vec![Some(format!("{at:04}a")), Some(format!("{at:04}z"))];
        let groups: Vec<_> = (0..1_000).map(group).chain([vec![None]]).collect();
        let index = index(&groups);
        let mut kept = vec![true; groups.len()];
        index.leave_out_beyond(Some(b"0421k"), Some(b"0421k"), &mut kept);
        let left: Vec<_> = (0..kept.len()).filter(|group| kept[*group]).collect();
        assert_eq!(left, [421, 1_000]);
        let kept_bytes = index.memory_bytes();
        assert!(kept_bytes > index.message.len() + 1_000 * size_of::<TextBounds>(), "{kept_bytes}");
    }
}
