//! Multiplies and divides amounts without overflow.

use crate::bounds;

/// Returns `amount` × `share` / `whole`, rounded down and at most [`bounds::AMOUNT`].
pub(crate) const fn mul_div(amount: u64, share: u64, whole: u64) -> u64 {
    let whole = if whole == 0 { 1 } else { whole };
    let product = match amount.checked_mul(share) {
        // Usual, and several times as fast as the division of 128 bits.
        Some(product) => (product / whole) as u128,
        None => amount as u128 * share as u128 / whole as u128,
    };
    if product > bounds::AMOUNT as u128 { bounds::AMOUNT } else { product as u64 }
}
