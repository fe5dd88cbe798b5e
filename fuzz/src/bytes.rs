//! Taking figures from the front of a byte string; after its end come zeros.

/// What is left of the input.
#[derive(Clone, Copy, Debug)]
pub struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    /// All of the input.
    #[must_use]
    pub const fn new(input: &'a [u8]) -> Self {
        Self(input)
    }

    /// Whether there is nothing left.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What is left.
    #[must_use]
    pub const fn rest(&self) -> &'a [u8] {
        self.0
    }

    /// The next byte.
    pub fn byte(&mut self) -> u8 {
        match self.0.split_first() {
            Some((first, rest)) => {
                self.0 = rest;
                *first
            }
            None => 0,
        }
    }

    /// A choice of so many, at least one.
    pub fn below(&mut self, count: u8) -> u8 {
        self.byte() % count.max(1)
    }

    /// True once in so many times.
    pub fn one_in(&mut self, count: u8) -> bool {
        self.below(count) == count.saturating_sub(1)
    }

    /// Any figure at all.
    pub fn word(&mut self) -> u64 {
        u64::from_le_bytes(std::array::from_fn(|_| self.byte()))
    }

    /// One of these.
    pub fn pick<T: Copy>(&mut self, from: &[T]) -> Option<T> {
        let count = u8::try_from(from.len()).unwrap_or(u8::MAX);
        from.get(usize::from(self.below(count))).copied()
    }
}
