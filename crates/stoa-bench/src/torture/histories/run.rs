//! Rounds of a torture by histories, one after another, with and without kills.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use stoa_env::clock::monotonic;
use stoa_env::task;
use stoa_error::{Error, Result};
use tokio::task::JoinHandle;

use super::link::{Link, integers};
use super::name_sessions;
use super::op::{End, Span, wrong};
use super::round::{Name, Round};
use super::sessions::{self, Kind, check_bank, check_family};
use super::set::SetRead;
use crate::server_process::ServerProcess;
use crate::torture::Death;
use crate::torture::random::Random;

/// Statements of a round that nobody kills.
const STATEMENTS_PER_ROUND: u64 = 1500;

/// What to do.
#[derive(Clone, Debug)]
pub struct HistoryOptions {
    /// The `stoa` binary.
    pub program: PathBuf,
    /// An empty directory; it is left as it is where something is wrong.
    pub warehouse: PathBuf,
    /// Statements to be sent while nobody is killed.
    pub statements: u64,
    /// Servers to be killed afterwards.
    pub kills: u32,
    /// Servers at a time, 1 or 2; more with a catalog that they share.
    pub servers: usize,
    /// A new database of PostgreSQL, by which the servers are a cluster.
    pub catalog: Option<String>,
    /// Whether statements read no other rows than they change.
    pub plain: bool,
    /// Equal seeds make equal choices; what the processor makes of them differs.
    pub seed: u64,
}

/// What happened. Nothing was wrong, or there would be an error instead.
#[derive(Clone, Debug, Default, Serialize)]
pub struct HistoryResult {
    /// Rounds, each with tables of its own.
    pub rounds: u64,
    /// Statements that were sent.
    pub statements: u64,
    /// Servers that were killed, or that died at a fail point.
    pub kills: u32,
    /// Rows that reads of a whole table showed.
    pub rows_read: u64,
    /// Increments that were acknowledged.
    pub increments: u64,
    /// Rows that were acknowledged for names under which tables come and go.
    pub rows_named: u64,
    /// Statements whose outcome was not known.
    pub unknown: u64,
    /// Reports that other daemons of the cluster answered, of servers that were not killed.
    pub forwarded: u64,
    /// How long it all took.
    pub seconds: f64,
}

/// Runs until as many statements were sent and servers killed as `options` asks for.
///
/// # Errors
/// `Corrupt` where what sessions saw cannot be; `Unavailable` where a server does not start or
/// answer.
pub async fn run_histories(
    options: &HistoryOptions,
    progress: &mut dyn FnMut(&str),
) -> Result<HistoryResult> {
    let begin = monotonic();
    let mut runner =
        Runner { options, random: Random::of(options.seed), result: HistoryResult::default() };
    let mut servers = Vec::new();
    while runner.result.statements < options.statements || runner.result.kills < options.kills {
        let death = match runner.result.statements < options.statements {
            true => None,
            false => Some(Death::pick(runner.random.next())),
        };
        let number = runner.result.rounds;
        runner.round(&mut servers, death.as_ref()).await.map_err(|error| {
            let how = death.map_or_else(String::new, |death| format!(", whose server {death}"));
            error.at(format!("round {number}, seed {}{how}", options.seed))
        })?;
        if runner.result.rounds.is_multiple_of(20) {
            let HistoryResult { rounds, statements, kills, .. } = runner.result;
            progress(&format!("{rounds} rounds, {statements} statements, {kills} kills"));
        }
    }
    for server in servers {
        if options.catalog.is_some() {
            let client = server.address().postgres().await?;
            runner.result.forwarded += forwarded_by(&client).await?;
        }
        ServerProcess::stop(server).await?;
    }
    runner.result.seconds = begin.elapsed().as_secs_f64();
    Ok(runner.result)
}

/// Reports that other daemons answered for this one.
async fn forwarded_by(client: &tokio_postgres::Client) -> Result<u64> {
    let asked = client.query_one("SELECT reports_forwarded FROM system.cluster", &[]).await;
    let row = asked.map_err(|e| Error::unavailable("a daemon does not count").with_source(e))?;
    Ok(u64::try_from(row.get::<_, i64>(0)).unwrap_or_default())
}

struct Runner<'a> {
    options: &'a HistoryOptions,
    random: Random,
    result: HistoryResult,
}

impl Runner<'_> {
    async fn round(
        &mut self,
        servers: &mut Vec<ServerProcess>,
        death: Option<&Death>,
    ) -> Result<()> {
        while servers.len() < self.options.servers.max(1) {
            servers.push(self.start("").await?);
        }
        let addresses = || servers.iter().map(ServerProcess::address).collect::<Vec<_>>();
        let number = self.result.rounds;
        let left = self.options.statements.saturating_sub(self.result.statements);
        let most = if death.is_some() { u64::MAX } else { STATEMENTS_PER_ROUND.min(left) };
        let is_faulty = matches!(death, Some(Death::Fault(..)));
        let mut round = Round::new(number, addresses(), most, is_faulty, self.options.plain);
        {
            let link = Link::open(0, &round.servers[0], round.clock).await?;
            round.prepare(&link).await?;
        }
        if let Some(death) = death.filter(|death| !death.failpoints().is_empty()) {
            // Armed only now: the round's tables are there.
            servers.remove(0).stop().await?;
            let armed = match self.start(&death.failpoints()).await {
                // Points are passed while the log is replayed, too.
                Err(_) => self.start("").await?,
                Ok(armed) => armed,
            };
            servers.insert(0, armed);
            round.servers = servers.iter().map(ServerProcess::address).collect();
        }
        let round = Arc::new(round);
        let sessions = self.sessions(&round).await?;
        match death {
            None => {
                let mut stop = round.stop.subscribe();
                let died = servers.iter_mut().map(|server| Box::pin(server.wait()));
                tokio::select! {
                    _ = stop.wait_for(|stop| *stop) => {}
                    _ = futures::future::select_all(died) => {
                        return Err(Error::corrupt("a server died that nobody killed"));
                    }
                }
            }
            Some(death) => {
                let mut dying = servers.remove(0);
                let after = death.kill_after().max(Duration::from_millis(100));
                if stoa_env::timer::timeout(after, dying.wait()).await.is_err() {
                    dying.kill().await?;
                }
                self.result.kills += 1;
                round.stop.send_replace(true);
                servers.insert(0, self.start("").await?);
            }
        }
        for session in sessions {
            session.await.map_err(|e| Error::internal("a session failed").with_source(e))?;
        }
        let links = self.links(&round, servers).await?;
        self.check(&round, &links).await
    }

    async fn start(&self, failpoints: &str) -> Result<ServerProcess> {
        let warehouse = self.options.warehouse.display().to_string();
        let mut arguments = vec!["--warehouse", &warehouse, "--log-level", "off"];
        if let Some(catalog) = &self.options.catalog {
            arguments.extend(["--catalog", catalog, "--shared-table-size", "0"]);
        }
        let variables = [("STOA_FAILPOINTS", failpoints)];
        ServerProcess::start_with(&self.options.program, &arguments, &variables).await
    }

    async fn links(&self, round: &Round, servers: &[ServerProcess]) -> Result<Vec<Link>> {
        let mut links = Vec::new();
        for (number, server) in servers.iter().enumerate() {
            links.push(Link::open(number, &server.address(), round.clock).await?);
        }
        Ok(links)
    }

    /// Sessions of all kinds on all servers.
    async fn sessions(&mut self, round: &Arc<Round>) -> Result<Vec<JoinHandle<()>>> {
        use Kind::{Banker, Counters, Family, Keeper, Rows};
        let mut sessions = Vec::new();
        let last = round.servers.len() - 1;
        for (server, address) in round.servers.iter().enumerate() {
            for kind in [Rows, Rows, Counters, Counters, Keeper, Family, Banker] {
                // A child is not to be seen without its parent, which another server's log may hold, unless
                // they show each other's rows.
                let is_alone = self.options.catalog.is_none();
                if matches!(kind, Family) && server > 0 && is_alone {
                    continue;
                }
                match Link::open(server, address, round.clock).await {
                    Ok(link) => {
                        let work =
                            sessions::work(kind, Arc::clone(round), link, self.random.fork());
                        sessions.push(task::spawn(work));
                    }
                    // It has died at its fail point.
                    Err(_) => break,
                }
            }
        }
        for place in 0..round.names.len() {
            // Writers at the first server, changes at the last.
            for writer in 0..3 {
                let server = if writer == 0 { last } else { 0 };
                let link = Link::open(server, &round.servers[server], round.clock).await;
                let Ok(link) = link else { continue };
                let (round, random) = (Arc::clone(round), self.random.fork());
                sessions.push(match writer {
                    0 => task::spawn(name_sessions::change(round, place, link, random)),
                    _ => task::spawn(name_sessions::write(round, place, link, random)),
                });
            }
        }
        Ok(sessions)
    }

    /// Brings everything into files, reads it, checks the histories, and drops the tables.
    async fn check(&mut self, round: &Round, links: &[Link]) -> Result<()> {
        let first = links.first().ok_or_else(|| Error::internal("there is no server"))?;
        if let Some(error) = round.broken.lock().take() {
            return Err(error);
        }
        let tables = ["s", "p", "k", "c", "b"].map(|kind| round.table(kind));
        for link in links {
            for table in &tables {
                link.must(&format!("FLUSH TABLE {table}")).await?;
            }
        }
        check_bank(round, first).await;
        check_family(round, first).await;
        check_twins(round, first).await?;
        for sees_all in [true, true] {
            let ran = first.run(&format!("SELECT k FROM {}", tables[0])).await;
            let rows = ran.answer.ok_or_else(|| Error::unavailable("the last read failed"))?;
            let rows = integers(&rows, 0);
            round.rows.lock().reads.push(SetRead { span: ran.span, rows, sees_all });
            let ran = first.run(&format!("SELECT k, v FROM {}", tables[3])).await;
            let rows = ran.answer.ok_or_else(|| Error::unavailable("the last read failed"))?;
            let pairs = integers(&rows, 0).into_iter().zip(integers(&rows, 1)).collect();
            round.counters.lock().reads.push((ran.span, pairs));
        }
        if let Some(error) = round.broken.lock().take() {
            return Err(error);
        }
        let rows = std::mem::take(&mut *round.rows.lock());
        let counters = std::mem::take(&mut *round.counters.lock());
        let unknown = |span: &Span| span.end == End::Unknown;
        let spans = rows.inserts.iter().chain(&rows.deletes).chain(&counters.increments);
        self.result.unknown += spans.filter(|(_, span)| unknown(span)).count() as u64;
        self.result.rows_read += rows.check(&tables[0])?;
        self.result.increments += counters.check(&tables[3])?;
        for name in &round.names {
            self.result.rows_named += check_name(name, links).await?;
        }
        for table in &tables {
            first.must(&format!("DROP TABLE {table}")).await?;
        }
        self.result.statements += round.statements();
        self.result.rounds += 1;
        Ok(())
    }
}

/// Rows of transactions are there if they were acknowledged, and not if they were refused.
async fn check_twins(round: &Round, link: &Link) -> Result<()> {
    let there = integers(&link.must(&format!("SELECT k FROM {}", round.table("p"))).await?, 0);
    for (row, span) in round.twins.lock().iter() {
        match (span.end, there.contains(row)) {
            (End::Done, false) => {
                return Err(wrong(format!("rows {row} were committed and are gone")));
            }
            (End::Refused, true) => {
                return Err(wrong(format!("rows {row} were refused and are there")));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Reads the tables that are left of a name, checks, and drops them.
async fn check_name(name: &Name, links: &[Link]) -> Result<u64> {
    let mut history = std::mem::take(&mut *name.history.lock());
    let mut kept = std::mem::take(&mut *name.kept.lock());
    let left = kept_names(name, links).await?;
    let known: Vec<String> = kept.iter().flatten().cloned().collect();
    // At most one table is there that is not known under its name: the newest, renamed.
    let renamed = left.iter().find(|found| !known.contains(found)).cloned();
    if let (Some(renamed), Some(last)) = (renamed, kept.last_mut()) {
        *last = Some(renamed);
    }
    for (life, table) in history.lives.iter_mut().zip(&kept) {
        let Some(table) = table.as_ref().filter(|table| left.contains(table)) else { continue };
        life.rows = read(name, links, table).await?;
    }
    let checked = history.check(&name.name)?;
    for table in &left {
        match name.is_cells {
            true => links[0].address.hql(&format!("DROP TABLE {table}")).await?,
            false => links[0].must(&format!("DROP TABLE {table}")).await.map(drop)?,
        }
    }
    Ok(checked)
}

/// The tables that are there and have had the name.
async fn kept_names(name: &Name, links: &[Link]) -> Result<Vec<String>> {
    let sql = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'";
    let messages = links[0].must(sql).await?;
    let tables = messages.iter().filter_map(|message| match message {
        tokio_postgres::SimpleQueryMessage::Row(row) => row.get(0),
        _ => None,
    });
    let renamed = format!("{}_kept", name.name);
    let had = |table: &&str| *table == name.name || table.starts_with(&renamed);
    Ok(tables.filter(had).map(str::to_owned).collect())
}

async fn read(name: &Name, links: &[Link], table: &str) -> Result<Vec<i64>> {
    // What a server has in its log the others do not see.
    for link in links {
        link.must(&format!("FLUSH TABLE {table}")).await?;
    }
    let sql = match name.is_cells {
        true => format!("SELECT row FROM \"{table}$cells\""),
        false => format!("SELECT k FROM {table}"),
    };
    Ok(integers(&links[0].must(&sql).await?, 0))
}
