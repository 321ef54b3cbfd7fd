//! Thousands of histories without a violation, and mistakes that histories must find.
//!
//! `STOA_CLUSTER_SEEDS` says how many seeds are tried, `STOA_SIMULATION_SEED` repeats one.

use stoa_sim::history::{Mutation, Summary, run, trace};

/// Seeds that are tried, from 0 on.
const SEEDS: &str = "STOA_CLUSTER_SEEDS";

/// The one seed to try.
const SEED: &str = "STOA_SIMULATION_SEED";

const SEEDS_DEFAULT: u64 = 2000;

/// Seeds within which a mistake must be found.
const SEEDS_OF_A_MUTATION: u64 = 3000;

/// Lines of the trace that a failure shows.
const TRACE_LINES: usize = 200;

#[allow(clippy::disallowed_methods, reason = "the seed comes from whoever runs the test")]
fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

#[test]
fn histories_keep_every_promise() {
    let seeds = match number(SEED) {
        Some(seed) => seed..seed + 1,
        None => 0..number(SEEDS).unwrap_or(SEEDS_DEFAULT),
    };
    let mut total = Summary::default();
    for seed in seeds.clone() {
        match run(seed, None) {
            Ok(summary) => total += summary,
            Err(violation) => {
                println!("{}", trace(seed, None, TRACE_LINES).join("\n"));
                panic!("{violation}; {SEED}={seed} repeats it");
            }
        }
    }
    // Histories in which nothing happens keep promises, too.
    let count = seeds.end - seeds.start;
    assert!(total.acknowledged > count * 100 && total.reads > count * 100, "{total:?}");
}

#[test]
fn a_seed_decides_everything() {
    assert_eq!(run(7, None), run(7, None));
    assert_eq!(trace(7, None, usize::MAX), trace(7, None, usize::MAX));
}

fn finds(mutation: Mutation, text: &str) {
    let mut found = (0..SEEDS_OF_A_MUTATION).filter_map(|seed| run(seed, Some(mutation)).err());
    let violation = found.find(|violation| violation.what.contains(text));
    assert!(violation.is_some(), "{mutation:?} is not found in {SEEDS_OF_A_MUTATION} histories");
}

macro_rules! mutations {
    ($($test:ident: $mutation:ident is $text:literal,)*) => {
        $(
            #[test]
            fn $test() {
                finds(Mutation::$mutation, $text);
            }
        )*

        #[test]
        fn each_mutation_has_a_test() {
            let tested = [$(Mutation::$mutation),*];
            assert!(Mutation::ALL.iter().all(|mutation| tested.contains(mutation)));
        }
    };
}

mutations! {
    a_skipped_claim: SkipClaim is "acknowledged, but neither in",
    an_acknowledgement_before_peers_are_told: AcknowledgeBeforeTold is "an exact read misses row",
    a_deadline_from_the_answer: DeadlineFromAnswer is "both hold",
    expiry_by_an_own_wall_clock: ExpiryByOwnWallClock is "both hold",
    expiry_by_the_database_clock_alone: ExpiryByDatabaseClockAlone is "both hold",
    deleted_claims: DeleteClaims is "acknowledged, but neither in",
    ignored_pins: IgnorePins is "is deleted, but process",
    a_commit_without_its_token: CommitWithoutToken is "which another has",
    rows_shown_before_they_are_durable: ShowBeforeDurable is "a session misses row",
    a_clock_read_before_a_pause: StaleClock is "an exact read misses row",
    a_flush_retried_blindly: RetryFlushBlindly is "is shown twice",
    a_dead_peer_that_is_not_waited_for: DeadIsOver is "an exact read misses row",
}
