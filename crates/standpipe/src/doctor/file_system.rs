//! The file system of the file store: whether its locks hold, and what it outlasts.

use super::Scene;
use crate::finding::Finding;

const NAME: &str = "file system";

pub(super) fn check(scene: &Scene) -> Vec<Finding> {
    let Some(survey) = &scene.survey else { return Vec::new() };
    vec![match (survey.network, survey.file_system.as_deref()) {
        (Some(network), _) => {
            let what = format!("{network}, a network file system: its locks do not hold");
            Finding::failure(NAME, what)
                .remedy("point STANDPIPE_HOME to a directory on a local disk")
        }
        (None, Some(kind @ ("tmpfs" | "ramfs"))) => {
            let what = format!("{kind}: what was used is forgotten when the machine restarts");
            Finding::note(NAME, what)
                .remedy("if you have limits of an hour or longer, use a directory on a disk")
        }
        (None, Some(kind @ ("overlay" | "aufs"))) => {
            let what = format!("{kind}: if this is a container, no other sees this ledger");
            Finding::note(NAME, what)
                .remedy("to share a quota between containers, mount one directory in all of them")
        }
        (None, Some(kind)) => Finding::ok(NAME, format!("{kind}, a local one")),
        (None, None) => {
            let what = "which one it is cannot be seen here";
            Finding::note(NAME, what).remedy("see that it is on a local disk")
        }
    }]
}
