//! How many files and sockets the process may have open at once.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Enough for any load; where nothing bounds them, no more are asked for.
const ENOUGH: u64 = 1 << 20;

/// Raises the limit as far as the process may, and returns it. Descriptors have numbers below it.
pub fn raise_limit() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let now = limit.current.unwrap_or(ENOUGH);
    let wanted = limit.maximum.unwrap_or(ENOUGH).min(ENOUGH);
    if now >= wanted {
        return now;
    }
    let raised = Rlimit { current: Some(wanted), maximum: limit.maximum };
    setrlimit(Resource::Nofile, raised).map_or(now, |()| wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_raised_to_what_is_allowed() {
        let limit = raise_limit();
        let after = getrlimit(Resource::Nofile);
        assert!(limit > 0);
        assert_eq!(after.current.unwrap_or(ENOUGH), limit);
        let allowed = after.maximum.unwrap_or(ENOUGH).min(ENOUGH);
        assert!(limit >= allowed || after.maximum.is_none());
    }
}
