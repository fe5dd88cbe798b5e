//! What the tests of the core share: words to write a scene with, and somebody to judge it.
//!
//! Nothing here calls into the core beyond its entry points. `book` is the oracle: a slow, obvious
//! model that follows the events and their answers and says what the ledger must hold.

pub(crate) mod book;
pub(crate) mod crowd;
pub(crate) mod fair;
pub(crate) mod law;
pub(crate) mod mark;
pub(crate) mod player;
pub(crate) mod recall;
pub(crate) mod redated;
pub(crate) mod remembered;
pub(crate) mod scene;
pub(crate) mod words;
pub(crate) mod world;

use proptest::prelude::*;
use proptest::test_runner::{Config, FileFailurePersistence, RngSeed};
use standpipe_core::{Probe, Reason, Refusal, Reserve, Span};

use world::{World, is_admitted, why};

/// So many random cases with a fixed seed; twenty times as many with a fresh one when
/// `STANDPIPE_LONG=1`. What proptest's own variables say counts in either case.
pub(crate) fn cases(count: u32) -> Config {
    let said = |name: &str| std::env::var_os(name).is_some();
    let long = std::env::var_os("STANDPIPE_LONG").is_some_and(|value| value == "1");
    let regressions = FileFailurePersistence::Direct("tests/proptest-regressions/core.txt");
    let mut config =
        Config { failure_persistence: Some(Box::new(regressions)), ..Config::default() };
    if !said("PROPTEST_CASES") {
        config.cases = if long { 20 * count } else { count };
    }
    if !long && !said("PROPTEST_RNG_SEED") {
        config.rng_seed = RngSeed::Fixed(0x57A4_D919E);
    }
    config
}

/// Somebody was refused just now: if nothing else happens it is refused at every instant before the
/// one it was told, told the same again, and admitted then. `spots` are millionths of the wait.
/// Where a call in flight has to end as well, the end of a pause is a bound. So is every instant
/// while the answer to another call is awaited, unless the refusal is about that.
pub(crate) fn until_is_exact_at(
    world: &World,
    reserve: &Reserve,
    refusal: &Refusal,
    spots: &[u64],
) -> Result<(), TestCaseError> {
    let (state, now) = (&world.state, world.now);
    let Some(until) = refusal.until else { return Ok(()) };
    // A lease that ends by itself before is something else that happens.
    if state.facts().leases.keys().any(|lease| state.lease_ends(*lease) <= until) {
        return Ok(());
    }
    prop_assert!(until > now, "told {:?} at {:?}", until, now);
    let own = matches!(refusal.reason, Reason::Pause | Reason::ReturnWindow | Reason::Hold);
    // Promotion lets a paced call pass earlier, but only if it asks again meanwhile.
    let policy = state.facts().config.as_ref().map(|config| &config.policy);
    let promoted = policy.is_some_and(|own| own.promotes && own.spreads);
    let facts = state.facts();
    let awaits =
        matches!(facts.returning.probe, Probe::Sent { .. }) || facts.cascade.sequential.is_some();
    let by_gate = matches!(refusal.reason, Reason::Probe | Reason::Sequential);
    let bound = own && !facts.leases.is_empty() || promoted || awaits && !by_gate;
    let wait = u128::from(until.since(now).0 - 1);
    let spots = spots.iter().map(|spot| (wait * u128::from(*spot) / 1_000_000) as u64);
    for after in spots.chain([0, wait as u64]) {
        let told = state.peek(reserve, now + Span(after));
        prop_assert!(!is_admitted(&told), "{:?} was admitted {} after", reserve, after);
        let again = why(&told).and_then(|refusal| refusal.until);
        prop_assert!(bound || again == Some(until), "{:?} {} after, not {:?}", told, after, until);
    }
    let told = state.peek(reserve, until);
    prop_assert!(bound || is_admitted(&told), "{:?} at {:?}: {:?}", reserve, until, told);
    Ok(())
}
