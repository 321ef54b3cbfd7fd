use std::sync::Arc;

use iceberg::spec::{
    FormatVersion, NestedField, Operation, PrimitiveType, Schema, Snapshot, SortOrder, Summary,
    TableMetadataBuilder, Type, UnboundPartitionSpec,
};

use super::*;

const DAY: i64 = 24 * 60 * 60 * 1000;
const MINUTE: i64 = 60 * 1000;

/// From the start of a history to the present.
const PAST: i64 = 200 * DAY;

/// Builds tables whose snapshots were made at chosen times.
struct History {
    metadata: TableMetadata,
    start: i64,
}

impl History {
    fn new() -> Self {
        let id = NestedField::required(1, "id", Type::Primitive(PrimitiveType::Long));
        let schema = Schema::builder().with_fields([Arc::new(id)]).build().unwrap();
        let builder = TableMetadataBuilder::new(
            schema,
            UnboundPartitionSpec::default(),
            SortOrder::unsorted_order(),
            "file:///t".to_owned(),
            FormatVersion::V2,
            HashMap::new(),
        );
        let metadata = builder.unwrap().build().unwrap().metadata;
        // Made long ago: the library stamps changes of references with the present.
        let start = metadata.last_updated_ms() - PAST;
        let mut json = serde_json::to_value(metadata).unwrap();
        json["last-updated-ms"] = start.into();
        Self { metadata: serde_json::from_value(json).unwrap(), start }
    }

    fn builder(&self) -> TableMetadataBuilder {
        TableMetadataBuilder::new_from_metadata(self.metadata.clone(), None)
    }

    /// Commits snapshot `id` on top of `parent`, `after` the start, to `branch`.
    fn commit(mut self, branch: &str, id: i64, parent: Option<i64>, after: i64) -> Self {
        let summary =
            Summary { operation: Operation::Append, additional_properties: HashMap::new() };
        let snapshot = Snapshot::builder()
            .with_snapshot_id(id)
            .with_parent_snapshot_id(parent)
            .with_sequence_number(self.metadata.next_sequence_number())
            .with_timestamp_ms(self.start + after)
            .with_manifest_list(format!("file:///t/{id}.avro"))
            .with_summary(summary)
            .build();
        let builder = self.builder().set_branch_snapshot(snapshot, branch).unwrap();
        self.metadata = builder.build().unwrap().metadata;
        self
    }

    fn refer(mut self, name: &str, id: i64, retention: SnapshotRetention) -> Self {
        let reference = SnapshotReference::new(id, retention);
        self.metadata = self.builder().set_ref(name, reference).unwrap().build().unwrap().metadata;
        self
    }

    /// What goes at a moment after the start, if snapshots stay for `age` and `least` of them.
    fn gone(&self, now: i64, age: i64, least: usize) -> Vec<i64> {
        let now = self.start + now;
        let keep = Keep { since_ms: now - age, least, crowd: None };
        let mut gone = choose(&self.metadata, now, keep, &HashSet::new()).unwrap();
        gone.sort_unstable();
        gone
    }
}

fn three() -> History {
    History::new().commit(MAIN_BRANCH, 1, None, 0).commit(MAIN_BRANCH, 2, Some(1), 10 * DAY).commit(
        MAIN_BRANCH,
        3,
        Some(2),
        11 * DAY,
    )
}

#[test]
fn an_age_counts_from_when_a_snapshot_was_replaced() {
    let history = three();
    // Replaced a minute ago, however old it was then.
    assert_eq!(history.gone(10 * DAY + MINUTE, 2 * MINUTE, 1), [0i64; 0]);
    assert_eq!(history.gone(10 * DAY + 3 * MINUTE, 2 * MINUTE, 1), [1]);
    assert_eq!(history.gone(11 * DAY + MINUTE, 2 * MINUTE, 1), [1]);
    assert_eq!(history.gone(20 * DAY, 2 * MINUTE, 1), [1, 2]);
}

#[test]
fn a_least_number_stays() {
    let history = three();
    assert_eq!(history.gone(100 * DAY, 0, 0), [1, 2]);
    assert_eq!(history.gone(100 * DAY, 0, 2), [1]);
    assert_eq!(history.gone(100 * DAY, 0, 9), [0i64; 0]);
    assert_eq!(History::new().gone(100 * DAY, 0, 1), [0i64; 0]);
}

#[test]
fn tags_and_branches_keep_what_they_need() {
    let tagged = three().refer("eom", 1, SnapshotRetention::Tag { max_ref_age_ms: None });
    assert_eq!(tagged.gone(100 * DAY, 0, 1), [2]);
    let branch = SnapshotRetention::Branch {
        min_snapshots_to_keep: Some(2),
        max_snapshot_age_ms: None,
        max_ref_age_ms: None,
    };
    let audit = three().commit("audit", 4, Some(2), 12 * DAY).refer("audit", 4, branch);
    // Two of the branch: 4 and its parent 2.
    assert_eq!(audit.gone(100 * DAY, 0, 1), [1]);
}

#[test]
fn what_was_rolled_back_goes_after_its_time() {
    let main = SnapshotRetention::Branch {
        min_snapshots_to_keep: None,
        max_snapshot_age_ms: None,
        max_ref_age_ms: None,
    };
    let back = three().refer(MAIN_BRANCH, 2, main).commit(MAIN_BRANCH, 5, Some(2), PAST + DAY);
    assert_eq!(back.gone(PAST + 100 * DAY, 0, 2), [1, 3]);
    assert_eq!(back.gone(PAST + 100 * DAY, 150 * DAY, 2), [1]);
}
