//! `stoa orc`: look into ORC files, as the tools of Apache ORC do.
//!
//! In: files and directories. Out: text on standard output; what is wrong with one file is told on
//! standard error, and the others are done all the same. Not here: the work (`stoa-orc-tools`).

use std::io::{Stdout, Write};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueEnum};
use stoa_error::{Error, Result};
use stoa_orc_tools::{DataOptions, MetaOptions, RowFormat, ScanOptions};

use crate::failure::{Failure, is_closed_output, print_error};
use crate::shell::output_error;

/// What to do with ORC files.
#[derive(Debug, Subcommand)]
pub enum OrcCommand {
    /// Show the metadata of files: schema, statistics, stripes, streams, indexes
    Meta(MetaArgs),
    /// Print rows as JSON lines
    Data(DataArgs),
    /// Read all rows and count them; exit code 1 if anything cannot be read
    Scan(ScanArgs),
}

/// Arguments of `meta`.
#[derive(Debug, Args)]
pub struct MetaArgs {
    #[command(flatten)]
    files: Files,

    /// Print JSON; an array for several files
    #[arg(short, long)]
    json: bool,

    /// Print JSON with one line per member
    #[arg(short, long, requires = "json")]
    pretty: bool,

    /// Show row index and bloom filters of these columns: ids or names, * for all
    #[arg(short, long, value_name = "COLUMN,…", value_delimiter = ',')]
    rowindex: Vec<String>,

    /// Show the writer's time zone of each stripe
    #[arg(short, long)]
    timezone: bool,
}

/// Arguments of `data`.
#[derive(Debug, Args)]
pub struct DataArgs {
    #[command(flatten)]
    files: Files,

    /// Print at most this many rows of each file
    #[arg(short = 'n', long, alias = "lines", value_name = "ROWS")]
    limit: Option<u64>,

    /// Print only these top-level columns, in this order
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    columns: Option<Vec<String>>,

    /// Format of the rows
    #[arg(long, value_enum, default_value_t = Format::Contents)]
    format: Format,
}

/// Arguments of `scan`.
#[derive(Debug, Args)]
pub struct ScanArgs {
    #[command(flatten)]
    files: Files,

    /// Show why something cannot be read
    #[arg(short, long)]
    verbose: bool,
}

#[derive(Debug, Args)]
struct Files {
    /// ORC files, or directories of them
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
}

/// How rows are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Like `orc-contents`: unions have a tag, decimals are numbers; always valid JSON
    Contents,
    /// Like `orc-tools data` of ORC Java
    Java,
}

pub fn run(command: OrcCommand) -> Result<(), Failure> {
    match command {
        OrcCommand::Meta(args) => meta(&args),
        OrcCommand::Data(args) => data(&args),
        OrcCommand::Scan(args) => scan(&args),
    }
}

fn meta(args: &MetaArgs) -> Result<(), Failure> {
    let options = MetaOptions {
        json: args.json,
        pretty: args.pretty,
        row_index: args.rowindex.clone(),
        timezone: args.timezone,
    };
    let files = stoa_orc_tools::files_of(&args.files.files)?;
    let is_list = args.json && files.len() > 1;
    let mut out = std::io::stdout();
    let between = match (args.json, is_list) {
        (true, true) => ",\n".to_owned(),
        (true, false) => String::new(),
        // The line that ORC's tools draw.
        (false, _) => format!("{}\n\n", "_".repeat(120)),
    };
    if is_list {
        print(&mut out, "[\n")?;
    }
    let mut number = 0;
    let sound = for_each(&files, |path| {
        if number > 0 {
            print(&mut out, &between)?;
        }
        number += 1;
        let result = stoa_orc_tools::meta(path, &options, &mut out);
        match &result {
            Err(error) if args.json && !is_closed_output(error) => {
                print(&mut out, &stoa_orc_tools::failed_json(path, error, args.pretty))?;
            }
            _ => {}
        }
        result.map(|()| true)
    })?;
    if is_list {
        print(&mut out, "]\n")?;
    }
    verdict(sound)
}

fn data(args: &DataArgs) -> Result<(), Failure> {
    let options = DataOptions {
        limit: args.limit,
        columns: args.columns.clone(),
        format: match args.format {
            Format::Contents => RowFormat::Contents,
            Format::Java => RowFormat::Java,
        },
    };
    let files = stoa_orc_tools::files_of(&args.files.files)?;
    let sound = for_each(&files, |path| {
        let report = stoa_orc_tools::data(path, &options, &mut std::io::stdout())?;
        if report.stripes_in_micros > 0 {
            eprintln!(
                "warning: {}: timestamps before 1677 or after 2262; stripes that contain them are \
                 printed without nanoseconds: {}",
                path.display(),
                report.stripes_in_micros
            );
        }
        Ok(true)
    })?;
    verdict(sound)
}

fn scan(args: &ScanArgs) -> Result<(), Failure> {
    let options = ScanOptions { verbose: args.verbose };
    let files = stoa_orc_tools::files_of(&args.files.files)?;
    let sound = for_each(&files, |path| {
        let report = stoa_orc_tools::scan(path, &options, &mut std::io::stdout())?;
        Ok(report.is_sound())
    })?;
    verdict(sound)
}

/// Does `work` on all files; tells what went wrong and goes on. Returns whether all was well.
fn for_each(
    files: &[PathBuf],
    mut work: impl FnMut(&Path) -> Result<bool>,
) -> Result<bool, Failure> {
    let mut sound = true;
    for path in files {
        match work(path) {
            Ok(is_sound) => sound &= is_sound,
            Err(error) if is_closed_output(&error) => return Err(error.into()),
            Err(error) => {
                print_error(&error, None);
                sound = false;
            }
        }
    }
    Ok(sound)
}

fn verdict(sound: bool) -> Result<(), Failure> {
    if sound { Ok(()) } else { Err(Failure::Reported) }
}

fn print(out: &mut Stdout, text: &str) -> Result<(), Error> {
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(output_error)
}
