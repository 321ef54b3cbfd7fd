//! Metadata as text, in the layout of `orc-tools meta`.

use bytes::Bytes;
use stoa_error::{ErrorKind, Result};
use stoa_orc::proto::CalendarKind;
use stoa_orc::{CompressionKind, TypeTree};

use super::Subject;
use super::bloom::Bits;
use super::facts::Facts;
use super::names;
use super::raw::{Blooms, RawStripe, RowIndexView, UNREADABLE};
use crate::output::Output;
use crate::text::number::put_java_float;

/// Writes what can be read; the first damage is the error then.
pub(super) fn write(subject: &Subject, timezone: bool, out: &mut Output) -> Result<()> {
    write_head(subject, out)?;
    write_statistics(subject, out)?;
    out.line(format_args!("\nStripes:"))?;
    let mut damage = None;
    for stripe in 0..subject.file.metadata.stripes.len() {
        match write_stripe(subject, stripe, timezone, out) {
            Err(error) if error.kind() == ErrorKind::Corrupt => damage = damage.or(Some(error)),
            result => result?,
        }
    }
    write_end(subject, out)?;
    damage.map_or(Ok(()), Err)
}

fn write_head(subject: &Subject, out: &mut Output) -> Result<()> {
    let file = &subject.file.metadata;
    out.line(format_args!("Structure for {}", subject.file.name()))?;
    out.line(format_args!(
        "File Version: {} with {} by {}",
        names::file_version(file),
        names::writer_version(&file.writer),
        names::software(&file.writer)
    ))?;
    out.line(format_args!("Rows: {}", file.rows))?;
    out.line(format_args!("Compression: {}", file.compression.name()))?;
    if file.compression != CompressionKind::None {
        out.line(format_args!("Compression size: {}", file.block_bytes))?;
    }
    out.line(format_args!("Calendar: {}", calendar(file.calendar)))?;
    out.line(format_args!("Row index stride: {}", file.row_index_stride))?;
    out.line(format_args!("Type: {}", names::type_text(&file.types, 0)))?;
    for root in &file.encrypted_columns {
        out.line(format_args!("Encrypted column {root}: {}", file.types.path(*root)))?;
    }
    write_attributes(&file.types, 0, "root", out)
}

fn calendar(calendar: CalendarKind) -> &'static str {
    match calendar {
        CalendarKind::ProlepticGregorian => "Proleptic Gregorian",
        CalendarKind::JulianGregorian | CalendarKind::Unknown => "Julian/Gregorian",
    }
}

fn write_attributes(types: &TypeTree, column: u32, path: &str, out: &mut Output) -> Result<()> {
    let Some(ty) = types.get(column) else { return Ok(()) };
    if !ty.attributes.is_empty() {
        out.line(format_args!("Attributes on {path}"))?;
        for (name, value) in &ty.attributes {
            out.line(format_args!("  {name}: {value}"))?;
        }
    }
    for (index, child) in ty.children.iter().enumerate() {
        let path = format!("{path}.{}", names::child_step(types, column, index));
        write_attributes(types, *child, &path, out)?;
    }
    Ok(())
}

fn write_statistics(subject: &Subject, out: &mut Output) -> Result<()> {
    out.line(format_args!("\nStripe Statistics:"))?;
    for (number, stripe) in subject.raw.metadata.stripes().enumerate() {
        out.line(format_args!("  Stripe {}:", number + 1))?;
        write_columns(&stripe, "    ", out)?;
    }
    out.line(format_args!("\nFile Statistics:"))?;
    write_columns(&subject.raw.footer.statistics, "  ", out)
}

fn write_columns(statistics: &[Bytes], indent: &str, out: &mut Output) -> Result<()> {
    for (column, statistics) in statistics.iter().enumerate() {
        out.line(format_args!("{indent}Column {column}: {}", Facts::of(statistics).text()))?;
    }
    Ok(())
}

fn write_stripe(subject: &Subject, index: usize, timezone: bool, out: &mut Output) -> Result<()> {
    let info = &subject.file.metadata.stripes[index];
    let stripe = RawStripe::read(subject.file, index)?;
    let zone = match stripe.footer.writer_timezone.as_deref() {
        _ if !timezone => String::new(),
        None | Some("") => " timezone: UNKNOWN".to_owned(),
        Some(zone) => format!(" timezone: {zone}"),
    };
    out.line(format_args!(
        "  Stripe: offset: {} data: {} rows: {} tail: {} index: {}{zone}",
        info.offset, info.data_bytes, info.rows, info.footer_bytes, info.index_bytes
    ))?;
    for stream in &stripe.streams {
        out.line(format_args!(
            "    Stream: column {} section {} start: {} length {}",
            stream.column,
            names::stream(stream.kind),
            stream.range.start,
            stream.range.end - stream.range.start
        ))?;
    }
    for (column, encoding) in stripe.footer.columns.iter().enumerate() {
        let name = names::encoding(encoding.kind);
        let size = match names::has_dictionary(encoding.kind) {
            true => format!("[{}]", encoding.dictionary_size.unwrap_or(0)),
            false => String::new(),
        };
        out.line(format_args!("    Encoding column {column}: {name}{size}"))?;
    }
    for column in subject.columns {
        write_indexes(subject, &stripe, *column, out)?;
    }
    Ok(())
}

fn write_indexes(
    subject: &Subject,
    stripe: &RawStripe,
    column: u32,
    out: &mut Output,
) -> Result<()> {
    match stripe.row_index(subject.file, column)? {
        None => out.line(format_args!("    Row group indices for column {column}: not found"))?,
        Some(index) => write_row_index(&index, column, out)?,
    }
    let filters = match stripe.blooms(subject.file, column)? {
        Blooms::None => return Ok(()),
        Blooms::Unreadable => {
            return out.line(format_args!("    Bloom filters for column {column}: {UNREADABLE}"));
        }
        Blooms::Filters(filters) => filters,
    };
    out.line(format_args!("    Bloom filters for column {column}:"))?;
    for (entry, filter) in filters.iter().enumerate() {
        out.line(format_args!("      Entry {entry}: {}", bloom(filter)))?;
    }
    match Bits::merged(&filters) {
        Some(merged) => out.line(format_args!("      Stripe level merge: {}", bloom(&merged))),
        None => Ok(()),
    }
}

fn write_row_index(index: &RowIndexView, column: u32, out: &mut Output) -> Result<()> {
    out.line(format_args!("    Row group indices for column {column}:"))?;
    for (number, entry) in index.entries().enumerate() {
        let facts = match &entry.statistics {
            Some(statistics) => Facts::of(statistics).text(),
            None => "no stats at".to_owned(),
        };
        let positions: Vec<String> = entry.positions.iter().map(ToString::to_string).collect();
        let positions = positions.join(",");
        out.line(format_args!("      Entry {number}: {facts} positions: {positions}"))?;
    }
    Ok(())
}

fn bloom(filter: &Bits) -> String {
    let mut passed = Vec::new();
    put_java_float(filter.false_positives(), &mut passed);
    format!(
        "numHashFunctions: {} bitCount: {} popCount: {} loadFactor: {} expectedFpp: {}",
        filter.functions,
        filter.bits(),
        filter.set_bits(),
        rounded(f64::from(filter.load()), 4),
        String::from_utf8_lossy(&passed)
    )
}

fn write_end(subject: &Subject, out: &mut Output) -> Result<()> {
    out.line(format_args!("\nFile length: {} bytes", subject.file.metadata.file_bytes))?;
    out.line(format_args!("Padding length: {} bytes", subject.padding_bytes()))?;
    out.line(format_args!("Padding ratio: {}%", rounded(subject.padding_percent(), 2)))?;
    let keys = &subject.raw.footer.metadata;
    if !keys.is_empty() {
        out.line(format_args!("\nUser Metadata:"))?;
    }
    for item in keys {
        let (name, value) = (item.name.as_deref().unwrap_or(""), item.value.as_deref());
        let value = value.unwrap_or_default();
        match printable(value) {
            Some(text) => out.line(format_args!("  {name}={text}"))?,
            None => out.line(format_args!("  {name}=({} bytes)", value.len()))?,
        }
    }
    Ok(())
}

/// A value as text, if it is one.
pub(super) fn printable(value: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(value).ok()?;
    let is_text = |c: char| !c.is_control() || matches!(c, '\n' | '\r' | '\t');
    text.chars().all(is_text).then_some(text)
}

/// At most `digits` behind the point, and no zeros at the end.
fn rounded(value: f64, digits: usize) -> String {
    let text = format!("{value:.digits$}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
