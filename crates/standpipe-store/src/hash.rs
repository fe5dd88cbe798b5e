//! A 64-bit hash for chains of entries and for comparing snapshots.
//!
//! It detects accidents, not attacks: an attacker who can write to a store needs no forged hash. It
//! is part of the byte layout, so equal bytes hash equally on every machine and in every version.
//!
//! Invariant: for equal bytes, different seeds give different hashes. So two chains that differ
//! stay different, however many equal entries follow.

/// Hashes `bytes` as a continuation of `seed`.
///
/// It mixes in the length, then eight bytes at a time, each in invertible steps (exclusive or,
/// multiplication by an odd number, shift), and ends with the finalizer of `MurmurHash3`, in which
/// every bit of the input affects every bit of the output.
#[must_use]
pub fn hash(seed: u64, bytes: &[u8]) -> u64 {
    let mut mixed = step(seed.wrapping_add(START), bytes.len() as u64);
    let mut chunks = bytes.chunks_exact(8);
    for chunk in &mut chunks {
        mixed = step(mixed, word(chunk));
    }
    if !chunks.remainder().is_empty() {
        mixed = step(mixed, word(chunks.remainder()));
    }
    finish(mixed)
}

/// An arbitrary constant, so that empty input with seed 0 does not hash to zero.
const START: u64 = 0x5bf0_3635_dcd1_d867;

/// Reads up to eight bytes as a little-endian number.
fn word(bytes: &[u8]) -> u64 {
    let mut all = [0; 8];
    all[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(all)
}

const fn step(mixed: u64, word: u64) -> u64 {
    let mixed = (mixed ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ mixed >> 32
}

const fn finish(mut mixed: u64) -> u64 {
    mixed ^= mixed >> 33;
    mixed = mixed.wrapping_mul(0xff51_afd7_ed55_8ccd);
    mixed ^= mixed >> 33;
    mixed = mixed.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    mixed ^ mixed >> 33
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_hash_is_the_same_for_ever() {
        assert_eq!(hash(0, b""), 0xe33e_d93d_4bd1_6e5f);
        assert_eq!(hash(0, b"standpipe"), 0x754f_7a01_5a92_4f41);
        assert_eq!(hash(1, b"standpipe"), 0x54ad_a105_e9d6_0172);
    }

    #[test]
    fn every_flipped_bit_changes_about_half_of_the_hash() {
        let bytes: Vec<u8> = (0..61).collect();
        let whole = hash(7, &bytes);
        let mut seen = BTreeSet::from([whole]);
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let other = hash(7, &flipped);
            assert!(seen.insert(other), "bit {bit} collides");
            let changed = (whole ^ other).count_ones();
            assert!((10..=54).contains(&changed), "bit {bit} changes {changed} bits");
        }
    }

    #[test]
    fn zeros_at_the_end_and_other_seeds_tell() {
        let hashes = [hash(0, &[0]), hash(0, &[0, 0]), hash(0, &[0; 8]), hash(0, &[0; 9])];
        assert_eq!(BTreeSet::from(hashes).len(), 4);
        let seeds: BTreeSet<u64> = (0..10_000).map(|seed| hash(seed, b"the same")).collect();
        assert_eq!(seeds.len(), 10_000);
    }
}
