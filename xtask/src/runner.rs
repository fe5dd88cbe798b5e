//! Runs the suites one after the other, shows what came of each, and adds up.
//!
//! A failing suite does not stop the others. The last line is `N passed, N failed`, alone.

use std::time::{Duration, Instant};

use crate::context::Context;
use crate::install;
use crate::report::Report;
use crate::say;
use crate::suites::{self, Suite};

/// The command `test`; `false` when a test failed.
pub(crate) fn test(arguments: &[String]) -> Result<bool, String> {
    let request = Request::parse(arguments)?;
    if request.list {
        for suite in suites::ALL {
            say::line(&format!("{:8} {}", suite.name, suite.about));
        }
        return Ok(true);
    }
    let mut context = Context::find()?;
    context.long = request.long;
    install::missing(&context);
    let (mut passed, mut failed) = (0, 0);
    for suite in request.suites {
        let report = run(suite, &context);
        passed += report.passed;
        failed += report.failed;
    }
    say::line("");
    say::line(&format!("{passed} passed, {failed} failed"));
    Ok(failed == 0)
}

/// What the command line asks for.
#[derive(Debug)]
struct Request {
    suites: Vec<&'static Suite>,
    long: bool,
    list: bool,
}

impl Request {
    fn parse(arguments: &[String]) -> Result<Self, String> {
        let mut request = Self { suites: Vec::new(), long: false, list: false };
        for argument in arguments {
            match argument.as_str() {
                "--long" => request.long = true,
                "--list" => request.list = true,
                name => request.suites.push(find(name)?),
            }
        }
        if request.suites.is_empty() {
            request.suites = suites::ALL.iter().collect();
        }
        Ok(request)
    }
}

fn find(name: &str) -> Result<&'static Suite, String> {
    suites::ALL.iter().find(|suite| suite.name == name).ok_or_else(|| {
        let known: Vec<&str> = suites::ALL.iter().map(|suite| suite.name).collect();
        format!("there is no suite `{name}`; there are: {}", known.join(", "))
    })
}

fn run(suite: &Suite, context: &Context) -> Report {
    say::begin(&format!("{:8} ", suite.name));
    let began = Instant::now();
    let report = (suite.run)(context).unwrap_or_else(|message| Report::one(false, message));
    say::line(&summary(&report, began.elapsed()));
    for note in &report.notes {
        say::line(&format!("         {note}"));
    }
    if report.failed > 0 {
        say::line(&format!("\n---- {} ----\n{}\n", suite.name, report.output.trim_end()));
    }
    report
}

fn summary(report: &Report, took: Duration) -> String {
    let tests = report.passed + report.failed;
    let noun = if tests == 1 { "test" } else { "tests" };
    let result = match report.failed {
        0 => "ok".to_owned(),
        failed => format!("FAILED {failed}"),
    };
    format!("{result:10} {tests:5} {noun:5} {:>8}", say::seconds(took))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn no_name_means_every_suite() {
        let request = Request::parse(&words("--long")).unwrap();
        assert_eq!(request.suites.len(), suites::ALL.len());
        assert!(request.long && !request.list);
    }

    #[test]
    fn named_suites_run_in_the_given_order() {
        let request = Request::parse(&words("unit tidy")).unwrap();
        let names: Vec<&str> = request.suites.iter().map(|suite| suite.name).collect();
        assert_eq!(names, ["unit", "tidy"]);
    }

    #[test]
    fn an_unknown_suite_is_answered_with_the_list() {
        let error = Request::parse(&words("unti")).unwrap_err();
        assert!(error.contains("`unti`") && error.contains("fmt, clippy, tidy"), "{error}");
    }

    #[test]
    fn a_summary_says_result_number_and_time() {
        let mut report = Report::one(true, String::new());
        let line = summary(&report, Duration::from_millis(1_290));
        assert_eq!(line, "ok             1 test     1.2 s");
        report.fail("why");
        let line = summary(&report, Duration::from_secs(61));
        assert_eq!(line, "FAILED 1       2 tests   61.0 s");
    }
}
