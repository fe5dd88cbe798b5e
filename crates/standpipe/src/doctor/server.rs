//! The server of a network store: whether it can keep a ledger, and for whom.

use standpipe_store_redis::ServerInfo;

use super::{Scene, told};
use crate::finding::Finding;

const NAME: &str = "server";

/// The oldest version whose commands are enough.
const OLDEST: (u32, u32) = (6, 2);

pub(super) fn check(scene: &Scene) -> Vec<Finding> {
    let guard = scene.tap.as_ref().ok().and_then(|tap| tap.guard().ok());
    let Some(redis) = guard.as_ref().and_then(|guard| guard.shared().engine().redis()) else {
        return Vec::new();
    };
    match redis.server_info() {
        Ok(server) => findings(&server),
        Err(error) => vec![told(Finding::failure, NAME, &error.to_string())],
    }
}

fn findings(server: &ServerInfo) -> Vec<Finding> {
    let mut found = vec![version(server)];
    let others = [role(server), eviction(server), memory(server), privacy(server)];
    found.extend(others.into_iter().flatten());
    found
}

fn version(server: &ServerInfo) -> Finding {
    let number = server.version.split(' ').next_back().unwrap_or_default();
    let mut parts = number.split('.').map(|part| part.parse::<u32>().unwrap_or_default());
    let known = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    match known {
        (0, _) => Finding::note(NAME, "it does not say which version it is")
            .remedy("give the user the right to `+info`"),
        old if old < OLDEST => Finding::failure(NAME, format!("{} is too old", server.version))
            .remedy("use Redis 6.2 or newer, or Valkey"),
        _ => Finding::ok(NAME, server.version.clone()),
    }
}

fn role(server: &ServerInfo) -> Option<Finding> {
    (!server.is_master).then(|| {
        Finding::failure(NAME, "it is a replica, and takes no writes")
            .remedy("name the master in the store's URL, or use redis+sentinel://")
    })
}

/// Our keys have an end, so every policy but one can drop them.
fn eviction(server: &ServerInfo) -> Option<Finding> {
    let policy = server.eviction.as_deref()?;
    if policy == "noeviction" {
        return Some(Finding::ok(NAME, "it never drops a ledger to make room"));
    }
    let what = format!("it drops keys when its memory is full (maxmemory-policy {policy})");
    let remedy = "set maxmemory-policy to noeviction, or use a server of its own: a ledger that \
                  was dropped counts as full for one period";
    Some(Finding::warning(NAME, what).remedy(remedy))
}

fn memory(server: &ServerInfo) -> Option<Finding> {
    let replicas = server.replicas.unwrap_or_default();
    match (server.append_only_file?, replicas) {
        (true, _) => Some(Finding::ok(NAME, "it keeps what it was told over a restart")),
        (false, 0) => {
            let what = "a restart of it forgets: limits then count as full for one period";
            Some(Finding::note(NAME, what).remedy("set appendonly to yes"))
        }
        (false, _) => Some(Finding::ok(NAME, format!("{replicas} replica(s) have copies"))),
    }
}

/// Whoever can reach the server can take quota.
fn privacy(server: &ServerInfo) -> Option<Finding> {
    let (what, remedy) = match (server.is_private, server.has_password) {
        (true, _) => return None,
        (false, true) => {
            ("the password crosses the network in the clear", "use rediss:// and TLS on the server")
        }
        (false, false) => (
            "anybody on the network can take quota there",
            "give it a user and a password, and use rediss://",
        ),
    };
    Some(Finding::warning(NAME, what).remedy(remedy))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Level;

    fn sound() -> ServerInfo {
        ServerInfo {
            version: "Valkey 8.0.1".to_owned(),
            eviction: Some("noeviction".to_owned()),
            append_only_file: Some(true),
            is_master: true,
            is_private: true,
            ..ServerInfo::default()
        }
    }

    fn levels(change: impl FnOnce(&mut ServerInfo)) -> Vec<Level> {
        let mut server = sound();
        change(&mut server);
        let mut levels: Vec<Level> =
            findings(&server).into_iter().map(|finding| finding.level).collect();
        levels.retain(|level| *level != Level::Ok);
        levels
    }

    #[test]
    fn a_sound_server_is_all_well_and_each_flaw_is_told() {
        assert_eq!(levels(|_| ()), []);
        assert_eq!(levels(|server| server.version = "Redis 6.0.16".to_owned()), [Level::Failure]);
        assert_eq!(levels(|server| server.version = "Redis 6.2.0".to_owned()), []);
        assert_eq!(levels(|server| server.version = "Redis".to_owned()), [Level::Note]);
        assert_eq!(levels(|server| server.is_master = false), [Level::Failure]);
        let lru = |server: &mut ServerInfo| server.eviction = Some("volatile-lru".to_owned());
        assert_eq!(levels(lru), [Level::Warning]);
        assert_eq!(levels(|server| server.append_only_file = Some(false)), [Level::Note]);
        let copied = |server: &mut ServerInfo| {
            (server.append_only_file, server.replicas) = (Some(false), Some(1));
        };
        assert_eq!(levels(copied), []);
        assert_eq!(levels(|server| server.is_private = false), [Level::Warning]);
        let silent =
            |server: &mut ServerInfo| (server.append_only_file, server.eviction) = (None, None);
        assert_eq!(levels(silent), [], "what it does not tell is not held against it");
    }
}
