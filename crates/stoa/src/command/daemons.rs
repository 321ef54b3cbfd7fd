//! `stoa daemons`: who is a member of the cluster, and who shall not be one any more.
//!
//! Asks the catalog's database, not a daemon: it works while none answers.

use std::fmt::Write as _;
use std::io::Write;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use stoa_catalog::{Cluster, ClusterState};
use stoa_cluster::DaemonId;
use stoa_cluster::lease::Holder;
use stoa_cluster::membership::MemberState;
use stoa_error::{Error, Result};
use stoa_table::CATALOG_NAME;

use super::settle;
use crate::config::{SettingFlags, scope};
use crate::failure::Failure;
use crate::runtime::{block_on, start_log, warehouse_options};
use crate::shell::output_error;

/// What to do with daemons.
#[derive(Debug, Subcommand)]
pub enum DaemonsCommand {
    /// List the daemons of the cluster
    List(ListArgs),
    /// Make a daemon end: it takes no new requests, finishes those it has, and leaves
    Drain(DaemonArgs),
    /// Forget a dead daemon
    Remove(DaemonArgs),
}

/// Arguments of `list`.
#[derive(Debug, Args)]
pub struct ListArgs {
    #[command(flatten)]
    settings: SettingFlags<{ scope::ENGINE }>,
}

/// Arguments of the others.
#[derive(Debug, Args)]
pub struct DaemonArgs {
    /// The daemon's id, as `stoa daemons list` shows it
    #[arg(value_name = "ID")]
    id: String,

    #[command(flatten)]
    settings: SettingFlags<{ scope::ENGINE }>,
}

pub fn run(command: DaemonsCommand, file: Option<PathBuf>) -> std::result::Result<(), Failure> {
    let settings = match &command {
        DaemonsCommand::List(args) => &args.settings,
        DaemonsCommand::Drain(args) | DaemonsCommand::Remove(args) => &args.settings,
    };
    let resolved = settle(settings, file)?;
    start_log(&resolved, true);
    block_on(&resolved.config, async {
        let place = warehouse_options(&resolved.config)?.catalog_place()?;
        let catalog = place.open(CATALOG_NAME).await?;
        let cluster = catalog.cluster().ok_or_else(|| {
            Error::invalid(format!("the catalog {place} is not shared by daemons"))
                .with_hint("name one in PostgreSQL: --catalog postgres://USER@HOST/DATABASE")
        })?;
        let text = match command {
            DaemonsCommand::List(_) => list(&cluster.state().await?),
            DaemonsCommand::Drain(args) => drain(&cluster, parse(&args.id)?).await?,
            DaemonsCommand::Remove(args) => remove(&cluster, parse(&args.id)?).await?,
        };
        catalog.close().await;
        Ok(std::io::stdout().write_all(text.as_bytes()).map_err(output_error)?)
    })
}

fn parse(id: &str) -> Result<DaemonId> {
    let bits = u64::from_str_radix(id, 16);
    bits.map(DaemonId::from_bits).map_err(|source| {
        Error::invalid(format!("{id:?} is no id of a daemon"))
            .with_hint("`stoa daemons list` shows the ids")
            .with_source(source)
    })
}

fn list(state: &ClusterState) -> String {
    let mut text = format!(
        "{:16}  {:8}  {:20}  {:24}  {:24}  {}\n",
        "daemon", "state", "host", "postgresql", "http", "build"
    );
    for (id, info) in &state.daemons {
        let member = state.members.get(*id).map(|member| member.state);
        let state = member.unwrap_or(MemberState::Dead).name();
        let (host, pg, http) = (&info.name, &info.pg_address, &info.http_address);
        let id = id.to_string();
        let _ = writeln!(text, "{id:16}  {state:8}  {host:20}  {pg:24}  {http:24}  {}", info.build);
    }
    text
}

fn holder(state: &ClusterState, id: DaemonId) -> Result<Holder> {
    let member = state.members.get(id).ok_or_else(|| {
        Error::not_found(format!("there is no daemon {id}"))
            .with_hint("`stoa daemons list` shows the ids")
    })?;
    Ok(Holder { daemon: id, incarnation: member.incarnation })
}

async fn drain(cluster: &Cluster, id: DaemonId) -> Result<String> {
    let holder = holder(&cluster.state().await?, id)?;
    match cluster.set_state(holder, MemberState::Draining).await? {
        true => Ok(format!("daemon {id} drains, and ends when it has finished\n")),
        false => Err(Error::invalid(format!("daemon {id} is dead"))
            .with_hint("`stoa daemons remove` forgets it")),
    }
}

async fn remove(cluster: &Cluster, id: DaemonId) -> Result<String> {
    holder(&cluster.state().await?, id)?;
    cluster.remove(id).await?;
    Ok(format!("daemon {id} is forgotten\n"))
}
