//! Many callers that wait patiently and claim promptly, and what order demands of the ledger.
//!
//! Every waiter looks when it is woken and at the instant it was told, and claims then; who of
//! several looks first is left to chance. Processes beat, so that nobody falls silent.

use std::collections::{BTreeMap, BTreeSet};

use proptest::collection::vec;
use proptest::prelude::*;
use standpipe_core::{
    Action, Amounts, Answer, Commit, Decision, Event, Instant, Key, Order, Outcome, PoolConfig,
    Priority, Refusal, Reserve, Span, State, ThrottleKind, Throttled,
};

use super::book::Book;
use super::fair::{Fair, Stretch};
use super::player::Player;
use super::words::{DAY, secs};
use super::world::{World, is_admitted, why};

/// A call that comes to a crowd.
#[derive(Clone, Debug)]
pub(crate) struct Guest {
    /// After the one before it.
    pub(crate) after: Span,
    pub(crate) agent: &'static str,
    pub(crate) tier: Priority,
    pub(crate) cost: Amounts,
    /// How long it waits at most.
    pub(crate) patience: Span,
    /// How much later than told it looks; who looks late does not hear when it is woken either.
    pub(crate) late: Span,
    /// How long its call takes.
    pub(crate) stays: Span,
    /// What it gives back then, in thousandths of what it took.
    pub(crate) back: u64,
}

impl Guest {
    /// Whether it claims at the instant it is told, and when it is woken.
    pub(crate) fn is_prompt(&self) -> bool {
        self.late == Span::ZERO
    }
}

/// A guest that waits.
#[derive(Clone, Debug)]
pub(crate) struct Waiter {
    pub(crate) ticket: Key,
    /// Its number in order of arrival.
    pub(crate) place: usize,
    /// Its tag in fair order.
    pub(crate) tag: u64,
    pub(crate) guest: Guest,
    pub(crate) claim: Reserve,
    /// When it looks, as it was last told.
    pub(crate) told: Option<Instant>,
    pub(crate) came_at: Instant,
}

impl Waiter {
    /// Tier, tag, arrival.
    fn rank(&self) -> (Priority, u64, usize) {
        (self.guest.tier, self.tag, self.place)
    }
}

/// A guest that was admitted.
#[derive(Clone, Debug)]
pub(crate) struct Admission {
    pub(crate) place: usize,
    pub(crate) tier: Priority,
    pub(crate) waited: bool,
    pub(crate) prompt: bool,
    pub(crate) came_at: Instant,
    pub(crate) at: Instant,
}

/// A pool with a crowd before it.
pub(crate) struct Crowd {
    pub(crate) world: World,
    pub(crate) book: Book,
    pub(crate) waiting: Vec<Waiter>,
    pub(crate) admitted: Vec<Admission>,
    pub(crate) complaints: Vec<String>,
    /// The tags of fair order; of a pool of one limit only.
    pub(crate) fair: Option<Fair>,
    leaving: BTreeMap<(Instant, Key), Amounts>,
    woken: BTreeSet<Key>,
    next: Option<Instant>,
    beat_at: Instant,
    nobody_leaves: bool,
    /// The provider refuses one call in so many, in one way or another; never if it is 0.
    pub(crate) refuses: usize,
    chance: u64,
    came: usize,
}

const PROCESSES: [&str; 3] = ["q1", "q2", "q3"];

impl Crowd {
    pub(crate) fn new(config: &PoolConfig, chance: u64) -> Self {
        let world = World::new(config.clone());
        let mut book = Book::new(config.clone(), world.now);
        book.hear(Key { session: world.session("operator"), number: 1 });
        Self {
            beat_at: world.now,
            world,
            book,
            waiting: Vec::new(),
            admitted: Vec::new(),
            complaints: Vec::new(),
            fair: None,
            leaving: BTreeMap::new(),
            woken: BTreeSet::new(),
            next: None,
            nobody_leaves: false,
            refuses: 0,
            chance: chance | 1,
            came: 0,
        }
    }

    /// Lets all guests come, and goes on until nobody waits. `look` sees the pool after each event.
    pub(crate) fn play(&mut self, guests: &[Guest], mut look: impl FnMut(&mut Self)) {
        let mut arrivals = Vec::new();
        let mut at = self.world.now;
        for guest in guests {
            at = at + guest.after;
            arrivals.push((at, guest));
        }
        let mut arrivals = arrivals.into_iter().peekable();
        for _ in 0..MOST_STOPS {
            let coming = arrivals.peek().map(|(at, _)| *at);
            if coming.is_none() && self.waiting.is_empty() {
                return;
            }
            self.world.now = self.next_stop(coming);
            self.beat();
            while let Some((_, guest)) = arrivals.next_if(|(at, _)| *at <= self.world.now) {
                self.leave(&mut look);
                self.come(guest, &mut look);
                self.claim(&mut look);
            }
            self.leave(&mut look);
            self.claim(&mut look);
        }
        self.complaints.push(format!("still waiting: {:?}", self.waiting));
    }

    /// Lets all guests come, and stops there: nobody has claimed or left.
    pub(crate) fn play_upto(&mut self, guests: &[Guest]) {
        self.beat();
        for guest in guests {
            self.world.after(guest.after);
            self.come(guest, &mut |_: &mut Self| {});
        }
    }

    /// Nothing else happens: only those that wait claim, and nobody comes or leaves.
    pub(crate) fn play_out(&mut self) {
        self.leaving.clear();
        self.nobody_leaves = true;
        self.play(&[], |_| {});
    }

    /// Whoever stands before this rank and claims promptly.
    fn before(&self, rank: (Priority, u64, usize)) -> impl Iterator<Item = &Waiter> {
        let stands = move |w: &&Waiter| w.rank() < rank;
        self.waiting.iter().filter(stands).filter(|w| w.guest.is_prompt())
    }

    fn next_stop(&self, coming: Option<Instant>) -> Instant {
        let told = self.waiting.iter().filter_map(|waiter| waiter.told).min();
        let leaving = self.leaving.first_key_value().map(|((at, _), _)| *at);
        let next = self.next.filter(|next| *next > self.world.now);
        let stops = [coming, told, leaving, next, Some(self.beat_at)];
        let stop = stops.into_iter().flatten().min().unwrap_or(self.world.now);
        stop.max(self.world.now)
    }

    fn beat(&mut self) {
        if self.world.now < self.beat_at {
            return;
        }
        for process in PROCESSES {
            let _ = self.send(process, Action::Heartbeat { lease: None, ttl: None });
        }
        self.beat_at = self.world.now + secs(30);
    }

    fn leave(&mut self, look: &mut impl FnMut(&mut Self)) {
        while let Some(((at, lease), used)) = self.leaving.pop_first() {
            if at > self.world.now {
                self.leaving.insert((at, lease), used);
                return;
            }
            let answer = if self.refuses > 0 && self.chance(self.refuses) == 0 {
                Action::Throttled(self.refusal(lease))
            } else {
                Action::Commit(Commit { lease, used, progress: false, refused: false })
            };
            let _ = self.send(PROCESSES[lease.number as usize % 3], answer);
            look(self);
        }
    }

    /// At the instant it was told; while calls are in flight also every second, and in trouble,
    /// where what holds it back may be over sooner, every few seconds, as waiters do.
    fn looks_at(&self, until: Option<Instant>) -> Option<Instant> {
        let every = match (self.refuses, self.leaving.is_empty()) {
            (_, false) => Some(secs(1)),
            (0, true) => None,
            _ => Some(secs(5)),
        };
        let often = every.map(|every| self.world.now + every);
        // Where no instant is known, at the next one at which something happens by itself.
        let until = until.or(self.next.filter(|next| *next > self.world.now));
        until.into_iter().chain(often).min()
    }

    fn refusal(&mut self, lease: Key) -> Throttled {
        let kinds = [
            ThrottleKind::Quota,
            ThrottleKind::Concurrency,
            ThrottleKind::SlowDown,
            ThrottleKind::Overload,
        ];
        let kind = kinds[self.chance(kinds.len())];
        let word = self.chance(20_000_000) as u64;
        let retry_after = (self.chance(2) == 0).then_some(Span(word));
        Throttled { lease: Some(lease), agent: None, kind, retry_after, hit: None }
    }

    fn come(&mut self, guest: &Guest, look: &mut impl FnMut(&mut Self)) {
        let place = self.came;
        self.came += 1;
        let mut reserve = Player::reserve(guest.agent, guest.cost.clone());
        reserve.priority = Some(guest.tier);
        reserve.patience = guest.patience;
        let before = self.world.state.clone();
        let need = self.book.need(0, &guest.cost);
        let stretch = self.fair.as_ref().map(|fair| fair.place(guest.agent, guest.tier, need));
        let stretch = stretch.unwrap_or_default();
        let outcome = self.send(PROCESSES[place % 3], Action::Reserve(Box::new(reserve.clone())));
        match decision(&outcome) {
            Decision::Admit(grant) => {
                let came_at = self.world.now;
                self.admit((place, stretch), guest, grant.lease, came_at, &before);
            }
            Decision::Wait(hold) => {
                reserve.ticket = Some(hold.ticket);
                if let Some(fair) = &mut self.fair {
                    fair.wait(hold.ticket, guest.agent, guest.tier, place, stretch);
                }
                self.judge_tag(hold.ticket, stretch.tag);
                self.waiting.push(Waiter {
                    ticket: hold.ticket,
                    tag: stretch.tag,
                    place,
                    guest: guest.clone(),
                    claim: reserve,
                    told: self.looks_at(hold.refusal.until).map(|until| until + guest.late),
                    came_at: self.world.now,
                });
            }
            Decision::Refuse(_) => {}
        }
        look(self);
    }

    /// Everybody who has a reason to look now does.
    fn claim(&mut self, look: &mut impl FnMut(&mut Self)) {
        for _ in 0..MOST_LOOKS {
            let now = self.world.now;
            let looks = |w: &Waiter| {
                let woken = w.guest.is_prompt() && self.woken.contains(&w.ticket);
                woken || w.told.is_some_and(|told| told <= now)
            };
            let looking: Vec<_> =
                self.waiting.iter().filter(|w| looks(w)).map(|w| w.ticket).collect();
            if looking.is_empty() {
                return;
            }
            let ticket = looking[self.chance(looking.len())];
            self.claim_one(ticket);
            look(self);
        }
        self.complaints.push("claims go on and on at one instant".to_owned());
    }

    fn claim_one(&mut self, ticket: Key) {
        let before = self.world.state.clone();
        self.woken.remove(&ticket);
        let at = self.waiting.iter().position(|w| w.ticket == ticket).expect("it waits");
        let waiter = self.waiting[at].clone();
        let process = PROCESSES[waiter.place % 3];
        let outcome = self.send(process, Action::Reserve(Box::new(waiter.claim.clone())));
        match decision(&outcome) {
            Decision::Admit(grant) => {
                self.waiting.remove(at);
                let stretch = self.fair.as_ref().and_then(|fair| fair.of(ticket));
                let place = (waiter.place, stretch.unwrap_or_default());
                self.admit(place, &waiter.guest, grant.lease, waiter.came_at, &before);
            }
            Decision::Wait(hold) if hold.ticket == ticket => {
                let told = self.looks_at(hold.refusal.until);
                self.waiting[at].told = told.map(|told| told + waiter.guest.late);
            }
            // Nobody here comes to the end of a day's patience unless it was forgotten or locked
            // out.
            other => {
                self.waiting.remove(at);
                self.complaints.push(format!("claim of {waiter:?} answered with {other:?}"));
            }
        }
    }

    fn admit(
        &mut self,
        (place, stretch): (usize, Stretch),
        guest: &Guest,
        lease: Key,
        came_at: Instant,
        before: &State,
    ) {
        let at = self.world.now;
        let tier = guest.tier;
        let waited = came_at < at;
        // With floors there are those who pass, with caps those who are held back.
        let config = &self.book.config;
        let shares = config.agents.iter().any(|r| !r.floors.is_empty() || !r.caps.is_empty());
        let known = self.fair.is_some() || config.order == Order::Arrival;
        if !shares && known && self.refuses == 0 {
            self.judge_order((tier, stretch.tag, place), guest, before);
        }
        if let Some(fair) = &mut self.fair {
            fair.admit(lease, guest.agent, tier, stretch);
        }
        let prompt = guest.is_prompt();
        self.admitted.push(Admission { place, tier, waited, prompt, came_at, at });
        let kept = guest.cost.iter().map(|(unit, n)| (unit.clone(), n - n * guest.back / 1_000));
        let used = Amounts::new(kept).expect("as the cost");
        if !self.nobody_leaves {
            self.leaving.insert((at + guest.stays, lease), used);
        }
    }

    /// Who was admitted took nothing from anybody before it. Where a pool has one limit, everybody
    /// waits for it: whoever stands before has its units set aside, and still has them. Where it
    /// has more, that is certain only of the first of all, when there is but one limit it lacks.
    fn judge_order(&mut self, rank: (Priority, u64, usize), guest: &Guest, before: &State) {
        let now = self.world.now;
        let one = self.book.config.limits.len() == 1;
        let first = self.waiting.iter().min_by_key(|w| w.rank());
        let before_it = |w: &&Waiter| w.rank() < rank;
        let first = first.filter(before_it).filter(|w| w.guest.is_prompt()).cloned();
        let mut passed = Vec::new();
        for waiter in self.before(rank) {
            let was_due = is_admitted(&before.peek(&waiter.claim, now));
            let is_due = is_admitted(&self.world.state.peek(&waiter.claim, now));
            if (one || was_due) && !is_due {
                passed.push(format!("{guest:?} at {now:?} took what {waiter:?} had"));
            }
        }
        if let Some(first) = first {
            // The book has the admission in it already; what lacks without it was lacking before.
            let lacking = self.book.without_last().lacking(&first.guest.cost);
            if let [limit] = lacking[..]
                && self.book.need(limit, &guest.cost) > 0
            {
                passed.push(format!("{guest:?} at {now:?} passed {first:?} on limit {limit}"));
            }
        }
        self.complaints.extend(passed);
    }

    /// The ledger gave a ticket the tag that it should have.
    fn judge_tag(&mut self, ticket: Key, tag: u64) {
        let tickets = &self.world.state.facts().tickets;
        let told = tickets.iter().find(|(_, own)| own.key == ticket).map(|(key, _)| key.tag);
        if self.fair.is_some() && told.is_some_and(|told| told != tag) {
            self.complaints.push(format!("{ticket:?} has the tag {told:?}, not {tag}"));
        }
    }

    /// Whoever could be admitted now has been woken, or was told to look by now.
    pub(crate) fn judge_waking(&mut self) {
        let now = self.world.now;
        let asleep = |w: &&Waiter| {
            let heard = !w.guest.is_prompt() || self.woken.contains(&w.ticket);
            !heard && w.told.is_none_or(|told| told > now)
        };
        let due = |w: &&Waiter| is_admitted(&self.world.state.peek(&w.claim, now));
        let missed: Vec<_> = self.waiting.iter().filter(asleep).filter(due).cloned().collect();
        self.complaints.extend(missed.iter().map(|w| format!("at {now:?} not woken: {w:?}")));
    }

    /// What a waiter would be told now.
    pub(crate) fn told_now(&self, waiter: &Waiter) -> Option<Instant> {
        self.refusal_now(waiter).and_then(|refusal| refusal.until)
    }

    /// Why a waiter would not be admitted now.
    pub(crate) fn refusal_now(&self, waiter: &Waiter) -> Option<Refusal> {
        why(&self.world.state.peek(&waiter.claim, self.world.now)).cloned()
    }

    fn send(&mut self, process: &str, action: Action) -> Outcome {
        let event: Event = self.world.event(process, action);
        let outcome = self.world.apply(&event);
        self.book.record(&event, self.world.now, &outcome);
        self.woken.extend(outcome.wake.iter().copied());
        self.next = outcome.next;
        outcome
    }

    /// A number below `below`, from the seed.
    fn chance(&mut self, below: usize) -> usize {
        self.chance ^= self.chance << 13;
        self.chance ^= self.chance >> 7;
        self.chance ^= self.chance << 17;
        (self.chance % below as u64) as usize
    }
}

/// Guests whose costs, one per unit of `units`, are at most these.
pub(crate) fn guests(
    most: Vec<(standpipe_core::Unit, u64)>,
    within: Span,
    count: usize,
) -> impl Strategy<Value = Vec<Guest>> {
    let cost = most.into_iter().map(|(unit, most)| (Just(unit), 0..=most)).collect::<Vec<_>>();
    let tier = prop_oneof![
        1 => Just(Priority::Critical),
        4 => Just(Priority::Standard),
        2 => Just(Priority::Background),
    ];
    let after = prop_oneof![Just(0), 0..=within.0 / 4, 0..=within.0];
    let stays = prop_oneof![Just(0), 0..=within.0, 0..=4 * within.0];
    let back = prop_oneof![Just(0_u64), Just(1_000), 0_u64..=1_000];
    let patience = prop_oneof![1 => Just(Span::ZERO), 4 => Just(DAY)];
    let late = prop_oneof![5 => Just(0), 1 => 1..=5_000_000_u64];
    let agent = prop_oneof![3 => Just("guest"), 1 => Just("owner"), 1 => Just("modest")];
    let guest = (after, agent, tier, cost, patience, late, stays, back).prop_map(
        |(after, agent, tier, figures, patience, late, stays, back)| Guest {
            after: Span(after),
            agent,
            tier,
            cost: Amounts::cost(figures).expect("each unit once"),
            patience,
            late: Span(late),
            stays: Span(stays),
            back,
        },
    );
    vec(guest, 1..count)
}

fn decision(outcome: &Outcome) -> &Decision {
    match &outcome.answer {
        Answer::Decided(decision) => decision,
        other => panic!("a reserve was answered with {other:?}"),
    }
}

/// More than any crowd here needs when nothing is lost.
const MOST_STOPS: usize = 100_000;
const MOST_LOOKS: usize = 500;
