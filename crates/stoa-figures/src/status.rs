//! Figures in JSON.

use serde_json::{Map, Value as Json, json};

use crate::group::Group;
use crate::seen::{Shape, Viewer};
use crate::snapshot::{Snapshot, Visitor};
use crate::value::Value;

/// The document of `/v1/status` for `viewer`. What others may not see is null, or left out of lists; of
/// groups that are [`Seen::Granted`](crate::Seen::Granted), `snapshot` has the rows for this viewer.
pub fn status(snapshot: &Snapshot, viewer: Viewer<'_>) -> Json {
    let mut writer = Writer { viewer, document: Map::new() };
    snapshot.visit(&mut writer);
    Json::Object(writer.document)
}

/// The figures of one row as an object's members.
pub fn members<S>(group: &Group<S>, row: &S, viewer: Viewer<'_>) -> Map<String, Json> {
    let member = |figure| to_json(Group::value_for(figure, row, viewer));
    group.shown().map(|figure| (figure.name.to_owned(), member(figure))).collect()
}

struct Writer<'a> {
    viewer: Viewer<'a>,
    document: Map<String, Json>,
}

impl Visitor for Writer<'_> {
    fn visit<S>(&mut self, group: &Group<S>, rows: &[S]) {
        if !group.is_in_status {
            return;
        }
        let seen = group.seen_rows(rows, self.viewer);
        let mut objects = seen.into_iter().map(|row| members(group, row, self.viewer));
        let value = match group.shape {
            Shape::Top => return self.document.extend(objects.next().unwrap_or_default()),
            Shape::One | Shape::Maybe => objects.next().map_or(Json::Null, Json::Object),
            Shape::Many => objects.map(Json::Object).collect::<Vec<_>>().into(),
        };
        self.document.insert(group.name.to_owned(), value);
    }
}

fn to_json(value: Value<'_>) -> Json {
    match value {
        Value::Null | Value::Histogram(_) => Json::Null,
        Value::Integer(number) | Value::Time(number) => json!(number),
        // What is no number in JSON is null.
        Value::Float(number) => json!(number),
        Value::Boolean(is_so) => json!(is_so),
        Value::Text(text) => json!(text),
        Value::Texts(texts) => json!(texts),
    }
}
