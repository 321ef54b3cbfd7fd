//! SHA-1 (RFC 3174), as a checksum: it keeps no secrets.

/// The digest of some bytes.
pub(super) fn digest(of: &[u8]) -> [u8; 20] {
    let mut state: [u32; 5] = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476, 0xc3d2_e1f0];
    for block in padded(of, |bits| bits.to_be_bytes()).chunks_exact(64) {
        let mut words: Vec<u32> = block
            .chunks_exact(4)
            .map(|word| u32::from_be_bytes([word[0], word[1], word[2], word[3]]))
            .collect();
        for at in 16..80 {
            let mixed = words[at - 3] ^ words[at - 8] ^ words[at - 14] ^ words[at - 16];
            words.push(mixed.rotate_left(1));
        }
        let [mut a, mut b, mut c, mut d, mut e] = state;
        for (step, word) in words.iter().enumerate() {
            let (mixed, constant) = match step / 20 {
                0 => ((b & c) | (!b & d), 0x5a82_7999),
                1 => (b ^ c ^ d, 0x6ed9_eba1),
                2 => ((b & c) | (b & d) | (c & d), 0x8f1b_bcdc),
                _ => (b ^ c ^ d, 0xca62_c1d6_u32),
            };
            let sum = a.rotate_left(5).wrapping_add(mixed).wrapping_add(e);
            let sum = sum.wrapping_add(constant).wrapping_add(*word);
            (a, b, c, d, e) = (sum, a, b.rotate_left(30), c, d);
        }
        for (whole, part) in state.iter_mut().zip([a, b, c, d, e]) {
            *whole = whole.wrapping_add(part);
        }
    }
    let mut all = [0; 20];
    for (to, word) in all.chunks_exact_mut(4).zip(state) {
        to.copy_from_slice(&word.to_be_bytes());
    }
    all
}

/// The bytes, a one, zeros, and the number of bits: a whole number of blocks.
pub(super) fn padded(of: &[u8], length: fn(u64) -> [u8; 8]) -> Vec<u8> {
    let mut all = of.to_vec();
    all.push(0x80);
    while all.len() % 64 != 56 {
        all.push(0);
    }
    all.extend(length((of.len() as u64).wrapping_mul(8)));
    all
}
