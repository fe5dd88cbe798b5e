//! Deterministic jitter: a hash in place of a random number generator.
//!
//! Every replica must draw the same number, so the number depends only on the inputs.

/// Hashes two numbers with the finalizer of SplitMix64.
pub(crate) const fn splitmix(a: u64, b: u64) -> u64 {
    // The golden ratio spreads neighbouring seeds; the other two constants are those of SplitMix64.
    let mut z = a.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(b);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
