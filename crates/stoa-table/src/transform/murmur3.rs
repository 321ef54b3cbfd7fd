//! Murmur3, 32 bits, x86 variant, seed 0: the hash of Iceberg's bucket transform.

/// The hash of `bytes`.
pub(crate) fn murmur3_32(bytes: &[u8]) -> u32 {
    let mut hash = 0u32;
    let mut blocks = bytes.chunks_exact(4);
    for block in &mut blocks {
        let word = block.iter().rev().fold(0u32, |word, byte| word << 8 | u32::from(*byte));
        hash = (hash ^ scramble(word)).rotate_left(13).wrapping_mul(5).wrapping_add(0xe654_6b64);
    }
    let tail = blocks.remainder();
    if !tail.is_empty() {
        let word = tail.iter().rev().fold(0u32, |word, byte| word << 8 | u32::from(*byte));
        hash ^= scramble(word);
    }
    hash ^= bytes.len() as u32;
    hash = (hash ^ hash >> 16).wrapping_mul(0x85eb_ca6b);
    hash = (hash ^ hash >> 13).wrapping_mul(0xc2b2_ae35);
    hash ^ hash >> 16
}

fn scramble(word: u32) -> u32 {
    word.wrapping_mul(0xcc9e_2d51).rotate_left(15).wrapping_mul(0x1b87_3593)
}

/// The bucket of `bytes` among `buckets` (at least 1).
pub(crate) fn bucket(bytes: &[u8], buckets: u32) -> i32 {
    let positive = murmur3_32(bytes) & 0x7fff_ffff;
    (positive % buckets.max(1)) as i32
}
