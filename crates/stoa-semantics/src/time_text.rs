//! Times of the day as text. Arrow's own formatter knows no `24:00:00`, which PostgreSQL's `time` has.

/// Microseconds since midnight, 0 to 24 hours, as PostgreSQL writes them: `10:11:12.5`.
pub fn time_text(micros: i64) -> String {
    let (seconds, fraction) = (micros.div_euclid(1_000_000), micros.rem_euclid(1_000_000));
    let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
    let whole = format!("{hours:02}:{minutes:02}:{:02}", seconds % 60);
    match fraction {
        0 => whole,
        _ => format!("{whole}.{fraction:06}").trim_end_matches('0').to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_in_postgresql() {
        for (micros, text) in [
            (0, "00:00:00"),
            (36_672_500_000, "10:11:12.5"),
            (86_399_999_999, "23:59:59.999999"),
            (86_400_000_000, "24:00:00"),
        ] {
            assert_eq!(time_text(micros), text);
        }
    }
}
