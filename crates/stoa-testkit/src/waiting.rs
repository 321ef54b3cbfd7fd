//! Waiting for facts, and queries that wait to be stopped.

use std::time::Duration;

/// A query that runs for hours unless it is stopped, without rows before its end.
pub const ENDLESS: &str =
    "SELECT count(*) FROM generate_series(1, 1000000000000) AS t(n) WHERE n % 7 = 8";

/// Waits for a fact, at most 20 seconds.
///
/// # Panics
/// With `what` if the fact does not come.
pub async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let wait = async {
        while !holds() {
            stoa_env::timer::sleep(Duration::from_millis(2)).await;
        }
    };
    stoa_env::timer::timeout(Duration::from_secs(20), wait).await.expect(what);
}
