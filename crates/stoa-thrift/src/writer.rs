//! Writes values of Thrift's binary protocol.

use crate::reader::VERSION;
use crate::type_id::Kind;

/// Bytes of a message, as far as it is written.
#[derive(Clone, Debug, Default)]
pub struct Writer(Vec<u8>);

impl Writer {
    /// Nothing written yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// What was written.
    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    /// How many bytes were written.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether nothing was written.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn message_begin(&mut self, kind: u8, name: &str, sequence: i32) {
        self.0.extend_from_slice(&VERSION);
        self.0.extend_from_slice(&[0, kind]);
        self.bytes(name.as_bytes());
        self.i32(sequence);
    }

    /// Appends bytes as they are.
    pub fn raw(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    /// Appends a number.
    pub fn i32(&mut self, value: i32) {
        self.raw(&value.to_be_bytes());
    }

    /// Appends a length and bytes.
    pub fn bytes(&mut self, bytes: &[u8]) {
        // Nothing here is longer: values are cells of batches, whose offsets are 32 bits as well.
        self.i32(i32::try_from(bytes.len()).unwrap_or(i32::MAX));
        self.raw(&bytes[..bytes.len().min(i32::MAX as usize)]);
    }

    /// Begins a field; its value must follow.
    pub fn field(&mut self, kind: Kind, id: i16) {
        self.0.push(kind as u8);
        self.raw(&id.to_be_bytes());
    }

    /// Ends a struct.
    pub fn stop(&mut self) {
        self.0.push(0);
    }

    /// Begins a list; its values must follow.
    pub fn list(&mut self, kind: Kind, count: usize) {
        self.0.push(kind as u8);
        self.i32(i32::try_from(count).unwrap_or(i32::MAX));
    }

    /// A field that is a struct.
    pub fn structure(&mut self, id: i16, fields: impl FnOnce(&mut Self)) {
        self.field(Kind::Struct, id);
        fields(self);
        self.stop();
    }

    /// A field that is a text.
    pub fn text_field(&mut self, id: i16, text: &str) {
        self.bytes_field(id, text.as_bytes());
    }

    /// A field that is bytes.
    pub fn bytes_field(&mut self, id: i16, bytes: &[u8]) {
        self.field(Kind::Bytes, id);
        self.bytes(bytes);
    }

    /// A field that is true or false.
    pub fn bool_field(&mut self, id: i16, value: bool) {
        self.field(Kind::Bool, id);
        self.0.push(u8::from(value));
    }

    /// A field that is a number of two bytes.
    pub fn i16_field(&mut self, id: i16, value: i16) {
        self.field(Kind::I16, id);
        self.raw(&value.to_be_bytes());
    }

    /// A field that is a number of four bytes, or an enumeration.
    pub fn i32_field(&mut self, id: i16, value: i32) {
        self.field(Kind::I32, id);
        self.i32(value);
    }

    /// A field that is a number of eight bytes.
    pub fn i64_field(&mut self, id: i16, value: i64) {
        self.field(Kind::I64, id);
        self.raw(&value.to_be_bytes());
    }

    /// A field that is a double.
    pub fn double_field(&mut self, id: i16, value: f64) {
        self.field(Kind::Double, id);
        self.raw(&value.to_be_bytes());
    }

    /// A field that is a list of texts.
    pub fn texts_field<T: AsRef<str>>(&mut self, id: i16, texts: &[T]) {
        self.field(Kind::List, id);
        self.texts(texts);
    }

    pub(crate) fn texts<T: AsRef<str>>(&mut self, texts: &[T]) {
        self.list(Kind::Bytes, texts.len());
        texts.iter().for_each(|text| self.bytes(text.as_ref().as_bytes()));
    }

    /// The begin of a field that is a map with texts as keys; its pairs must follow.
    pub fn map_field(&mut self, id: i16, values: Kind, count: usize) {
        self.field(Kind::Map, id);
        self.raw(&[Kind::Bytes as u8, values as u8]);
        self.i32(i32::try_from(count).unwrap_or(i32::MAX));
    }
}
