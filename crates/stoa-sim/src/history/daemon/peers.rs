//! What other daemons say to this one.

use stoa_cluster::fresh::{OwnerEvent, ReplicaEvent};
use stoa_cluster::membership::MemberEvent;
use stoa_cluster::{DaemonId, LogId, Monotonic};

use super::{Daemon, Out};
use crate::history::Mutation;
use crate::history::message::PeerMessage;

impl Daemon {
    pub(super) fn tell(&mut self, log: LogId, to: u64) {
        let (Some(me), Some(owner)) = (self.membership.me(), self.owners.get(&log)) else { return };
        if *owner != self.id {
            self.out.push(Out::Peer { to: *owner, message: PeerMessage::Told { by: me, log, to } });
        }
    }

    pub(super) fn peer(&mut self, from: DaemonId, message: PeerMessage, now: Monotonic) {
        let mut answer = |message| self.out.push(Out::Peer { to: from, message });
        match message {
            PeerMessage::Push { to, mut push, records } => {
                if self.membership.me() != Some(to) {
                    return;
                }
                if self.mutation == Some(Mutation::ShowBeforeDurable) {
                    push.durable = push.durable.max(push.to);
                }
                self.owners.insert(push.log, from);
                let version = self.version.as_ref();
                let is_retired = version.is_some_and(|version| version.retired.contains(&push.log));
                let position =
                    version.and_then(|version| version.positions.get(&push.log).copied());
                if !is_retired {
                    let new = records.into_iter().filter(|(s, _)| *s > position.unwrap_or(0));
                    self.fresh.entry(push.log).or_default().extend(new);
                }
                self.replica_event(ReplicaEvent::Pushed(push));
            }
            PeerMessage::Told { by, log, to } if log == self.own.log => {
                self.owner_event(OwnerEvent::Told { peer: by, to }, now);
            }
            PeerMessage::Hello { by, log } if log == self.own.log => {
                self.owner_event(OwnerEvent::Hello { peer: by }, now);
            }
            PeerMessage::Told { .. } | PeerMessage::Hello { .. } => {}
            PeerMessage::Probe { probe } => answer(PeerMessage::Answer { probe }),
            PeerMessage::Answer { probe } => {
                drop(self.membership.on(MemberEvent::Answered { peer: from, probe }, now));
            }
            PeerMessage::Report { report } => {
                if self.version.is_some() && self.answers_reports(now) {
                    self.out
                        .push(Out::Peer { to: from, message: PeerMessage::Reported { report } });
                }
            }
            PeerMessage::Reported { report } => self.reported(report),
        }
    }
}
