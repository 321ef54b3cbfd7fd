//! A JSON document written as it comes: members in the order they are named.
//!
//! **Invariant:** the caller opens and closes objects and arrays in pairs and names every member.

use super::number::{put_int, put_java_float};
use super::string::{Escapes, put_string};

/// Writes one document to a buffer.
pub(crate) struct JsonWriter<'a> {
    out: &'a mut Vec<u8>,
    pretty: bool,
    /// Per open object or array: whether it has members.
    open: Vec<bool>,
    /// Whether a member's name was just written.
    named: bool,
}

impl<'a> JsonWriter<'a> {
    /// A writer that appends to `out`; a pretty one begins a line for each member.
    pub(crate) fn new(out: &'a mut Vec<u8>, pretty: bool) -> Self {
        Self { out, pretty, open: Vec::new(), named: false }
    }

    /// Writes an object whose members `fill` writes.
    pub(crate) fn object<E>(
        &mut self,
        fill: impl FnOnce(&mut Self) -> Result<(), E>,
    ) -> Result<(), E> {
        self.nested(b'{', b'}', fill)
    }

    /// Writes an array whose members `fill` writes.
    pub(crate) fn array<E>(
        &mut self,
        fill: impl FnOnce(&mut Self) -> Result<(), E>,
    ) -> Result<(), E> {
        self.nested(b'[', b']', fill)
    }

    /// Names the next member of an object.
    pub(crate) fn name(&mut self, name: &str) -> &mut Self {
        self.separate();
        put_string(name, Escapes::Json, self.out);
        self.out.push(b':');
        if self.pretty {
            self.out.push(b' ');
        }
        self.named = true;
        self
    }

    /// Writes a string.
    pub(crate) fn text(&mut self, value: &str) {
        self.separate();
        put_string(value, Escapes::Json, self.out);
    }

    /// Writes an integer.
    pub(crate) fn int(&mut self, value: impl itoa::Integer) {
        self.separate();
        put_int(value, self.out);
    }

    /// Writes a number; what is none is a string, as JSON has no word for it.
    pub(crate) fn float<F: ryu::Float + Into<f64>>(&mut self, value: F) {
        self.separate();
        let is_finite = value.into().is_finite();
        let quote: &[u8] = if is_finite { b"" } else { b"\"" };
        self.out.extend_from_slice(quote);
        put_java_float(value, self.out);
        self.out.extend_from_slice(quote);
    }

    /// Writes `true` or `false`.
    pub(crate) fn bool(&mut self, value: bool) {
        self.separate();
        self.out.extend_from_slice(if value { b"true" } else { b"false" });
    }

    fn nested<E>(
        &mut self,
        first: u8,
        last: u8,
        fill: impl FnOnce(&mut Self) -> Result<(), E>,
    ) -> Result<(), E> {
        self.separate();
        self.out.push(first);
        self.open.push(false);
        fill(self)?;
        if self.open.pop() == Some(true) {
            self.new_line();
        }
        self.out.push(last);
        Ok(())
    }

    /// What stands between the member before and the next one.
    fn separate(&mut self) {
        if std::mem::take(&mut self.named) {
            return;
        }
        if let Some(has_members) = self.open.last_mut() {
            if std::mem::replace(has_members, true) {
                self.out.push(b',');
            }
            self.new_line();
        }
    }

    fn new_line(&mut self) {
        if self.pretty {
            self.out.push(b'\n');
            self.out.extend(std::iter::repeat_n(b' ', 2 * self.open.len()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(pretty: bool) -> String {
        let mut out = Vec::new();
        let mut json = JsonWriter::new(&mut out, pretty);
        let done: Result<(), ()> = json.object(|json| {
            json.name("a").int(1);
            json.name("empty").array(|_| Ok(()))?;
            json.name("list").array(|json| {
                json.bool(true);
                json.float(0.5);
                json.float(f64::NAN);
                json.object(|json| {
                    json.name("\"").text("b");
                    Ok(())
                })
            })
        });
        done.unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn members_come_in_order() {
        assert_eq!(written(false), r#"{"a":1,"empty":[],"list":[true,0.5,"NaN",{"\"":"b"}]}"#);
    }

    #[test]
    fn a_pretty_document_says_the_same() {
        let pretty = written(true);
        assert!(
            pretty.starts_with("{\n  \"a\": 1,\n  \"empty\": [],\n  \"list\": [\n    true,"),
            "{pretty}"
        );
        let value: serde_json::Value = serde_json::from_str(&pretty).unwrap();
        assert_eq!(value, serde_json::from_str::<serde_json::Value>(&written(false)).unwrap());
    }
}
