//! Every page of help leads with examples; completions and the manual know every command.

use crate::support::Home;

const COMMANDS: &[&[&str]] = &[
    &[],
    &["hold"],
    &["reserve"],
    &["commit"],
    &["release"],
    &["cancel"],
    &["heartbeat"],
    &["throttle"],
    &["observe"],
    &["pause"],
    &["resume"],
    &["status"],
    &["explain"],
    &["events"],
    &["audit"],
    &["doctor"],
    &["store"],
    &["store", "ping"],
    &["store", "dump"],
    &["store", "reset"],
    &["store", "upgrade"],
    &["store", "move"],
    &["config"],
    &["config", "init"],
    &["config", "check"],
    &["config", "show"],
    &["config", "schema"],
    &["completions"],
    &["man"],
];

#[test]
fn every_page_of_help_leads_with_examples() {
    let home = Home::new();
    for command in COMMANDS {
        for flag in ["-h", "--help"] {
            let ran = home.run(command.iter().copied().chain([flag]));
            let page = ran.printed();
            let examples = page.find("Examples:\n").unwrap_or_else(|| panic!("{command:?}"));
            let usage = page.find("\nUsage: standpipe").unwrap_or_else(|| panic!("{command:?}"));
            assert!(examples < usage, "{command:?} {flag}");
            assert!(page.lines().all(|line| line.chars().count() <= 100), "{command:?} {flag}");
            assert_eq!(ran.err, "");
        }
    }
    assert_eq!(home.state(), [], "help touches nothing");
}

#[test]
fn without_a_command_there_is_help_and_a_usage_code() {
    let ran = Home::new().run([]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.err.contains("Examples:"), "{ran:?}");
}

#[test]
fn the_version_is_printed() {
    assert!(Home::new().run(["--version"]).printed().starts_with("standpipe "));
}

#[test]
fn completions_cover_every_command() {
    let home = Home::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let ran = home.run(["completions", shell]);
        for command in COMMANDS.iter().filter_map(|command| command.first()) {
            assert!(ran.printed().contains(command), "{shell} lacks {command}");
        }
    }
    home.run(["completions", "basic"]).failed(2, &["basic", "bash"]);
}

#[test]
fn the_manual_has_every_command() {
    let ran = Home::new().run(["man"]);
    let page = ran.printed();
    assert!(page.contains(".TH standpipe"), "{page}");
    for command in COMMANDS.iter().filter(|command| command.len() > 1) {
        let title = format!(".SH \"STANDPIPE {}\"", command.join(" ").to_uppercase());
        assert!(page.contains(&title), "no section {title}");
    }
}
