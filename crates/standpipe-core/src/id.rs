//! Typed indexes: an agent, a rule for agents, a constraint, a unit; and lists that only they
//! index.

use alloc::vec::Vec;
use core::fmt;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut, Index, IndexMut};

use crate::bounds;

/// The index of a row in a list of its kind.
pub trait Id: Copy {
    /// Returns the index.
    fn index(self) -> usize;

    /// Returns the id of a row. All lists are bounded, so every index fits.
    fn of(index: usize) -> Self;
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident($number:ty);)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
        pub struct $name(pub $number);

        impl Id for $name {
            fn index(self) -> usize {
                usize::from(self.0)
            }

            fn of(index: usize) -> Self {
                Self(<$number>::try_from(index).unwrap_or(<$number>::MAX))
            }
        }

        impl From<$name> for usize {
            fn from(id: $name) -> Self {
                id.index()
            }
        }
    )*};
}

ids! {
    /// An agent's record in the table of a pool.
    AgentId(u16);
    /// A rule for an agent in the configuration of a pool.
    RuleId(u16);
    /// Something a ticket can wait for: a limit, the pace of a limit, or the gate.
    ConstraintId(u8);
    /// A unit that limits or caps count.
    UnitId(u8);
}

/// A list that is indexed by an id of its own.
pub struct IdVec<I, T> {
    rows: Vec<T>,
    of: PhantomData<fn(I)>,
}

impl<I: Id, T> IdVec<I, T> {
    /// Creates an empty list.
    #[must_use]
    pub const fn new() -> Self {
        Self { rows: Vec::new(), of: PhantomData }
    }

    /// Appends a row and returns its id.
    pub fn push(&mut self, row: T) -> I {
        self.rows.push(row);
        I::of(self.rows.len() - 1)
    }

    /// Returns all ids, in order.
    pub fn ids(&self) -> impl ExactSizeIterator<Item = I> + Clone + use<I, T> {
        (0..self.rows.len()).map(I::of)
    }

    /// Returns all rows with their ids.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = (I, &T)> {
        self.ids().zip(&self.rows)
    }

    /// Returns the row of an id, if there is one.
    pub fn row(&self, id: I) -> Option<&T> {
        self.rows.get(id.index())
    }

    /// Returns the row of an id, if there is one.
    pub fn row_mut(&mut self, id: I) -> Option<&mut T> {
        self.rows.get_mut(id.index())
    }
}

impl<I, T> Deref for IdVec<I, T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.rows
    }
}

impl<I, T> DerefMut for IdVec<I, T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.rows
    }
}

impl<I: Id, T> Index<I> for IdVec<I, T> {
    type Output = T;

    fn index(&self, id: I) -> &T {
        &self.rows[id.index()]
    }
}

impl<I: Id, T> IndexMut<I> for IdVec<I, T> {
    fn index_mut(&mut self, id: I) -> &mut T {
        &mut self.rows[id.index()]
    }
}

impl<I, T> From<Vec<T>> for IdVec<I, T> {
    fn from(rows: Vec<T>) -> Self {
        Self { rows, of: PhantomData }
    }
}

impl<I, T> FromIterator<T> for IdVec<I, T> {
    fn from_iter<R: IntoIterator<Item = T>>(rows: R) -> Self {
        Self::from(rows.into_iter().collect::<Vec<T>>())
    }
}

impl<I, T> IntoIterator for IdVec<I, T> {
    type Item = T;
    type IntoIter = alloc::vec::IntoIter<T>;

    fn into_iter(self) -> Self::IntoIter {
        self.rows.into_iter()
    }
}

impl<'a, I, T> IntoIterator for &'a IdVec<I, T> {
    type Item = &'a T;
    type IntoIter = core::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.rows.iter()
    }
}

impl<'a, I, T> IntoIterator for &'a mut IdVec<I, T> {
    type Item = &'a mut T;
    type IntoIter = core::slice::IterMut<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.rows.iter_mut()
    }
}

impl<I, T: Clone> Clone for IdVec<I, T> {
    fn clone(&self) -> Self {
        Self::from(self.rows.clone())
    }
}

impl<I, T> Default for IdVec<I, T> {
    fn default() -> Self {
        Self::from(Vec::new())
    }
}

impl<I, T: fmt::Debug> fmt::Debug for IdVec<I, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.rows.fmt(f)
    }
}

impl<I, T: PartialEq> PartialEq for IdVec<I, T> {
    fn eq(&self, other: &Self) -> bool {
        self.rows == other.rows
    }
}

impl<I, T: Eq> Eq for IdVec<I, T> {}

/// A set of constraints.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConstraintSet(pub u64);

impl ConstraintSet {
    pub(crate) const fn insert(&mut self, constraint: ConstraintId) {
        self.0 |= 1 << constraint.0;
    }

    pub(crate) const fn insert_if(&mut self, constraint: ConstraintId, holds: bool) {
        self.0 |= (holds as u64) << constraint.0;
    }

    pub(crate) const fn remove(&mut self, constraint: ConstraintId) {
        self.0 &= !(1 << constraint.0);
    }

    pub(crate) const fn contains(self, constraint: ConstraintId) -> bool {
        self.0 & (1 << constraint.0) != 0
    }

    pub(crate) const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Takes the first one out.
    pub(crate) const fn pop_first(&mut self) -> Option<ConstraintId> {
        if self.0 == 0 {
            return None;
        }
        let first = ConstraintId(self.0.trailing_zeros() as u8);
        self.remove(first);
        Some(first)
    }

    pub(crate) fn iter(self) -> impl Iterator<Item = ConstraintId> {
        let mut rest = self;
        core::iter::from_fn(move || rest.pop_first())
    }
}

const _: () = assert!(bounds::CONSTRAINTS <= u64::BITS as usize, "sets are bits of a u64");
