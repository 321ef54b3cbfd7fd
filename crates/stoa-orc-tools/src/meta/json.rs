//! Metadata as JSON, with the names of `orc-tools meta --json`.
//!
//! More than there: `rowIndexStride`, `writerTimezone` of each stripe, `encryptedColumns`,
//! `userMetadata` (as ORC 2 has it; a value that is no text is `{"bytes": length}`).

use bytes::Bytes;
use stoa_error::Result;
use stoa_orc::proto::CalendarKind;
use stoa_orc::{CompressionKind, TypeKind, TypeTree};

use super::bloom::Bits;
use super::facts::Facts;
use super::raw::{Blooms, RawStripe, RowIndexView, UNREADABLE};
use super::text::printable;
use super::{Subject, names};
use crate::text::json::JsonWriter;

pub(super) fn write(subject: &Subject, json: &mut JsonWriter) -> Result<()> {
    json.object(|json| {
        write_head(subject, json)?;
        write_statistics(subject, json)?;
        json.name("stripes").array(|json| {
            let stripes = 0..subject.file.metadata.stripes.len();
            stripes.into_iter().try_for_each(|stripe| write_stripe(subject, stripe, json))
        })?;
        json.name("fileLength").int(subject.file.metadata.file_bytes);
        json.name("paddingLength").int(subject.padding_bytes());
        json.name("paddingRatio").float(subject.padding_percent());
        write_user_metadata(subject, json)?;
        json.name("status").text("OK");
        Ok(())
    })
}

fn write_head(subject: &Subject, json: &mut JsonWriter) -> Result<()> {
    let file = &subject.file.metadata;
    json.name("fileName").text(subject.file.name());
    json.name("fileVersion").text(&names::file_version(file));
    json.name("writerVersion").text(names::writer_version(&file.writer));
    json.name("softwareVersion").text(&names::software(&file.writer));
    json.name("numberOfRows").int(file.rows);
    json.name("compression").text(file.compression.name());
    if file.compression != CompressionKind::None {
        json.name("compressionBufferSize").int(file.block_bytes);
    }
    json.name("rowIndexStride").int(file.row_index_stride);
    json.name("schemaString").text(&names::type_text(&file.types, 0));
    json.name("schema");
    write_type(&file.types, 0, json)?;
    json.name("calendar").text(match file.calendar {
        CalendarKind::ProlepticGregorian => "proleptic Gregorian",
        CalendarKind::JulianGregorian | CalendarKind::Unknown => "Julian/Gregorian",
    });
    if !file.encrypted_columns.is_empty() {
        json.name("encryptedColumns").array(|json| {
            file.encrypted_columns.iter().for_each(|column| json.int(*column));
            Ok(())
        })?;
    }
    Ok(())
}

fn write_type(types: &TypeTree, column: u32, json: &mut JsonWriter) -> Result<()> {
    let Some(ty) = types.get(column) else { return Ok(()) };
    json.object(|json| {
        json.name("columnId").int(column);
        json.name("columnType").text(names::kind_name(ty.kind));
        if !ty.attributes.is_empty() {
            json.name("attributes").object(|json| {
                ty.attributes.iter().for_each(|(name, value)| json.name(name).text(value));
                Ok(())
            })?;
        }
        match ty.kind {
            TypeKind::Decimal => {
                let (precision, scale) = names::decimal_digits(ty);
                json.name("precision").int(precision);
                json.name("scale").int(scale);
            }
            TypeKind::Varchar | TypeKind::Char => json.name("maxLength").int(ty.max_length),
            _ => {}
        }
        let mut children = ty.children.iter();
        match ty.kind {
            TypeKind::Struct => json.name("children").object(|json| {
                let mut members = children.zip(&ty.field_names);
                members.try_for_each(|(child, name)| write_type(types, *child, json.name(name)))
            }),
            TypeKind::List | TypeKind::Map | TypeKind::Union => json
                .name("children")
                .array(|json| children.try_for_each(|child| write_type(types, *child, json))),
            _ => Ok(()),
        }
    })
}

fn write_statistics(subject: &Subject, json: &mut JsonWriter) -> Result<()> {
    json.name("stripeStatistics").array(|json| {
        for (number, stripe) in subject.raw.metadata.stripes().enumerate() {
            json.object(|json| {
                json.name("stripeNumber").int(number + 1);
                write_columns(&stripe, json.name("columnStatistics"))
            })?;
        }
        Ok(())
    })?;
    write_columns(&subject.raw.footer.statistics, json.name("fileStatistics"))
}

fn write_columns(statistics: &[Bytes], json: &mut JsonWriter) -> Result<()> {
    json.array(|json| {
        for (column, statistics) in statistics.iter().enumerate() {
            json.object(|json| {
                json.name("columnId").int(column);
                Facts::of(statistics).json(json);
                Ok::<_, stoa_error::Error>(())
            })?;
        }
        Ok(())
    })
}

fn write_stripe(subject: &Subject, index: usize, json: &mut JsonWriter) -> Result<()> {
    let info = &subject.file.metadata.stripes[index];
    let stripe = RawStripe::read(subject.file, index)?;
    json.object(|json| {
        json.name("stripeNumber").int(index + 1);
        json.name("stripeInformation").object(|json| {
            json.name("offset").int(info.offset);
            json.name("indexLength").int(info.index_bytes);
            json.name("dataLength").int(info.data_bytes);
            json.name("footerLength").int(info.footer_bytes);
            json.name("rowCount").int(info.rows);
            Ok::<_, stoa_error::Error>(())
        })?;
        let zone = stripe.footer.writer_timezone.as_deref();
        json.name("writerTimezone").text(zone.filter(|zone| !zone.is_empty()).unwrap_or("UNKNOWN"));
        write_streams(&stripe, json)?;
        write_encodings(&stripe, json)?;
        if subject.columns.is_empty() {
            return Ok(());
        }
        json.name("indexes").array(|json| {
            let mut columns = subject.columns.iter();
            columns.try_for_each(|column| write_indexes(subject, &stripe, *column, json))
        })
    })
}

fn write_streams(stripe: &RawStripe, json: &mut JsonWriter) -> Result<()> {
    json.name("streams").array(|json| {
        for stream in &stripe.streams {
            json.object(|json| {
                json.name("columnId").int(stream.column);
                let kind = names::stream(stream.kind);
                json.name("section").text(kind);
                json.name("startOffset").int(stream.range.start);
                json.name("length").int(stream.range.end - stream.range.start);
                Ok::<_, stoa_error::Error>(())
            })?;
        }
        Ok(())
    })
}

fn write_encodings(stripe: &RawStripe, json: &mut JsonWriter) -> Result<()> {
    json.name("encodings").array(|json| {
        for (column, encoding) in stripe.footer.columns.iter().enumerate() {
            json.object(|json| {
                json.name("columnId").int(column);
                json.name("kind").text(&names::encoding(encoding.kind));
                if names::has_dictionary(encoding.kind) {
                    json.name("dictionarySize").int(encoding.dictionary_size.unwrap_or(0));
                }
                Ok::<_, stoa_error::Error>(())
            })?;
        }
        Ok(())
    })
}

fn write_indexes(
    subject: &Subject,
    stripe: &RawStripe,
    column: u32,
    json: &mut JsonWriter,
) -> Result<()> {
    let index = stripe.row_index(subject.file, column)?;
    let blooms = stripe.blooms(subject.file, column)?;
    json.object(|json| {
        json.name("columnId").int(column);
        if let Some(index) = &index {
            write_row_index(index, json.name("rowGroupIndexes"))?;
        }
        let filters = match blooms {
            Blooms::None => return Ok(()),
            Blooms::Unreadable => {
                json.name("bloomFilterError").text(UNREADABLE);
                return Ok(());
            }
            Blooms::Filters(filters) => filters,
        };
        json.name("bloomFilterIndexes").array(|json| {
            let mut entries = filters.iter().enumerate();
            entries.try_for_each(|(entry, filter)| write_bloom(Some(entry), filter, json))
        })?;
        match Bits::merged(&filters) {
            Some(merged) => write_bloom(None, &merged, json.name("stripeLevelBloomFilter")),
            None => Ok(()),
        }
    })
}

fn write_row_index(index: &RowIndexView, json: &mut JsonWriter) -> Result<()> {
    json.array(|json| {
        for (number, entry) in index.entries().enumerate() {
            json.object(|json| {
                json.name("entryId").int(number);
                if let Some(statistics) = &entry.statistics {
                    Facts::of(statistics).json(json);
                }
                json.name("positions").array(|json| {
                    entry.positions.iter().for_each(|position| json.int(*position));
                    Ok::<_, stoa_error::Error>(())
                })
            })?;
        }
        Ok(())
    })
}

fn write_bloom(entry: Option<usize>, filter: &Bits, json: &mut JsonWriter) -> Result<()> {
    json.object(|json| {
        if let Some(entry) = entry {
            json.name("entryId").int(entry);
        }
        json.name("numHashFunctions").int(filter.functions);
        json.name("bitCount").int(filter.bits());
        json.name("popCount").int(filter.set_bits());
        json.name("loadFactor").float(filter.load());
        json.name("expectedFpp").float(filter.false_positives());
        Ok(())
    })
}

fn write_user_metadata(subject: &Subject, json: &mut JsonWriter) -> Result<()> {
    let items = &subject.raw.footer.metadata;
    if items.is_empty() {
        return Ok(());
    }
    json.name("userMetadata").object(|json| {
        for item in items {
            let value = item.value.as_deref().unwrap_or_default();
            let json = json.name(item.name.as_deref().unwrap_or(""));
            match printable(value) {
                Some(text) => json.text(text),
                None => json.object(|json| {
                    json.name("bytes").int(value.len());
                    Ok::<_, stoa_error::Error>(())
                })?,
            }
        }
        Ok(())
    })
}
