//! The one list of faults: their names, where they happen, how they begin and how they end.

pub mod daemon;
pub mod file;
pub mod redis;

use crate::scene::Scene;

/// Where a fault happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// The file store.
    File,
    /// Redis.
    Redis,
    /// The daemon, on the file store.
    Daemon,
}

/// Something that goes wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Its name, as the command line has it.
    pub name: String,
    /// What is done.
    pub act: Act,
}

/// What is done, by place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// To processes and files.
    File(file::Act),
    /// To servers and networks.
    Redis(redis::Act),
    /// To the daemon and its clients.
    Daemon(daemon::Act),
}

/// All faults of a place.
#[must_use]
pub fn all(place: Place) -> Vec<Fault> {
    match place {
        Place::File => file::all(),
        Place::Redis => redis::all(),
        Place::Daemon => daemon::all(),
    }
}

impl Fault {
    /// What must be there before the processes start.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn prepare(&self, scene: &mut Scene) -> Result<(), String> {
        match self.act {
            Act::File(act) => file::prepare(act, scene),
            Act::Redis(act) => redis::prepare(act, scene),
            Act::Daemon(act) => daemon::prepare(act, scene),
        }
    }

    /// Makes it happen.
    ///
    /// # Errors
    /// When the harness cannot do it. That is no violation.
    pub fn inject(&self, scene: &mut Scene) -> Result<(), String> {
        match self.act {
            Act::File(act) => file::inject(act, scene),
            Act::Redis(act) => redis::inject(act, scene),
            Act::Daemon(act) => daemon::inject(act, scene),
        }
    }

    /// Ends it, as far as it lasts.
    ///
    /// # Errors
    /// As [`Fault::inject`].
    pub fn end(&self, scene: &mut Scene) -> Result<(), String> {
        match self.act {
            Act::File(act) => file::end(act, scene),
            Act::Redis(act) => redis::end(act, scene),
            Act::Daemon(act) => daemon::end(act, scene),
        }
    }
}

/// The name of a fault at a labelled point.
fn labelled(what: &str, label: &str) -> String {
    format!("{what}-{}", label.replace(' ', "-"))
}
