//! Whether the other side of a connection is alive.
//!
//! Time is counted in ticks, not read from a clock: a process that was stopped itself, and goes on, must first
//! read what has come meanwhile.

use std::time::Duration;

use stoa_env::timer::{self, MissedTickBehavior};

use crate::options::PeerOptions;
use crate::queue::Queue;
use crate::traffic::Traffic;

/// Ticks from the last byte to the question for a sign of life.
const PING_TICKS: u32 = 4;

/// Asks for signs of life through `queue`, and is done when none comes. While nothing is read here,
/// the peer is told that this side lives, and is dead if it takes no bytes, either.
pub(crate) async fn stops(traffic: &Traffic, queue: &Queue, options: &PeerOptions) {
    let tick = (options.ping_interval / PING_TICKS).max(Duration::from_millis(1));
    let timeout_ticks = options.ping_timeout.as_micros().div_ceil(tick.as_micros());
    let ticks_max = PING_TICKS.saturating_add(u32::try_from(timeout_ticks).unwrap_or(u32::MAX));
    let mut interval = timer::interval(tick);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    interval.tick().await;
    let (mut read, mut written) = (traffic.bytes_read(), traffic.bytes_written());
    let (mut unheard, mut silent, mut stuck) = (0_u32, 0_u32, 0_u32);
    loop {
        interval.tick().await;
        let paused = traffic.is_paused();
        let before = (read, written);
        (read, written) = (traffic.bytes_read(), traffic.bytes_written());
        unheard = if read == before.0 { unheard.saturating_add(1) } else { 0 };
        // What the peer has said while nothing is read here counts once it is read.
        silent = if read == before.0 && !paused { silent.saturating_add(1) } else { 0 };
        stuck = match queue.is_empty() || written != before.1 {
            true => 0,
            false => stuck.saturating_add(1),
        };
        if unheard > 0 && unheard.is_multiple_of(PING_TICKS) {
            queue.ping();
        }
        match paused {
            true if stuck >= ticks_max => return,
            false if silent >= ticks_max => return,
            _ => {}
        }
    }
}
