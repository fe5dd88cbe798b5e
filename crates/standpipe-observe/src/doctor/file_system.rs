//! The file system of the file store: whether its locks hold, and what it outlasts.

use super::Scene;
use crate::finding::Finding;

const NAME: &str = "file system";

pub(super) fn check(scene: &Scene) -> Vec<Finding> {
    let Some(survey) = &scene.survey else { return Vec::new() };
    vec![match (survey.network.as_deref(), survey.file_system.as_deref()) {
        (Some(network), _) => {
            let what = format!("{network} is a network file system, where locks are not reliable");
            Finding::failure(NAME, what).remedy("set STANDPIPE_HOME to a directory on a local disk")
        }
        (None, Some(kind @ ("tmpfs" | "ramfs"))) => {
            let what = format!("{kind}: usage is lost when the machine restarts");
            Finding::note(NAME, what)
                .remedy("if you have limits of an hour or longer, use a directory on a disk")
        }
        (None, Some(kind @ ("overlay" | "aufs"))) => {
            let what =
                format!("{kind}: if this is a container, other containers do not see this ledger");
            Finding::note(NAME, what)
                .remedy("to share a quota between containers, mount one directory in all of them")
        }
        (None, Some(kind)) => Finding::ok(NAME, format!("{kind}, local")),
        (None, None) => {
            let what = "its type is unknown";
            Finding::note(NAME, what).remedy("check that it is on a local disk")
        }
    }]
}
