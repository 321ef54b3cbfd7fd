//! Names as ORC Java's tools print them: versions, types, kinds.

use stoa_orc::proto::{EncodingKind, StreamKind};
use stoa_orc::{FileMetadata, OrcType, TypeKind, TypeTree, WriterId};

/// The version of the format.
pub(super) fn file_version(file: &FileMetadata) -> String {
    match file.version {
        (1, 9999) => "UNSTABLE-PRE-2.0".to_owned(),
        (major, minor) => format!("{major}.{minor}"),
    }
}

/// The version of the writer: which of its bugs are fixed.
pub(super) fn writer_version(writer: &WriterId) -> &'static str {
    match (writer.code, writer.version) {
        (0, 0) => "ORIGINAL",
        (0, 1) => "HIVE_8732",
        (0, 2) => "HIVE_4243",
        (0, 3) => "HIVE_12055",
        (0, 4) => "HIVE_13083",
        (0, 5) => "ORC_101",
        (0, 6) => "ORC_135",
        (0, 7) => "ORC_517",
        (0, 8) => "ORC_203",
        (0, 9) => "ORC_14",
        (1, 6) => "ORC_CPP_ORIGINAL",
        (2, 6) => "PRESTO_ORIGINAL",
        (3, 6) => "SCRITCHLEY_GO_ORIGINAL",
        (4, 6) => "TRINO_ORIGINAL",
        (5, 6) => "CUDF_ORIGINAL",
        _ => "FUTURE",
    }
}

/// The software that wrote the file.
pub(super) fn software(writer: &WriterId) -> String {
    let base = match writer.code {
        0 => "ORC Java".to_owned(),
        1 => "ORC C++".to_owned(),
        2 => "Presto".to_owned(),
        3 => "Scritchley Go".to_owned(),
        4 => "Trino".to_owned(),
        5 => "CUDF".to_owned(),
        code => format!("Unknown({code})"),
    };
    match writer.software.as_deref() {
        None | Some("") => base,
        Some(version) => format!("{base} {version}"),
    }
}

/// A type of the tree in the language of types: `struct<a:int,b:array<string>>`.
pub(super) fn type_text(types: &TypeTree, column: u32) -> String {
    let mut out = String::new();
    put_type(types, column, &mut out);
    out
}

fn put_type(types: &TypeTree, column: u32, out: &mut String) {
    let Some(ty) = types.get(column) else { return };
    out.push_str(type_name(ty.kind));
    match ty.kind {
        TypeKind::Decimal => {
            let (precision, scale) = decimal_digits(ty);
            out.push_str(&format!("({precision},{scale})"));
        }
        TypeKind::Char | TypeKind::Varchar => out.push_str(&format!("({})", ty.max_length)),
        TypeKind::List | TypeKind::Map | TypeKind::Union | TypeKind::Struct => {
            out.push('<');
            for (index, child) in ty.children.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                if let Some(name) = ty.field_names.get(index) {
                    put_name(name, out);
                    out.push(':');
                }
                put_type(types, *child, out);
            }
            out.push('>');
        }
        _ => {}
    }
}

/// Precision and scale of a decimal; where the file does not say (Hive 0.11), those that ORC Java
/// assumes.
pub(super) fn decimal_digits(ty: &OrcType) -> (u32, u32) {
    if ty.precision == 0 { (38, 10) } else { (ty.precision, ty.scale) }
}

/// A field's name, in quotes unless it is made of letters, digits and `_`.
fn put_name(name: &str, out: &mut String) {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if !name.is_empty() && name.chars().all(is_plain) {
        out.push_str(name);
    } else {
        out.push('`');
        out.push_str(&name.replace('`', "``"));
        out.push('`');
    }
}

fn type_name(kind: TypeKind) -> &'static str {
    match kind {
        TypeKind::Boolean => "boolean",
        TypeKind::Byte => "tinyint",
        TypeKind::Short => "smallint",
        TypeKind::Int => "int",
        TypeKind::Long => "bigint",
        TypeKind::Float => "float",
        TypeKind::Double => "double",
        TypeKind::String => "string",
        TypeKind::Binary => "binary",
        TypeKind::Timestamp => "timestamp",
        TypeKind::List => "array",
        TypeKind::Map => "map",
        TypeKind::Struct => "struct",
        TypeKind::Union => "uniontype",
        TypeKind::Decimal => "decimal",
        TypeKind::Date => "date",
        TypeKind::Varchar => "varchar",
        TypeKind::Char => "char",
        TypeKind::TimestampInstant => "timestamp with local time zone",
        TypeKind::Geometry => "geometry",
        TypeKind::Geography => "geography",
    }
}

/// The name of a kind of types, as the format's definition has it.
pub(super) fn kind_name(kind: TypeKind) -> &'static str {
    match kind {
        TypeKind::Boolean => "BOOLEAN",
        TypeKind::Byte => "BYTE",
        TypeKind::Short => "SHORT",
        TypeKind::Int => "INT",
        TypeKind::Long => "LONG",
        TypeKind::Float => "FLOAT",
        TypeKind::Double => "DOUBLE",
        TypeKind::String => "STRING",
        TypeKind::Binary => "BINARY",
        TypeKind::Timestamp => "TIMESTAMP",
        TypeKind::List => "LIST",
        TypeKind::Map => "MAP",
        TypeKind::Struct => "STRUCT",
        TypeKind::Union => "UNION",
        TypeKind::Decimal => "DECIMAL",
        TypeKind::Date => "DATE",
        TypeKind::Varchar => "VARCHAR",
        TypeKind::Char => "CHAR",
        TypeKind::TimestampInstant => "TIMESTAMP_INSTANT",
        TypeKind::Geometry => "GEOMETRY",
        TypeKind::Geography => "GEOGRAPHY",
    }
}

/// The name of a stream's kind.
pub(super) fn stream(kind: Option<StreamKind>) -> &'static str {
    match kind {
        None => "UNKNOWN",
        Some(StreamKind::Present) => "PRESENT",
        Some(StreamKind::Data) => "DATA",
        Some(StreamKind::Length) => "LENGTH",
        Some(StreamKind::DictionaryData) => "DICTIONARY_DATA",
        Some(StreamKind::DictionaryCount) => "DICTIONARY_COUNT",
        Some(StreamKind::Secondary) => "SECONDARY",
        Some(StreamKind::RowIndex) => "ROW_INDEX",
        Some(StreamKind::BloomFilter) => "BLOOM_FILTER",
        Some(StreamKind::BloomFilterUtf8) => "BLOOM_FILTER_UTF8",
        Some(StreamKind::EncryptedIndex) => "ENCRYPTED_INDEX",
        Some(StreamKind::EncryptedData) => "ENCRYPTED_DATA",
        Some(StreamKind::StripeStatistics) => "STRIPE_STATISTICS",
        Some(StreamKind::FileStatistics) => "FILE_STATISTICS",
    }
}

/// The name of an encoding by its number in the footer.
pub(super) fn encoding(number: Option<i32>) -> String {
    let number = number.unwrap_or(0);
    let name = match EncodingKind::try_from(number) {
        Ok(EncodingKind::Direct) => "DIRECT",
        Ok(EncodingKind::Dictionary) => "DICTIONARY",
        Ok(EncodingKind::DirectV2) => "DIRECT_V2",
        Ok(EncodingKind::DictionaryV2) => "DICTIONARY_V2",
        Err(_) => return format!("UNKNOWN({number})"),
    };
    name.to_owned()
}

/// Whether an encoding has a dictionary.
pub(super) fn has_dictionary(number: Option<i32>) -> bool {
    let kind = EncodingKind::try_from(number.unwrap_or(0));
    matches!(kind, Ok(EncodingKind::Dictionary | EncodingKind::DictionaryV2))
}

/// What the path of a child adds to that of its parent in `Attributes on …`.
pub(super) fn child_step(types: &TypeTree, column: u32, index: usize) -> String {
    let Some(ty) = types.get(column) else { return String::new() };
    match (ty.kind, index) {
        (TypeKind::Struct, _) => ty.field_names.get(index).cloned().unwrap_or_default(),
        (TypeKind::Map, 0) => "_key".to_owned(),
        (TypeKind::Map, _) => "_value".to_owned(),
        (TypeKind::List, _) => "_elem".to_owned(),
        _ => format!("_{index}"),
    }
}
