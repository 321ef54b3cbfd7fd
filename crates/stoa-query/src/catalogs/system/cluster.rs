//! Figures of the cluster.

use stoa_figures::{ClusterEvent, ClusterFigures, Daemon, ThisDaemon};
use stoa_member::{Member, MemberHappened, MemberStatus, MembersStatus};

use crate::engine::Engine;
use crate::tables::homes::Homes;

/// What this server has of its cluster; `None` where there is none.
pub(super) fn cluster(engine: &Engine) -> Option<ClusterFigures> {
    let status = engine.member()?.status();
    let homes = engine.handles().data.homes().map(Homes::counts).unwrap_or_default();
    let spread = engine.handles().runner.spread().map(|spread| spread.counts());
    let spread = spread.unwrap_or_default();
    let up = status.members.iter().filter(|member| member.is_up()).count();
    Some(ClusterFigures {
        epoch: status.epoch,
        exact: status.exact,
        up: up as u64,
        logs: status.logs.len() as u64,
        logs_orphaned: status.logs.iter().filter(|log| !log.alive).count() as u64,
        takeovers: status.takeovers,
        copied_rows: status.copied_rows,
        copied_bytes: status.copied_bytes as u64,
        shipping_bytes: status.shipping_bytes as u64,
        reports_forwarded: homes.forwarded,
        reports_hedged: homes.hedged,
        reports_for_others: homes.for_others,
        reports_in_parts: homes.in_parts,
        statements_distributed: spread.spread,
        statements_distributed_failed: spread.failed,
        statements_for_others: spread.for_others,
    })
}

/// Its daemons.
pub(super) fn daemons(engine: &Engine) -> Vec<Daemon> {
    let Some(member) = engine.member() else { return Vec::new() };
    let status = member.status();
    status.members.iter().map(|daemon| figures(&status, daemon)).collect()
}

fn figures(status: &MembersStatus, daemon: &MemberStatus) -> Daemon {
    let info = daemon.info.clone();
    let exchanged = daemon.exchanged.as_ref();
    Daemon {
        daemon: info.id.to_string(),
        host: info.name,
        state: daemon.state.name().to_owned(),
        is_this: info.id == status.me,
        is_reached: daemon.routed,
        incarnation: daemon.incarnation,
        joined_unix_ms: daemon.life.map(|life| life.joined_at_ms),
        state_since_unix_ms: daemon.life.map(|life| life.state_since_ms),
        peer_address: info.peer_address,
        pg_address: info.pg_address,
        http_address: info.http_address,
        flight_address: info.flight_address,
        zone: info.zone,
        build: info.build,
        executors: info.cores.into(),
        cache_bytes: info.cache_bytes,
        calls: exchanged.map_or(0, |peer| peer.calls),
        calls_failed: exchanged.map_or(0, |peer| peer.failures),
        calls_in_flight: exchanged.map_or(0, |peer| peer.in_flight as u64),
        round_trip_us: exchanged.map_or(0, |peer| peer.round_trip_us),
    }
}

/// Who this one is; `None` where there is no cluster.
pub(super) fn this_daemon(engine: &Engine) -> Option<ThisDaemon> {
    let member = engine.member()?;
    let status = member.status();
    let own = status.members.into_iter().find(|daemon| daemon.info.id == status.me);
    let named = own.map(|own| ThisDaemon {
        host: own.info.name,
        zone: own.info.zone,
        build: own.info.build,
        ..ThisDaemon::default()
    });
    Some(ThisDaemon {
        daemon: status.me.to_string(),
        is_member: !member.is_ended(),
        ..named.unwrap_or_default()
    })
}

/// What happened, the oldest first.
pub(super) fn events(engine: &Engine) -> Vec<ClusterEvent> {
    let happened = engine.member().map(Member::happened).unwrap_or_default();
    let event = |event: MemberHappened| ClusterEvent {
        at_unix_ms: event.at_ms,
        event: event.kind.name().to_owned(),
        daemon: event.daemon.map(|daemon| daemon.to_string()),
        incarnation: event.incarnation,
        host: event.host,
        by: event.by.map(|daemon| daemon.to_string()),
        detail: event.detail,
    };
    happened.into_iter().map(event).collect()
}
