//! Byte run-length encoding: runs of 3–130 equal bytes, or 1–128 literals.
//!
//! ```text
//! run      header = length - 3 (0..=127), value
//! literals header = -length as i8, bytes
//! ```

const RUN_MIN: usize = 3;
const RUN_MAX: usize = 130;
const LITERALS_MAX: usize = 128;

/// Appends all of `values` as complete runs.
pub(crate) fn encode(values: &[u8], out: &mut Vec<u8>) {
    let mut literals_from = 0;
    let mut at = 0;
    while at < values.len() {
        let run = run_length(&values[at..]);
        if run >= RUN_MIN {
            write_literals(&values[literals_from..at], out);
            out.extend_from_slice(&[(run - RUN_MIN) as u8, values[at]]);
            literals_from = at + run;
        }
        at += run;
    }
    write_literals(&values[literals_from..], out);
}

/// How many of the first bytes are equal, at most [`RUN_MAX`].
#[inline]
fn run_length(values: &[u8]) -> usize {
    let first = values[0];
    values.iter().take(RUN_MAX).take_while(|value| **value == first).count()
}

fn write_literals(values: &[u8], out: &mut Vec<u8>) {
    for part in values.chunks(LITERALS_MAX) {
        out.push((part.len() as u8).wrapping_neg());
        out.extend_from_slice(part);
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A decoder that shares nothing with the encoder.
    pub(crate) fn decode(mut bytes: &[u8]) -> Vec<u8> {
        let mut values = Vec::new();
        while let [header, rest @ ..] = bytes {
            if *header < 128 {
                values.extend(std::iter::repeat_n(rest[0], usize::from(*header) + 3));
                bytes = &rest[1..];
            } else {
                let length = 256 - usize::from(*header);
                values.extend_from_slice(&rest[..length]);
                bytes = &rest[length..];
            }
        }
        values
    }

    #[test]
    fn known_bytes() {
        let check = |values: &[u8], expected: &[u8]| {
            let mut out = Vec::new();
            encode(values, &mut out);
            assert_eq!(out, expected, "{values:?}");
        };
        check(&[], &[]);
        check(&[0; 100], &[0x61, 0x00]);
        check(&[0x44, 0x45], &[0xfe, 0x44, 0x45]);
        check(&[1, 2, 7, 7, 7, 3], &[0xfe, 1, 2, 0, 7, 0xff, 3]);
    }

    proptest! {
        #[test]
        fn values_survive(values in prop::collection::vec((0u8..4, 1usize..200), 0..40)) {
            let values: Vec<u8> =
                values.into_iter().flat_map(|(v, n)| std::iter::repeat_n(v, n)).collect();
            let mut out = Vec::new();
            encode(&values, &mut out);
            prop_assert_eq!(decode(&out), values);
        }

        #[test]
        fn noise_survives(values in prop::collection::vec(any::<u8>(), 0..600)) {
            let mut out = Vec::new();
            encode(&values, &mut out);
            prop_assert_eq!(decode(&out), values);
        }
    }
}
