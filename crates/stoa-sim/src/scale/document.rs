//! `docs/scale.md`.

use std::fmt::Write;

use super::model::{self, *};
use super::{BUCKETS_EACH, Homes, REPORTS_PER_HOUR, SIZES};

const HEAD: &str = "\
# What a cluster needs

This page is the output of `stoa-sim scale`; a test compares them. It answers for clusters of 3 to 700 daemons: how even
is the load, what moves when a daemon is lost, how much cache is needed, and what do the object store and the
database have to bear? The daemon does not use this code yet: these are computations, not measurements of a cluster.

**The workload.** An ad-report table of thirteen months with 3.3 billion new rows per day, 1.3 trillion in all (the talk
\"Hive on Tez and LLAP at Yahoo! JAPAN\", 2016, says \"800B+ rows of data\" and \"3.3B+ rows per day\"; thirteen months of
the latter are 1.3 trillion). 800 bytes per row before encoding is an assumption. Between 100 thousand reports per hour
(the goal in that talk, for 700 nodes) and 100 million.
";

const NOTES: &str = "
## Where the figures come from

| figure | value | source |
|---|---|---|
| CPU of a warm report | 24 µs | measured on one daemon, `docs/performance.md` (18 to 36 µs) |
| report columns in the cache | 16 bytes per row | four columns of at most 4 bytes, as `stoa-report` keeps them; an upper bound |
| cache per daemon | 512 GiB | assumption: memory and a local SSD together |
| bytes per GET | 4 MiB | `min_seek_size`, the default that merges reads |
| GETs of a cold report | 13 | assumption: one per monthly file |
| prices | $0.40 per million GETs, $5 per million PUTs | `s3_read_price`, `s3_write_price`: list prices of S3 Standard |
| PUTs of a log | 10 per second | upper limit for one daemon's log, always busy |
| flush | every 30 s, or when 256 MiB of fresh rows are held | defaults |
| heartbeats that PostgreSQL takes | 25,000 per second | measured on two cores with PostgreSQL 15 over loopback |
| row of the table of members | 100 bytes | assumption |
| LLAP's placement | jump hash over slots, dead slots probed past | Hive, `HostAffinitySplitLocationProvider` |

## Limits

- **Commits to one table.** Each flush of each daemon is a compare-and-swap of the same pointer, after three or four
  writes to the store. At 30 to 100 ms per write, some 3 to 10 commits per second are possible. The table above passes
  that between 45 and 100 daemons: larger clusters must flush less often, or let one daemon commit the files of
  several. Neither is built.
- **Moves of any table have reports on all tables ask.** One number announces them all. After a move, reports ask the database
  for a few hundredths of a second; with more than some ten commits per second in a catalog they ask nearly always, and the database answers as many
  group checks as it can. Numbers for groups of tables would help; they are not built.
- **Fresh rows on every daemon.** Every daemon receives and holds the fresh rows of all. That costs the bytes in the table
  above at any size, and messages in proportion to the number of daemons. Beyond some ten daemons, rows should
  go only to the daemons that own the table's buckets. That is not built.
- **Reads of the table of members.** Every daemon reads all rows every two seconds: bytes grow with the square
  of the number of daemons. Beyond 100 daemons, read the epoch and the rows of probed peers only.
- **All data is asked for equally often** in the misses. Real reports prefer recent days, so a cache smaller than the
  data does better than shown.
- **Buckets are of nearly one size** (within 28 %): boundaries are quantiles. A single account with more rows than a bucket
  makes its home fuller than the bound says.
- **Weights are equal.** Daemons with more cache take more; the bound holds for them in proportion.
- **Network, disks and the time of GETs** are not modelled. Neither are the CPU of scans, loads and compaction.
- **The balance of jump hash** is for splits placed independently of their size.
";

/// The whole page. Takes some seconds: it places millions of buckets.
pub fn document() -> String {
    let homes: Vec<_> = SIZES.iter().map(|daemons| Homes::of(*daemons)).collect();
    let mut text = String::from(HEAD);
    homes_table(&mut text, &homes);
    cache_table(&mut text, &homes);
    reports_table(&mut text);
    database_table(&mut text);
    text.push_str(NOTES);
    text
}

/// Appends a line. Writing to a `String` cannot fail.
fn line(text: &mut String, line: std::fmt::Arguments<'_>) {
    let _ = writeln!(text, "{line}");
}

fn homes_table(text: &mut String, homes: &[Homes]) {
    line(text, format_args!("
## Homes of buckets

Computed with the code that will place them, {BUCKETS_EACH} buckets per daemon. *Moved* are buckets with another first
home after the fullest daemon is lost, or one more has joined; 1.00 would be exactly the share of one daemon. Beside
it, LLAP's placement of as many splits: when a slot is removed from the list, half of all splits move; when the slot is
kept and probed past, its neighbour takes everything. In balance alone, LLAP's is as good: the difference is what moves,
and that the monthly files of one account have one home.

| daemons | fullest / mean | moved on loss | moved on join | daemons per account | LLAP: fullest / mean | LLAP: moved, slot removed | LLAP: fullest / mean, slot probed past | LLAP: daemons per account |
|---|---|---|---|---|---|---|---|---|"));
    for h in homes {
        line(
            text,
            format_args!(
                "| {} | {:.2} | {:.2} / N | {:.2} / (N + 1) | 1 | {:.2} | {:.0} % | {:.2} | {:.1} |",
                h.daemons,
                h.balance,
                h.moved_on_loss,
                h.moved_on_join,
                h.jump_balance,
                h.jump_moved * 100.0,
                h.jump_balance_after_loss,
                h.jump_daemons_of_account
            ),
        );
    }
}

fn cache_table(text: &mut String, homes: &[Homes]) {
    let gets = gets_for_new_data();
    line(text, format_args!("
## Cache and object store

The report columns of all rows are {:.1} TB. New data is fetched once by its home ({gets:.0} GETs per hour); without
homes every daemon would fetch it. *Cached* is the share that fits into {CACHE_GIB:.0} GiB per daemon.

| daemons | GiB per daemon for everything | cached | GETs/h for new data | dollars/h | the same without homes | GETs after a loss | log PUTs/h at most | dollars/h |
|---|---|---|---|---|---|---|---|---|", ROWS * REPORT_BYTES / 1e12));
    for h in homes {
        let n = h.daemons as f64;
        line(
            text,
            format_args!(
                "| {} | {:.0} | {:.0} % | {gets:.0} | {:.4} | {:.0} | {:.0} | {:.0} | {:.2} |",
                h.daemons,
                cache_gib(n, h.balance),
                cached_share(n) * 100.0,
                gets * GET_DOLLARS,
                gets * n,
                gets_for_loss(n, h.moved_on_loss),
                log_puts(n),
                log_puts(n) * PUT_DOLLARS
            ),
        );
    }
}

fn reports_table(text: &mut String) {
    line(text, format_args!("
## Reports

*Cores* are those that warm reports keep busy, all daemons together. *Misses* are GETs per hour of reports on data that no
cache holds, and their price per hour.

| reports/h | cores | {} |
|---|---|{}", SIZES.map(|n| format!("misses, {n} daemons")).join(" | "), "---|".repeat(SIZES.len())));
    for reports in REPORTS_PER_HOUR {
        let misses = SIZES.map(|n| {
            let gets = gets_for_misses(n as f64, reports);
            format!("{:.1} M, ${:.2}", gets / 1e6, gets * GET_DOLLARS)
        });
        let cores = reports / 3600.0 * REPORT_CPU_SECONDS;
        line(text, format_args!("| {reports:.0} | {cores:.3} | {} |", misses.join(" | ")));
    }
}

fn database_table(text: &mut String) {
    line(text, format_args!("
## Database and peers

Statements are renewals (one per daemon and second, for all its leases), reads of the members (one per two seconds), commits,
and looks for moves of pointers, under which reports ask nobody (a daemon that answers none does not look). They are the same for any number of reports. From a move
until nobody moves anything any more, reports ask the database, all of a moment with one query (a *group check*): up to 3,000 to 10,000 statements per
second and daemon. {:.0} rows per second fill
{FRESH_MIB:.0} MiB in {:.1} s, so each daemon flushes that often.

| daemons | statements/s | of {HEARTBEATS_MAX:.0} | commits/s to the table | members read, MB/s | probes/s | messages in, per daemon and s | rows in, MB/s per daemon |
|---|---|---|---|---|---|---|---|", model::rows_per_second(), seconds_until_full()));
    for daemons in SIZES {
        let n = daemons as f64;
        line(
            text,
            format_args!(
                "| {daemons} | {:.0} | {:.1} % | {:.1} | {:.1} | {:.0} | {:.0} | {:.1} |",
                statements(n),
                statements(n) / HEARTBEATS_MAX * 100.0,
                commits(n),
                member_reads_mb(n),
                n * (n - 1.0).min(stoa_cluster::membership::PROBED_MAX as f64),
                messages(n),
                pushed_mb(n)
            ),
        );
    }
}
