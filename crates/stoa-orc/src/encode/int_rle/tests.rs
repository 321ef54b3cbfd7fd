//! Encode ∘ decode = id, with a decoder that shares nothing with the encoder.

use proptest::prelude::*;

use super::*;

const WIDTHS: [u32; 32] = [
    1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 26, 28,
    30, 32, 40, 48, 56, 64,
];

fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

struct Input<'a>(&'a [u8]);

impl Input<'_> {
    fn byte(&mut self) -> u64 {
        let byte = self.0[0];
        self.0 = &self.0[1..];
        u64::from(byte)
    }

    fn big_endian(&mut self, bytes: usize) -> u64 {
        (0..bytes).fold(0, |value, _| value << 8 | self.byte())
    }

    fn varint(&mut self) -> u64 {
        let mut value = 0;
        for shift in (0..).step_by(7) {
            let byte = self.byte();
            value |= (byte & 0x7f) << shift;
            if byte < 0x80 {
                break;
            }
        }
        value
    }

    fn packed(&mut self, count: usize, width: u32) -> Vec<u64> {
        let bytes = (count * width as usize).div_ceil(8);
        let bit = |at: usize| u64::from(self.0[at / 8] >> (7 - at % 8) & 1);
        let width = width as usize;
        let values = (0..count)
            .map(|n| (0..width).fold(0, |value, at| value << 1 | bit(n * width + at)))
            .collect();
        self.0 = &self.0[bytes..];
        values
    }
}

fn closest(bits: u32) -> u32 {
    *WIDTHS.iter().find(|width| **width >= bits).unwrap()
}

/// Values, and which of the four sub-encodings were seen.
fn decode(bytes: &[u8], signed: bool) -> (Vec<i64>, [usize; 4]) {
    let mut input = Input(bytes);
    let (mut values, mut seen) = (Vec::new(), [0; 4]);
    let plain = |value: u64| if signed { unzigzag(value) } else { value as i64 };
    while !input.0.is_empty() {
        let first = input.byte();
        let kind = (first >> 6) as usize;
        seen[kind] += 1;
        if kind == 0 {
            let value = input.big_endian((first >> 3 & 7) as usize + 1);
            values.extend(std::iter::repeat_n(plain(value), (first & 7) as usize + 3));
            continue;
        }
        let code = (first >> 1 & 31) as usize;
        let count = ((first & 1) << 8 | input.byte()) as usize + 1;
        match kind {
            1 => values.extend(input.packed(count, WIDTHS[code]).into_iter().map(plain)),
            2 => {
                let (third, fourth) = (input.byte(), input.byte());
                let base_bytes = (third >> 5) as usize + 1;
                let patch_width = WIDTHS[(third & 31) as usize];
                let gap_width = (fourth >> 5) as u32 + 1;
                let base = input.big_endian(base_bytes);
                let sign = 1 << (base_bytes * 8 - 1);
                let base = if base & sign > 0 { -((base & !sign) as i64) } else { base as i64 };
                let mut part = input.packed(count, WIDTHS[code]);
                assert!(gap_width + patch_width <= 64);
                let mut at = 0;
                for entry in input.packed((fourth & 31) as usize, closest(gap_width + patch_width))
                {
                    at += (entry >> patch_width) as usize;
                    part[at] |= (entry & ((1 << patch_width) - 1)) << WIDTHS[code];
                }
                values.extend(part.into_iter().map(|value| base.wrapping_add(value as i64)));
            }
            _ => {
                let base = plain(input.varint());
                let delta = unzigzag(input.varint());
                let mut last = base.wrapping_add(delta);
                values.push(base);
                if code == 0 {
                    for _ in 1..count {
                        values.push(last);
                        last = last.wrapping_add(delta);
                    }
                    continue;
                }
                values.push(last);
                assert_ne!(delta, 0, "the first delta tells the direction");
                for step in input.packed(count - 2, WIDTHS[code]) {
                    let step = step as i64;
                    last = last.wrapping_add(if delta < 0 { step.wrapping_neg() } else { step });
                    values.push(last);
                }
            }
        }
    }
    (values, seen)
}

/// Bytes, and the sub-encodings.
fn check(values: &[i64], signed: bool) -> (usize, [usize; 4]) {
    let mut out = Vec::new();
    IntEncoder::new().encode(values, signed, &mut out);
    let (decoded, seen) = decode(&out, signed);
    assert_eq!(decoded, values);
    (out.len(), seen)
}

#[test]
fn sub_encodings_are_chosen() {
    assert_eq!(check(&[10_000; 5], false), (3, [1, 0, 0, 0]));
    assert_eq!(check(&[7; 512], true), (4, [0, 0, 0, 1]));
    assert_eq!(check(&[23_713, 43_806, 57_005, 48_879], false), (10, [0, 1, 0, 0]));
    let sequence: Vec<i64> = (0..5120).map(|at| at * 3 - 700).collect();
    assert_eq!(check(&sequence, true).1, [0, 0, 0, 10]);
    let primes = [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71];
    assert_eq!(check(&primes, false).1, [0, 0, 0, 1]);
    let mut outliers: Vec<i64> = (0..512).map(|at| 2030 + at * 7919 % 61).collect();
    outliers[77] = 1_000_000;
    outliers[500] = 2_000_000_000_000;
    assert_eq!(check(&outliers, true).1, [0, 0, 1, 0]);
    outliers[77] = 2031;
    outliers[500] = 2031;
    outliers[511] = 1 << 40;
    assert_eq!(check(&outliers, false).1, [0, 0, 1, 0]);
}

#[test]
fn short_runs_of_equal_values_stay_among_literals() {
    let zeros_of = |run: i64, of: i64| {
        let value = move |at: i64| if at % of < run { 0 } else { 70_000 + at * at % 61 };
        (0..512).map(value).collect::<Vec<i64>>()
    };
    // Values of three bytes: nine take more than 24.
    assert_eq!(check(&zeros_of(8, 16), true).1, [0, 1, 0, 0]);
    assert_eq!(check(&zeros_of(9, 32), true).1, [16, 16, 0, 0]);
    assert_eq!(check(&zeros_of(40, 64), true).1, [0, 8, 0, 8]);
}

#[test]
fn equal_pairs_in_sorted_values_become_delta() {
    let values: Vec<i64> = (0..4000).map(|at| 17_000 + at / 2).collect();
    let (size, seen) = check(&values, true);
    assert!(size < 1200, "{size} bytes");
    assert_eq!(seen[3], 8);
}

#[test]
fn extremes_survive() {
    for signed in [true, false] {
        check(&[], signed);
        check(&[0], signed);
        check(&[i64::MAX; 3], signed);
        check(&[i64::MAX, 0, i64::MAX, 1], signed);
    }
    check(&[i64::MIN, i64::MAX, i64::MIN], true);
    check(&[i64::MIN; 600], true);
    let mut values: Vec<i64> = (0..512).map(|at| at % 50).collect();
    for (at, value) in [(3, i64::MAX), (200, i64::MIN), (400, -(1 << 56)), (401, 1 << 56)] {
        values[at] = value;
        check(&values, true);
    }
    let steps: Vec<i64> =
        (0..20).map(|at: i64| i64::MIN.wrapping_add(at.wrapping_mul(i64::MAX / 11))).collect();
    check(&steps, true);
}

#[test]
fn repeats_survive() {
    for count in [0, 1, 2, 3, 10, 11, 512, 513, 514, 1030] {
        for value in [0, -1, 5, i64::MIN, i64::MAX] {
            let mut out = Vec::new();
            IntEncoder::new().encode_repeated(value, count, true, &mut out);
            assert_eq!(decode(&out, true).0, vec![value; count]);
        }
    }
}

proptest! {
    #[test]
    fn the_next_run_is_the_first_that_is_long_enough(
        values in prop::collection::vec(0i64..2, 0..80),
        run_min in 2usize..9,
    ) {
        let is_run = |at: &usize| equal_run(&values[*at..]) >= run_min;
        let expected = (0..values.len()).find(is_run).unwrap_or(values.len());
        prop_assert_eq!(next_run(&values, run_min), expected);
    }
}

/// Pieces as they occur: repeats, steps, noise of any width, outliers.
fn piece() -> impl Strategy<Value = Vec<i64>> {
    let noise = (0u32..64, prop::collection::vec(any::<i64>(), 0..700))
        .prop_map(|(shift, values)| values.into_iter().map(|v| v >> shift).collect::<Vec<_>>());
    prop_oneof![
        (any::<i64>(), 0u32..64, 1usize..700).prop_map(|(v, s, n)| vec![v >> s; n]),
        (any::<i32>(), -50i64..50, 1usize..700)
            .prop_map(|(v, step, n)| (0..n as i64).map(|at| i64::from(v) + step * at).collect()),
        noise.clone(),
        noise.clone().prop_map(|mut values| {
            values.sort_unstable();
            values
        }),
        noise.prop_map(|mut values| {
            values.sort_unstable_by(|a, b| b.cmp(a));
            values
        }),
        (
            any::<i32>(),
            1i64..2000,
            prop::collection::vec(any::<u16>(), 40..700),
            prop::collection::vec((any::<prop::sample::Index>(), any::<i64>(), 0u32..63), 0..12)
        )
            .prop_map(|(base, range, values, outliers)| {
                let mut values: Vec<i64> =
                    values.into_iter().map(|v| i64::from(base) + i64::from(v) % range).collect();
                for (at, value, shift) in outliers {
                    let at = at.index(values.len());
                    values[at] = value >> shift;
                }
                values
            }),
    ]
}

proptest! {
    #[test]
    fn values_survive(pieces in prop::collection::vec(piece(), 0..4)) {
        let values = pieces.concat();
        check(&values, true);
        check(&values, false);
    }
}
