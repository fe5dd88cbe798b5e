//! The ledger from outside: random scenes against an oracle, stories of policies, named faults.

#![cfg(test)]

mod calendar;
mod exact;
mod fair;
mod faults;
mod floors;
mod foresight;
mod lower_bounds;
mod order;
mod outside;
mod pauses;
mod policies;
mod props;
mod ramps;
mod reconfigure;
mod spread;
mod support;
mod time;
mod total;
mod waking;
