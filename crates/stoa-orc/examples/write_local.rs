//! Writes a local ORC file from an Arrow IPC file or stream.
//!
//! ```text
//! cargo run --release --example write_local -- [OPTION=VALUE…] INPUT.arrow OUTPUT.orc
//! ```
//! Options: `compression` (none, zlib, snappy, lz4, zstd), `level`, `block`, `stripe_bytes`,
//! `stripe_rows`, `stride`, `dictionary` (auto, always, never), `bloom` (column, repeatable),
//! `fpp`, `batch` (rows per call), `metadata` (key:value, repeatable), `compact_index`
//! (true, false), `checksums` (true, false), `repeat` (times, for measuring).
//! Prints rows, bytes and, per column, what a table's manifest would hold.

use std::error::Error;
use std::fs::File;
use std::io::{BufReader, Read, Seek, Write};

use arrow_array::RecordBatch;
use arrow_ipc::reader::{FileReader, StreamReader};
use arrow_schema::SchemaRef;
use stoa_orc::{Compression, DictionaryChoice, FileSummary, Writer, WriterOptions};

fn main() -> Result<(), Box<dyn Error>> {
    let mut options = WriterOptions::default();
    let (mut level, mut batch_rows, mut repeat) = (None, usize::MAX, 1);
    let mut files = Vec::new();
    for argument in std::env::args().skip(1) {
        let Some((name, value)) = argument.split_once('=') else {
            files.push(argument);
            continue;
        };
        match name {
            "compression" => options.compression = codec(value)?,
            "level" => level = Some(value.parse()?),
            "block" => options.compression_block_bytes = value.parse()?,
            "stripe_bytes" => options.stripe_bytes = value.parse()?,
            "stripe_rows" => options.stripe_rows = value.parse()?,
            "stride" => options.row_index_stride = value.parse()?,
            "dictionary" => options.dictionary = dictionary(value)?,
            "bloom" => options = options.with_bloom_column(value),
            "fpp" => options.bloom_fpp = value.parse()?,
            "batch" => batch_rows = value.parse()?,
            "metadata" => {
                let (key, value) = value.split_once(':').ok_or("metadata=key:value")?;
                options = options.with_user_metadata(key, value);
            }
            "compact_index" => options.compact_index = value.parse()?,
            "checksums" => options.checksums = value.parse()?,
            "repeat" => repeat = value.parse()?,
            _ => return Err(format!("there is no option {name}").into()),
        }
    }
    if let Some(level) = level {
        options.compression = with_level(options.compression, level);
    }
    let [input, output] = files.as_slice() else {
        return Err("give an input and an output file".into());
    };
    let (schema, batches) = read(input)?;
    for _ in 0..repeat {
        let summary = write(&schema, &batches, batch_rows, options.clone(), output)?;
        print(&summary);
    }
    Ok(())
}

/// The part to copy: batches in, a file out.
fn write(
    schema: &SchemaRef,
    batches: &[RecordBatch],
    batch_rows: usize,
    options: WriterOptions,
    path: &str,
) -> Result<FileSummary, Box<dyn Error>> {
    let mut file = File::create(path)?;
    let mut writer = Writer::new(schema, options)?;
    for batch in batches {
        for from in (0..batch.num_rows()).step_by(batch_rows) {
            let rows = batch_rows.min(batch.num_rows() - from);
            writer.write(&batch.slice(from, rows))?;
            file.write_all(&writer.take_output())?;
        }
    }
    let summary = writer.finish()?;
    file.write_all(&writer.take_output())?;
    Ok(summary)
}

fn read(path: &str) -> Result<(SchemaRef, Vec<RecordBatch>), Box<dyn Error>> {
    let mut file = BufReader::new(File::open(path)?);
    let mut magic = [0; 6];
    let is_file = file.read_exact(&mut magic).is_ok() && magic == *b"ARROW1";
    file.rewind()?;
    if is_file {
        let reader = FileReader::try_new(file, None)?;
        return Ok((reader.schema(), reader.collect::<Result<_, _>>()?));
    }
    let reader = StreamReader::try_new(file, None)?;
    Ok((reader.schema(), reader.collect::<Result<_, _>>()?))
}

fn print(summary: &FileSummary) {
    println!(
        "{} rows, {} bytes, tail {} bytes, {} stripes",
        summary.rows,
        summary.file_bytes,
        summary.tail_bytes,
        summary.stripe_offsets.len()
    );
    for column in &summary.columns {
        println!("{column:?}");
    }
}

fn codec(name: &str) -> Result<Compression, Box<dyn Error>> {
    Ok(match name {
        "none" => Compression::None,
        "zlib" => Compression::Zlib { level: 6 },
        "snappy" => Compression::Snappy,
        "lz4" => Compression::Lz4,
        "zstd" => Compression::default(),
        _ => return Err(format!("there is no codec {name}").into()),
    })
}

fn with_level(compression: Compression, level: u8) -> Compression {
    match compression {
        Compression::Zlib { .. } => Compression::Zlib { level: level.into() },
        Compression::Zstd { .. } => Compression::Zstd { level: level.into() },
        other => other,
    }
}

fn dictionary(name: &str) -> Result<DictionaryChoice, Box<dyn Error>> {
    Ok(match name {
        "auto" => DictionaryChoice::Auto,
        "always" => DictionaryChoice::Always,
        "never" => DictionaryChoice::Never,
        _ => return Err(format!("there is no dictionary choice {name}").into()),
    })
}
