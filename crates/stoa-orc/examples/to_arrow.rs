//! Turns ORC files into Arrow IPC streams.
//!
//! ```text
//! cargo run --release -p stoa-orc --example to_arrow -- DIRECTORY FILE.orc…
//! ```
//! Writes `DIRECTORY/FILE.arrow` for each; says of a file that can't be read why, goes on with the
//! others and ends with status 1.

use std::error::Error;
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_ipc::writer::StreamWriter;
use bytes::Bytes;
use stoa_orc::{Decoder, ReadOptions, Step, TailDecoder, TailStep};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1).map(PathBuf::from);
    let directory = arguments.next().ok_or("usage: to_arrow DIRECTORY FILE.orc…")?;
    let mut failed = false;
    for path in arguments {
        let name = path.file_stem().unwrap_or_default();
        let target = directory.join(name).with_added_extension("arrow");
        if let Err(error) = convert(&path, &target) {
            println!("{}: {error}", path.display());
            let _ = std::fs::remove_file(target);
            failed = true;
        }
    }
    std::process::exit(i32::from(failed));
}

fn convert(path: &Path, target: &Path) -> Result<(), Box<dyn Error>> {
    let file = Bytes::from(std::fs::read(path)?);
    let mut tail = TailDecoder::new(file.len() as u64);
    let metadata = match tail.decode(file.clone())? {
        TailStep::Done(metadata) => Arc::new(metadata),
        TailStep::NeedsTail(_) => return Err("the tail is not in the file".into()),
    };
    let mut decoder = Decoder::new(metadata, ReadOptions::default())?;
    let target = BufWriter::new(File::create(target)?);
    let mut writer = StreamWriter::try_new(target, &decoder.schema())?;
    loop {
        match decoder.next()? {
            // All of the file is in memory: that is more than was asked for.
            Step::NeedsData(_) => decoder.push(0, file.clone()),
            Step::Batch(batch) => writer.write(&batch)?,
            Step::Finished => return Ok(writer.finish()?),
        }
    }
}
