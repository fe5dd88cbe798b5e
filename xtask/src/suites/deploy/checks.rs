//! The checks, and for each a mistake that it has to find.

use std::path::Path;
use std::process::Command;

use super::{EXPOSITION, Scene, read, write};
use super::{names, needs};
use crate::process::BUILD;

/// One check.
pub(super) struct Check {
    pub(super) name: &'static str,
    pub(super) run: fn(&Scene<'_>) -> Result<(), String>,
    pub(super) mistake: Mistake,
}

/// What is spoilt in a copy.
pub(super) struct Mistake {
    pub(super) file: &'static str,
    pub(super) right: &'static str,
    pub(super) wrong: &'static str,
}

pub(super) const ALL: &[Check] = &[
    Check {
        name: "metrics",
        run: |scene| {
            let file = scene.directory.join(EXPOSITION);
            // It reads from its input.
            let script = format!("\"$0\" check metrics < '{}'", file.display());
            let mut shell = scene.program("sh");
            scene.ask(shell.arg("-c").arg(script).arg(needs::promtool(scene.context)))
        },
        mistake: Mistake { file: EXPOSITION, right: "_total counter", wrong: "_total gauge" },
    },
    Check {
        name: "alerts",
        run: |scene| scene.ask(scene.promtool().args(["check", "rules", "alerts.yml"])),
        mistake: Mistake { file: "alerts.yml", right: "== 0", wrong: "== = 0" },
    },
    Check {
        name: "alert-tests",
        run: |scene| scene.ask(scene.promtool().args(["test", "rules", "alerts.test.yml"])),
        mistake: Mistake {
            file: "alerts.yml",
            right: "standpipe_cut_off == 1",
            wrong: "standpipe_cut_off == 2",
        },
    },
    Check {
        name: "unit",
        run: unit,
        mistake: Mistake {
            file: "standpipe.service",
            right: "ProtectSystem=",
            wrong: "ProtectSystm=",
        },
    },
    Check {
        name: "hardening",
        run: |scene| {
            let mut analyze = scene.program("systemd-analyze");
            analyze.args(["security", "--no-pager", "--offline=true", "--threshold=25"]);
            scene.ask(analyze.arg("./standpipe.service"))
        },
        mistake: Mistake {
            file: "standpipe.service",
            right: "CapabilityBoundingSet=\n",
            wrong: "CapabilityBoundingSet=CAP_SYS_ADMIN CAP_NET_ADMIN CAP_SYS_PTRACE\n",
        },
    },
    Check {
        name: "compose",
        run: |scene| {
            let mut check = scene.tool("check-jsonschema");
            scene.ask(check.args(["--builtin-schema", "vendor.compose-spec", "compose.yml"]))
        },
        mistake: Mistake { file: "compose.yml", right: "restart:", wrong: "restarts:" },
    },
    Check {
        name: "kubernetes",
        run: |scene| {
            scene.ask(scene.tool("kubernetes-validate").args(["--strict", "kubernetes.yml"]))
        },
        mistake: Mistake { file: "kubernetes.yml", right: "readinessProbe:", wrong: "readyProbe:" },
    },
    Check {
        name: "configuration",
        run: configurations,
        mistake: Mistake { file: "kubernetes.yml", right: "token_file", wrong: "tokenfile" },
    },
    Check {
        name: "container",
        run: |scene| scene.ask(scene.tool("hadolint").args(["--no-color", "Dockerfile"])),
        mistake: Mistake { file: "Dockerfile", right: "USER 65532", wrong: "USER root" },
    },
    Check {
        name: "yaml",
        run: |scene| scene.ask(scene.tool("yamllint").args(["--strict", "-d", YAML, "."])),
        mistake: Mistake { file: "kubernetes.yml", right: "\n---\n", wrong: "\n---\n\tx: 1\n" },
    },
    Check {
        name: "dashboard",
        run: dashboard,
        mistake: Mistake {
            file: "grafana.json",
            right: "sum by (reason)",
            wrong: "sum by by (reason)",
        },
    },
    Check {
        name: "names",
        run: names,
        mistake: Mistake {
            file: "grafana.json",
            right: "standpipe_paused",
            wrong: "standpipe_pawsed",
        },
    },
];

/// Lines as long as the house allows; no document needs an opening line.
const YAML: &str = "{extends: default, rules: {line-length: {max: 100}, document-start: disable, \
                    comments: {min-spaces-from-content: 1}}}";

impl Scene<'_> {
    /// A program, run where the copy is.
    fn program(&self, program: impl AsRef<Path>) -> Command {
        let mut command = self.context.program(program);
        command.current_dir(&self.directory).env("NO_COLOR", "1");
        command
    }

    /// One of those that were installed for this.
    fn tool(&self, name: &str) -> Command {
        self.program(needs::python_programs(self.context).join(name))
    }

    fn promtool(&self) -> Command {
        self.program(needs::promtool(self.context))
    }

    /// Runs a program that is content or says why not.
    fn ask(&self, command: &mut Command) -> Result<(), String> {
        let finished = self.context.run(command, BUILD)?;
        if finished.ok { Ok(()) } else { Err(finished.output) }
    }
}

/// A key that systemd does not know is only a warning to it, so it must say nothing at all.
fn unit(scene: &Scene<'_>) -> Result<(), String> {
    let path = scene.directory.join("standpipe.service");
    let text = read(&path)?;
    // The program need not be installed here.
    write(&path, &text.replace("/usr/local/bin/standpipe", "/bin/true"))?;
    let mut verify = scene.program("systemd-analyze");
    verify.args(["verify", "--man=no", "--recursive-errors=no"]).arg(&path);
    let finished = scene.context.run(&mut verify, BUILD)?;
    let content = finished.ok && finished.output.trim().is_empty();
    if content { Ok(()) } else { Err(finished.output) }
}

/// The configurations inside of manifests are ones that the program takes.
fn configurations(scene: &Scene<'_>) -> Result<(), String> {
    for (file, opening) in [("compose.yml", "content: |"), ("kubernetes.yml", "standpipe.toml: |")]
    {
        let text = names::block(&read(&scene.directory.join(file))?, opening)
            .ok_or_else(|| format!("{file} has no `{opening}`"))?;
        let path = scene.directory.join(format!("{file}.toml"));
        write(&path, &text)?;
        let mut standpipe = scene.program(scene.context.standpipe());
        scene.ask(standpipe.args(["config", "check", "--config"]).arg(&path))?;
    }
    Ok(())
}

/// It is JSON, and Prometheus understands every question in it.
fn dashboard(scene: &Scene<'_>) -> Result<(), String> {
    scene.ask(scene.tool("python").args(["-m", "json.tool", "grafana.json", "/dev/null"]))?;
    let text = read(&scene.directory.join("grafana.json"))?;
    write(&scene.directory.join("questions.yml"), &names::questions(&text)?)?;
    scene.ask(scene.promtool().args(["check", "rules", "questions.yml"]))
}

/// Whatever alerts and dashboard ask for is there.
fn names(scene: &Scene<'_>) -> Result<(), String> {
    let known = names::printed(&read(&scene.directory.join(EXPOSITION))?);
    for file in ["alerts.yml", "alerts.test.yml", "grafana.json"] {
        let text = read(&scene.directory.join(file))?;
        let unknown = names::unknown(&text, &known);
        if !unknown.is_empty() {
            return Err(format!("{file} asks for what no daemon prints: {}", unknown.join(", ")));
        }
    }
    Ok(())
}
