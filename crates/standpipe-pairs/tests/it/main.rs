//! Every pair of faults that can run in virtual time, and sixty real ones.

mod planted;
mod real;
mod referee;
mod sharing;
mod simulated;
