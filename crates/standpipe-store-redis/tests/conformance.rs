//! Redis proves itself with the suite every store does.

#![cfg(test)]
