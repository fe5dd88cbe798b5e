//! Chance from a seed: splitmix64, which is small, quick and the same everywhere.

/// A stream of numbers that only depends on its seed.
#[derive(Clone, Copy, Debug)]
pub struct Random(u64);

impl Random {
    /// The stream of a seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub const fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below a bound; 0 if there is none below it.
    pub const fn below(&mut self, bound: u64) -> u64 {
        // The high half of a product: no division, and hardly any bias.
        ((self.draw() as u128 * bound as u128) >> 64) as u64
    }

    /// Whether a chance of so many in a thousand comes true.
    pub const fn permille(&mut self, share: u32) -> bool {
        self.below(1_000) < share as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_splitmix64() {
        let mut random = Random::new(1_234_567);
        let drawn = [random.draw(), random.draw(), random.draw()];
        let known =
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        assert_eq!(drawn, known);
    }

    #[test]
    fn bounds_and_chances_hold() {
        let mut random = Random::new(3);
        assert!((0..1_000).all(|_| random.below(7) < 7));
        assert!((0..1_000).all(|_| random.permille(1_000) && !random.permille(0)));
        assert_eq!(random.below(0), 0);
    }
}
