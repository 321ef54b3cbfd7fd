//! Other processes of this machine.

use std::fs;

/// `PF_EXITING` of Linux' `include/linux/sched.h`: the process gives back what it holds.
const EXITING: u64 = 0x4;

/// SIGKILL in the masks of `/proc/PID/status`, where bit 0 is signal 1.
const KILL: u64 = 1 << (9 - 1);

/// Whether the process is gone, or is about to be: killed, or giving back what it holds.
///
/// After `kill -9` has returned, a process still has its files and locks for a while, the longer the
/// more memory it has and the busier the machine is. `false` where the operating system has no
/// `/proc` to ask. A number that belongs to another process by now is judged as that process.
pub fn is_ending(process: u32) -> bool {
    if fs::metadata("/proc/self/stat").is_err() {
        return false;
    }
    let (Ok(stat), Ok(status)) = (
        fs::read_to_string(format!("/proc/{process}/stat")),
        fs::read_to_string(format!("/proc/{process}/status")),
    ) else {
        return true;
    };
    is_exiting(&stat) || is_killed(&status)
}

/// Reads `/proc/PID/stat`: `PID (name) state ppid pgrp session tty tpgid flags …`; proc(5).
fn is_exiting(stat: &str) -> bool {
    // The name may hold spaces and parentheses.
    let Some((_, fields)) = stat.rsplit_once(')') else { return false };
    let mut fields = fields.split_ascii_whitespace();
    let state = fields.next().unwrap_or_default();
    let flags = fields.nth(5).and_then(|flags| flags.parse::<u64>().ok()).unwrap_or(0);
    matches!(state, "Z" | "X") || flags & EXITING != 0
}

/// Reads `/proc/PID/status`: whether SIGKILL waits for one thread (`SigPnd`) or for all (`ShdPnd`).
fn is_killed(status: &str) -> bool {
    status
        .lines()
        .filter_map(|line| line.strip_prefix("SigPnd:").or_else(|| line.strip_prefix("ShdPnd:")))
        .filter_map(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .any(|mask| mask & KILL != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_behind_any_name() {
        let check = |stat: &str, expected: bool| assert_eq!(is_exiting(stat), expected, "{stat}");
        check("7 (stoa) S 1 7 7 0 -1 4194304 1 2", false);
        check("7 (stoa) R 1 7 7 0 -1 4194308 1 2", true);
        check("7 (a) Z (b) S 1 7 7 0 -1 4194304 1 2", false);
        check("7 (stoa) Z 1 7 7 0 -1 4194304 1 2", true);
        check("7 (stoa", false);
        let check = |status: &str, expected: bool| assert_eq!(is_killed(status), expected);
        check("Name:\tstoa\nSigPnd:\t0000000000000000\nShdPnd:\t0000000000004000\n", false);
        check("Name:\tstoa\nSigPnd:\t0000000000000100\nShdPnd:\t0000000000000000\n", true);
        check("Name:\tstoa\nSigPnd:\t0000000000000000\nShdPnd:\t0000000000000100\n", true);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_process_is_ending_once_it_is_killed() {
        let mut child = std::process::Command::new("sleep").arg("600").spawn().unwrap();
        assert!(!is_ending(child.id()));
        child.kill().unwrap();
        // Not yet waited for: it is dying, or a zombie.
        assert!(is_ending(child.id()));
        child.wait().unwrap();
        assert!(is_ending(child.id()));
    }
}
