//! Column statistics as a list of facts, named for text and for JSON.
//!
//! In: the message as it is written. Out: what there is to say, in the order of `orc-tools meta`.
//! **Invariant:** what the file does not say is not made up.

use bytes::Bytes;
use prost::Message;
use stoa_orc::proto::{
    BinaryStatistics, BucketStatistics, CollectionStatistics, ColumnStatistics, DateStatistics,
    DecimalStatistics, DoubleStatistics, IntegerStatistics, StringStatistics, TimestampStatistics,
};

use crate::text::calendar::{put_date, put_timestamp};
use crate::text::json::JsonWriter;
use crate::text::number::{put_int, put_java_float};

/// One fact.
struct Fact {
    /// Its name in text; `None`: for JSON only.
    text: Option<&'static str>,
    /// Its name in JSON; `None`: for text only.
    json: Option<&'static str>,
    value: Value,
}

enum Value {
    Int(i128),
    Bool(bool),
    Float(f64),
    Text(String),
}

/// The statistics of one column.
pub(super) struct Facts(Vec<Fact>);

impl Facts {
    /// Of an encoded `ColumnStatistics`.
    pub(super) fn of(statistics: &Bytes) -> Self {
        let mut facts = Self(Vec::new());
        let Ok(statistics) = ColumnStatistics::decode(statistics.clone()) else {
            facts.both("error", Value::Text("not readable".to_owned()));
            return facts;
        };
        let values = statistics.number_of_values.unwrap_or(0);
        facts.both("count", Value::Int(values.into()));
        facts.both("hasNull", Value::Bool(statistics.has_null.unwrap_or(true)));
        if let Some(bytes) = statistics.bytes_on_disk.filter(|bytes| *bytes != 0) {
            facts.both("bytesOnDisk", Value::Int(bytes.into()));
        }
        facts.bounds(&statistics, values);
        facts
    }

    /// `count: 3 hasNull: false min: 1 max: 2`
    pub(super) fn text(&self) -> String {
        let mut out = Vec::new();
        for fact in &self.0 {
            let Some(name) = fact.text else { continue };
            if !out.is_empty() {
                out.push(b' ');
            }
            out.extend_from_slice(name.as_bytes());
            out.extend_from_slice(b": ");
            fact.value.put(&mut out);
        }
        String::from_utf8_lossy(&out).into_owned()
    }

    /// Members of the object that is open.
    pub(super) fn json(&self, json: &mut JsonWriter) {
        for fact in &self.0 {
            let Some(name) = fact.json else { continue };
            let json = json.name(name);
            match &fact.value {
                Value::Int(value) => json.int(*value),
                Value::Bool(value) => json.bool(*value),
                Value::Float(value) => json.float(*value),
                Value::Text(value) => json.text(value),
            }
        }
    }

    fn both(&mut self, name: &'static str, value: Value) {
        self.named(name, name, value);
    }

    fn named(&mut self, text: &'static str, json: &'static str, value: Value) {
        self.0.push(Fact { text: Some(text), json: Some(json), value });
    }

    /// The kind of statistics, for JSON.
    fn kind(&mut self, name: &str) {
        self.0.push(Fact { text: None, json: Some("type"), value: Value::Text(name.to_owned()) });
    }

    fn both_if(&mut self, name: &'static str, value: Option<Value>) {
        if let Some(value) = value {
            self.both(name, value);
        }
    }

    fn bounds(&mut self, statistics: &ColumnStatistics, values: u64) {
        if let Some(s) = &statistics.bucket_statistics {
            self.boolean(s, values);
        } else if let Some(s) = &statistics.int_statistics {
            self.integer(s);
        } else if let Some(s) = &statistics.collection_statistics {
            self.collection(s);
        } else if let Some(s) = &statistics.double_statistics {
            self.double(s);
        } else if let Some(s) = &statistics.string_statistics {
            self.string(s);
        } else if let Some(s) = &statistics.decimal_statistics {
            self.decimal(s, values);
        } else if let Some(s) = &statistics.date_statistics {
            self.date(s);
        } else if let Some(s) = &statistics.timestamp_statistics {
            self.timestamp(s);
        } else if let Some(s) = &statistics.binary_statistics {
            self.binary(s, values);
        }
    }

    fn boolean(&mut self, s: &BucketStatistics, values: u64) {
        let trues = s.count.first().copied().unwrap_or(0);
        self.named("true", "trueCount", Value::Int(trues.into()));
        let falses = Value::Int(i128::from(values) - i128::from(trues));
        self.0.push(Fact { text: None, json: Some("falseCount"), value: falses });
        self.kind("BOOLEAN");
    }

    fn integer(&mut self, s: &IntegerStatistics) {
        let int = |value: Option<i64>| value.map(|value| Value::Int(value.into()));
        self.both_if("min", int(s.minimum));
        self.both_if("max", int(s.maximum));
        self.both_if("sum", int(s.sum));
        self.kind("LONG");
    }

    fn double(&mut self, s: &DoubleStatistics) {
        self.both_if("min", s.minimum.map(Value::Float));
        self.both_if("max", s.maximum.map(Value::Float));
        self.both_if("sum", s.sum.map(Value::Float));
        self.kind("DOUBLE");
    }

    fn string(&mut self, s: &StringStatistics) {
        let text = |bytes: &[u8]| Value::Text(String::from_utf8_lossy(bytes).into_owned());
        match (&s.minimum, &s.lower_bound) {
            (Some(value), _) => self.both("min", text(value)),
            (None, Some(value)) => self.named("lower", "lowerBound", text(value)),
            (None, None) => {}
        }
        match (&s.maximum, &s.upper_bound) {
            (Some(value), _) => self.both("max", text(value)),
            (None, Some(value)) => self.named("upper", "upperBound", text(value)),
            (None, None) => {}
        }
        if let Some(sum) = s.sum {
            self.named("sum", "totalLength", Value::Int(sum.into()));
        }
        self.kind("STRING");
    }

    fn decimal(&mut self, s: &DecimalStatistics, values: u64) {
        let text = |bytes: &Option<Vec<u8>>| {
            bytes.as_deref().filter(|_| values > 0).map(|bytes| Value::Text(trimmed(bytes)))
        };
        self.both_if("min", text(&s.minimum));
        self.both_if("max", text(&s.maximum));
        self.both_if("sum", text(&s.sum));
        self.kind("DECIMAL");
    }

    fn date(&mut self, s: &DateStatistics) {
        let text =
            |day: Option<i32>| day.map(|day| Value::Text(printed(|out| put_date(day.into(), out))));
        self.both_if("min", text(s.minimum));
        self.both_if("max", text(s.maximum));
        self.kind("DATE");
    }

    /// Files before ORC-135 have bounds that depend on the writer's zone, printed as if in UTC.
    fn timestamp(&mut self, s: &TimestampStatistics) {
        let text = |millis: Option<i64>, nanos: Option<i32>, absent: u32| {
            let nanos =
                nanos.and_then(|nanos| u32::try_from(nanos.checked_sub(1)?).ok()).unwrap_or(absent);
            millis.map(|millis| Value::Text(timestamp(millis, nanos)))
        };
        self.both_if("min", text(s.minimum_utc.or(s.minimum), s.minimum_nanos, 0));
        self.both_if("max", text(s.maximum_utc.or(s.maximum), s.maximum_nanos, 999_999));
        self.kind("TIMESTAMP");
    }

    fn binary(&mut self, s: &BinaryStatistics, values: u64) {
        if let Some(sum) = s.sum.filter(|_| values > 0) {
            self.named("sum", "totalLength", Value::Int(sum.into()));
        }
        self.kind("BINARY");
    }

    fn collection(&mut self, s: &CollectionStatistics) {
        let int = |value: Option<u64>| value.map(|value| Value::Int(value.into()));
        self.both_if("minChildren", int(s.min_children));
        self.both_if("maxChildren", int(s.max_children));
        self.both_if("totalChildren", int(s.total_children));
    }
}

impl Value {
    fn put(&self, out: &mut Vec<u8>) {
        match self {
            Self::Int(value) => put_int(*value, out),
            Self::Bool(value) => out.extend_from_slice(if *value { b"true" } else { b"false" }),
            Self::Float(value) => put_java_float(*value, out),
            Self::Text(value) => out.extend_from_slice(value.as_bytes()),
        }
    }
}

/// The text of a decimal without zeros at its end.
fn trimmed(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text.into_owned(),
    }
}

fn timestamp(millis: i64, nanos: u32) -> String {
    let of_second = millis.rem_euclid(1000) as u32 * 1_000_000;
    let nanos = of_second + nanos.min(999_999);
    printed(|out| put_timestamp(millis.div_euclid(1000), nanos, out))
}

fn printed(put: impl FnOnce(&mut Vec<u8>)) -> String {
    let mut out = Vec::new();
    put(&mut out);
    String::from_utf8_lossy(&out).into_owned()
}
