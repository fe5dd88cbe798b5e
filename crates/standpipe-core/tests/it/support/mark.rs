//! What one call counts on one limit, and what is missing from a bucket: the oracle's arithmetic.
//!
//! Written for being obviously right: lists, and nothing that is kept up to date by halves.

use std::collections::VecDeque;

use standpipe_core::{Charged, Instant};

/// Units charged at an instant.
#[derive(Clone, Debug)]
pub(crate) struct Charge {
    pub(crate) at: Instant,
    pub(crate) units: u64,
    /// More than was reserved: known only afterwards.
    pub(crate) beyond: bool,
}

/// What one call counts on one limit.
#[derive(Clone, Debug)]
pub(crate) struct Mark {
    pub(crate) estimate: u64,
    /// In flight, to be charged when known.
    pub(crate) held: u64,
    pub(crate) charges: Vec<Charge>,
    charged: Charged,
    /// A commit of progress named a unit that is charged at the start: that was its last word.
    pub(crate) said: bool,
}

/// What came of it: units charged now, and units taken back from earlier charges.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Change {
    pub(crate) charged: u64,
    pub(crate) back: u64,
}

impl Mark {
    pub(crate) fn new(estimate: u64, charged: Charged, now: Instant) -> Self {
        let mut mark = Self { estimate, held: 0, charges: Vec::new(), charged, said: false };
        match charged {
            Charged::Start => mark.charges.push(Charge { at: now, units: estimate, beyond: false }),
            Charged::End => mark.held = estimate,
        }
        mark
    }

    /// All that is charged.
    pub(crate) fn total(&self) -> u64 {
        self.charges.iter().map(|charge| charge.units).sum()
    }

    /// Everything of this call that counts against the limit, whenever it was charged.
    pub(crate) fn weight(&self) -> u64 {
        self.total() + self.held
    }

    /// The call says what it used so far and goes on.
    pub(crate) fn progress(&mut self, figure: Option<u64>, now: Instant) -> Change {
        let Some(figure) = figure else { return Change::default() };
        match self.charged {
            Charged::Start => self.replace(figure, now),
            Charged::End => self.grow(figure, now),
        }
    }

    /// The call is over.
    pub(crate) fn settle(&mut self, figure: Option<u64>, now: Instant) -> Change {
        match (self.charged, figure) {
            (Charged::Start, Some(figure)) => self.replace(figure, now),
            (Charged::Start, None) => Change::default(),
            (Charged::End, figure) => {
                let change = self.grow(figure.unwrap_or(self.estimate), now);
                self.held = 0;
                change
            }
        }
    }

    /// The provider refused the call: what is charged at the end was not used, but for what the
    /// call has said it did use.
    pub(crate) fn refuse(&mut self) -> Change {
        self.held = 0;
        Change::default()
    }

    /// The call was never sent; but what it has said it used was.
    pub(crate) fn undo(&mut self) -> Change {
        self.held = 0;
        if self.said || self.charged == Charged::End { Change::default() } else { self.erase() }
    }

    /// As if it had never been.
    pub(crate) fn erase(&mut self) -> Change {
        let back = self.total();
        self.held = 0;
        self.charges.clear();
        Change { charged: 0, back }
    }

    /// A unit charged at the start: the first figure is the last.
    fn replace(&mut self, figure: u64, now: Instant) -> Change {
        if self.said {
            return Change::default();
        }
        self.said = true;
        let first = self.charges.first_mut().expect("charged at the start");
        let back = self.estimate.saturating_sub(figure);
        first.units -= back;
        let charged = figure.saturating_sub(self.estimate);
        self.charges.push(Charge { at: now, units: charged, beyond: true });
        Change { charged, back }
    }

    /// A unit charged at the end: what it grew by is charged now and leaves the hold.
    fn grow(&mut self, figure: u64, now: Instant) -> Change {
        let before = self.total();
        let within = figure.min(self.estimate).saturating_sub(before.min(self.estimate));
        let beyond = figure.saturating_sub(before.max(self.estimate));
        self.charges.push(Charge { at: now, units: within, beyond: false });
        self.charges.push(Charge { at: now, units: beyond, beyond: true });
        self.held = self.estimate.saturating_sub(figure.max(before));
        Change { charged: within + beyond, back: 0 }
    }
}

/// What is missing from a bucket, charge by charge; the oldest is refilled first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tank {
    /// Whose charge, and what of it has not been refilled: units × length of the period.
    missing: VecDeque<(usize, i128)>,
    at: Instant,
}

/// How a bucket refills: so many units per so many microseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flow {
    pub(crate) units: i128,
    pub(crate) per: i128,
}

impl Tank {
    /// Refills up to now.
    pub(crate) fn advance(&mut self, now: Instant, flow: Flow) {
        let mut refill = i128::from(now.since(self.at).0) * flow.units;
        self.at = self.at.max(now);
        while let Some((_, left)) = self.missing.front_mut() {
            let taken = refill.min(*left);
            *left -= taken;
            refill -= taken;
            if *left > 0 {
                return;
            }
            self.missing.pop_front();
        }
    }

    pub(crate) fn change(&mut self, call: usize, change: Change, flow: Flow) {
        let mut back = i128::from(change.back) * flow.per;
        let own = self.missing.iter_mut().rev().filter(|(whose, _)| *whose == call);
        for (_, left) in own {
            let taken = back.min(*left);
            *left -= taken;
            back -= taken;
        }
        self.missing.push_back((call, i128::from(change.charged) * flow.per));
    }

    /// Units × length of the period that are missing.
    pub(crate) fn missing(&self) -> i128 {
        self.missing.iter().map(|(_, left)| left).sum()
    }
}
