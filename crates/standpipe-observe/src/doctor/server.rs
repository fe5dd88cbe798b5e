//! The server of a network store: version, role, eviction, persistence and access.

use super::{Scene, ServerInfo, from_error, not_checked};
use crate::finding::Finding;

pub(super) const NAME: &str = "server";

/// The oldest version whose commands are enough.
const OLDEST: (u32, u32) = (6, 2);

pub(super) fn check(scene: &Scene) -> Vec<Finding> {
    match scene.store.as_ref().ok().and_then(|store| store.server.as_ref()) {
        None => Vec::new(),
        Some(Ok(server)) => findings(server),
        Some(Err(_)) if scene.is_unreachable() => vec![not_checked(NAME)],
        Some(Err(error)) => vec![from_error(Finding::failure, NAME, error)],
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
        (0, _) => Finding::note(NAME, "the server does not report its version")
            .remedy("allow the user `+info`"),
        old if old < OLDEST => Finding::failure(NAME, format!("{} is too old", server.version))
            .remedy("use Redis 6.2 or newer, or Valkey"),
        _ => Finding::ok(NAME, server.version.clone()),
    }
}

fn role(server: &ServerInfo) -> Option<Finding> {
    (!server.is_master).then(|| {
        Finding::failure(NAME, "it is a replica and rejects writes")
            .remedy("name the master in the store's URL, or use redis+sentinel://")
    })
}

/// The keys of a ledger expire, so every policy except `noeviction` can evict them.
fn eviction(server: &ServerInfo) -> Option<Finding> {
    let policy = server.eviction.as_deref()?;
    if policy == "noeviction" {
        return Some(Finding::ok(NAME, "it never evicts keys"));
    }
    let what = format!("it evicts keys when its memory is full (maxmemory-policy {policy})");
    let remedy = "set maxmemory-policy to noeviction, or use a dedicated server: after an eviction \
                  all limits count as full for one period";
    Some(Finding::warning(NAME, what).remedy(remedy))
}

fn memory(server: &ServerInfo) -> Option<Finding> {
    let replicas = server.replicas.unwrap_or_default();
    match (server.append_only_file?, replicas) {
        (true, _) => Some(Finding::ok(NAME, "its data survives a restart (appendonly)")),
        (false, 0) => {
            let what =
                "its data does not survive a restart; limits then count as full for one period";
            Some(Finding::note(NAME, what).remedy("set appendonly to yes"))
        }
        (false, _) => Some(Finding::ok(NAME, format!("{replicas} replica(s) are connected"))),
    }
}

/// Every client that reaches the server can use quota.
fn privacy(server: &ServerInfo) -> Option<Finding> {
    let (what, remedy) = match (server.is_private, server.has_password) {
        (true, _) => return None,
        (false, true) => (
            "the password is sent over the network in clear text",
            "use rediss:// and TLS on the server",
        ),
        (false, false) => (
            "every host on the network can use its quota",
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
        assert_eq!(levels(silent), [], "what it does not report is no finding");
    }
}
