//! `stoa load`: files into a table, in one commit.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};
use indicatif::{ProgressBar, ProgressStyle};
use stoa_env::clock::monotonic;
use stoa_error::{Error, ErrorKind, Result};
use stoa_load::{Input, LoadOptions, Progress};
use stoa_query::{Engine, LoadRequest, LoadTarget};

use super::settle;
use super::table::parse_ident;
use crate::config::{SettingFlags, scope};
use crate::failure::Failure;
use crate::runtime::{LogUse, block_on, open_engine, start_log};
use crate::units;

/// Load files into a table: CSV, TSV, NDJSON, PostgreSQL COPY text, Parquet, ORC and Arrow IPC; text
/// formats also compressed (.gz, .zst). All rows appear in one commit; after an error, none do.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct LoadArgs {
    /// Files to load; - is stdin
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    /// The table, as name or namespace.name
    #[arg(long, value_name = "TABLE")]
    into: String,

    /// Create the table if it does not exist, with the columns of the files
    #[arg(long)]
    create: bool,

    /// With --create: how to partition, such as 'month(day)' or 'region, bucket(16, id)'
    #[arg(
        long,
        value_name = "TERMS",
        requires = "create",
        default_value = "",
        hide_default_value = true
    )]
    partition_by: String,

    /// With --create: how to sort, such as 'account_id, day DESC'
    #[arg(
        long,
        visible_alias = "sort-by",
        value_name = "TERMS",
        requires = "create",
        default_value = "",
        hide_default_value = true
    )]
    order_by: String,

    /// With --create: a table property; can be repeated
    #[arg(long = "property", value_name = "NAME=VALUE", requires = "create", value_parser = parse_property)]
    properties: Vec<(String, String)>,

    /// Show no progress and no summary
    #[arg(short = 'q', long)]
    quiet: bool,

    #[command(flatten)]
    format: FormatFlags,

    #[command(flatten)]
    settings: SettingFlags<{ scope::ENGINE }>,
}

const EXAMPLES: &str = "\
Examples:
  stoa load trips.csv --into trips --create --partition-by 'month(day)' --order-by 'base, day'
  stoa load 2025-*.tsv.gz --into visits --null-text '-'
  zcat log.gz | stoa load - --into log --format ndjson
  stoa load raw.csv --into t --max-errors 100 --reject-file bad.csv

If a line does not fit the table, the load fails with file, line, column and value, and loads nothing.
--max-errors skips such lines, and --reject-file keeps them.";

pub fn run(args: LoadArgs, file: Option<PathBuf>) -> Result<(), Failure> {
    let resolved = settle(&args.settings, file)?;
    start_log(&resolved, true);
    let options = args.format.options().map_err(Failure::Usage)?;
    block_on(&resolved.config, async {
        let engine = open_engine(&resolved.config, LogUse::Leave).await?;
        load(&engine, args, options).await.map_err(Failure::from)
    })
}

async fn load(engine: &Arc<Engine>, args: LoadArgs, options: LoadOptions) -> Result<()> {
    let begin = monotonic();
    let target = LoadTarget {
        table: args.into.clone(),
        create: args.create,
        partition_by: args.partition_by,
        order_by: args.order_by,
        properties: args.properties.into_iter().collect::<BTreeMap<_, _>>(),
    };
    let (started, progress) = std::sync::mpsc::channel();
    let request = LoadRequest {
        target,
        inputs: args.files.into_iter().map(input).collect(),
        options,
        on_start: Some(Box::new(move |progress| {
            // Nobody listens where no progress is shown.
            let _ = started.send(progress);
        })),
    };
    let mut shown = Shown::new(args.quiet);
    let loading = engine.load(request);
    tokio::pin!(loading);
    let mut tick = stoa_env::timer::interval(Duration::from_millis(100));
    let mut counters: Option<Arc<Progress>> = None;
    let done = loop {
        tokio::select! {
            biased;
            result = &mut loading => break result,
            _ = tokio::signal::ctrl_c() => break Err(cancelled(&args.into)),
            _ = tick.tick() => {
                counters = counters.or_else(|| progress.try_recv().ok());
                shown.update(counters.as_deref());
            }
        }
    };
    shown.clear();
    let rows = done?.rows;
    if args.quiet {
        return Ok(());
    }
    let counters = counters.or_else(|| progress.try_recv().ok());
    println!("{}", summary(engine, &args.into, rows, counters, begin.elapsed()).await);
    Ok(())
}

/// What Ctrl-C says. Rows appear in one commit at the end, which may just have been made.
fn cancelled(table: &str) -> Error {
    Error::new(ErrorKind::Cancelled, "cancelled with Ctrl-C")
        .with_detail("a load makes all rows visible at its end; before that, nothing is loaded")
        .with_hint(format!("`stoa table describe {table}` shows the newest commit of the table"))
}

async fn summary(
    engine: &Engine,
    table: &str,
    rows: u64,
    counters: Option<Arc<Progress>>,
    took: Duration,
) -> String {
    let seconds = took.as_secs_f64();
    let (read, rejected) = counters.map_or((0, 0), |c| (c.bytes_read(), c.rows_rejected()));
    let mut parts = vec![format!("{} rejected", units::count(rejected))];
    parts.push(format!("{} read", units::bytes(read)));
    if let Some((files, bytes)) = written(engine, table, rows).await {
        let noun = if files == 1 { "file" } else { "files" };
        parts.push(format!("{} {noun} of {} written", units::count(files), units::bytes(bytes)));
    }
    parts.push(format!("{seconds:.2} s"));
    parts.push(format!("{} rows/s", units::count((rows as f64 / seconds.max(1e-6)) as u64)));
    format!("loaded {} rows into {table}: {}", units::count(rows), parts.join(", "))
}

/// Files and bytes of the load's snapshot, if it is still the newest one.
async fn written(engine: &Engine, table: &str, rows: u64) -> Option<(u64, u64)> {
    let table = engine.warehouse().table(&parse_ident(table).ok()?).await.ok()?;
    let summary = table.current_snapshot()?.summary;
    let number = |name: &str| summary.get(name)?.parse::<u64>().ok();
    (number("added-records") == Some(rows))
        .then(|| Some((number("added-data-files")?, number("added-files-size")?)))?
}

fn input(path: PathBuf) -> Input {
    match path.as_os_str() == "-" {
        true => Input::Stream {
            name: "stdin".to_owned(),
            reader: Box::new(std::io::stdin()),
            total_bytes: None,
        },
        false => Input::Path(path),
    }
}

fn parse_property(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("write NAME=VALUE".into()),
    }
}

/// The bar on a terminal; nothing elsewhere.
struct Shown {
    bar: ProgressBar,
    stage: Stage,
}

/// What a load does; each has its own line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Input of unknown length is read.
    Reading,
    /// So much of the input is read, so long it will take.
    ReadingOf(u64),
    /// All is read. Nobody knows how long sorting and writing take.
    Writing,
}

impl Stage {
    fn of(read: u64, total: u64) -> Self {
        match total {
            0 => Self::Reading,
            total if read >= total => Self::Writing,
            total => Self::ReadingOf(total),
        }
    }

    fn template(self) -> &'static str {
        match self {
            Self::Reading => "{spinner} {bytes} reading: {msg}, {elapsed}",
            Self::ReadingOf(_) => {
                "{wide_bar} {bytes}/{total_bytes} reading: {msg}, {elapsed}, {eta} left"
            }
            Self::Writing => "{spinner} {bytes} read; sorting and writing: {msg}, {elapsed}",
        }
    }
}

impl Shown {
    fn new(quiet: bool) -> Self {
        // indicatif draws on stderr, and nothing where that is no terminal.
        let bar = if quiet { ProgressBar::hidden() } else { ProgressBar::no_length() };
        let mut shown = Self { bar, stage: Stage::Reading };
        shown.enter(Stage::Reading);
        shown
    }

    fn enter(&mut self, stage: Stage) {
        self.stage = stage;
        if let Stage::ReadingOf(total) = stage {
            self.bar.set_length(total);
        }
        if let Ok(style) = ProgressStyle::with_template(stage.template()) {
            self.bar.set_style(style);
        }
    }

    fn update(&mut self, counters: Option<&Progress>) {
        let Some(counters) = counters else { return };
        let (read, total) = (counters.bytes_read(), counters.bytes_total());
        let stage = Stage::of(read, total);
        if stage != self.stage {
            self.enter(stage);
        }
        self.bar.set_position(read);
        let rows = counters.rows_read();
        let rate = rows as f64 / self.bar.elapsed().as_secs_f64().max(0.1);
        let (rows, rate) = (units::count(rows), units::count(rate as u64));
        self.bar.set_message(format!("{rows} rows, {rate} rows/s"));
    }

    fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

/// The options of `stoa-load` as flags; what they are is declared there.
#[derive(Clone, Debug, Default)]
struct FormatFlags {
    given: Vec<(&'static str, String)>,
}

impl FormatFlags {
    fn options(&self) -> Result<LoadOptions> {
        let mut options = LoadOptions::default();
        for (name, value) in &self.given {
            let place = format!("flag --{}", name.replace('_', "-"));
            options.set(name, value).map_err(|e: Error| e.at(place))?;
        }
        Ok(options)
    }
}

impl Args for FormatFlags {
    fn augment_args(command: Command) -> Command {
        let flags = LoadOptions::describe().into_iter().map(|option| {
            let help = format!("{} [default: {}]", option.what, option.default);
            Arg::new(option.name)
                .long(option.name.replace('_', "-"))
                .help(help)
                .help_heading("How files are read")
                .value_name("VALUE")
                .allow_hyphen_values(true)
        });
        command.args(flags)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for FormatFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut flags = Self::default();
        flags.update_from_arg_matches(matches)?;
        Ok(flags)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        for option in LoadOptions::describe() {
            if matches.value_source(option.name) == Some(ValueSource::CommandLine)
                && let Some(value) = matches.get_one::<String>(option.name)
            {
                self.given.push((option.name, value.clone()));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_time_is_promised_where_none_is_known() {
        assert_eq!(Stage::of(10, 0), Stage::Reading);
        assert_eq!(Stage::of(10, 100), Stage::ReadingOf(100));
        assert_eq!(Stage::of(100, 100), Stage::Writing);
        assert!(Stage::ReadingOf(100).template().contains("{eta} left"));
        for stage in [Stage::Reading, Stage::Writing] {
            assert!(!stage.template().contains("left"), "{stage:?}");
        }
    }
}
