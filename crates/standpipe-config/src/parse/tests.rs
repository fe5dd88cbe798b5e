//! Valid texts and their values, invalid texts and their errors.

use super::*;

#[track_caller]
fn rejects<T: fmt::Debug>(result: Result<T, TextError>, what: &str, remedy: &str) {
    let error = result.unwrap_err();
    assert!(error.what.contains(what), "{error}");
    assert!(error.remedy.contains(remedy), "{error}");
}

#[test]
fn rates_in_every_unit_of_time() {
    for (text, amount, micros) in [
        ("60/min", 60, 60_000_000),
        ("30/2s", 30, 2_000_000),
        ("2M/min", 2_000_000, 60_000_000),
        ("400k/h", 400_000, 3_600_000_000),
        ("1G/d", 1_000_000_000, 86_400_000_000),
        ("1/100ms", 1, 100_000),
        ("1_000/min", 1_000, 60_000_000),
        ("1.5M/min", 1_500_000, 60_000_000),
        ("10/0.5s", 10, 500_000),
        (" 60 / min ", 60, 60_000_000),
    ] {
        assert_eq!(rate(text), Ok((amount, Span(micros))), "{text}");
    }
    assert_eq!(rate_of(&Unit::Usd, "20/d"), Ok((20_000_000, Span::secs(86_400))));
    assert_eq!(rate_of(&Unit::Usd, "0.5/h"), Ok((500_000, Span::secs(3_600))));
}

#[test]
fn invalid_rates() {
    rejects(rate("99999999999999999/min"), "is too large", "the most that is counted is 10");
    rejects(rate("60/m"), "\"m\" is not a unit of time", "write 60/min or 60/ms");
    rejects(rate("60"), "has no period", "\"60/min\"");
    rejects(rate(""), "is not a rate", "60/min");
    rejects(rate("fast"), "is not a rate", "60/min");
    rejects(rate("60/"), "has no unit", "60/min");
    rejects(rate("60/60"), "has no unit", "30/2s");
    rejects(rate("60/0s"), "is zero", "60/min");
    rejects(rate("0/min"), "admits no call", "above 0");
    rejects(rate("-5/min"), "negative", "above 0");
    rejects(rate("1.5/min"), "not a whole number", "counted whole, write 3/2min");
    rejects(rate("0.5/s"), "not a whole number", "write 1/2s");
    rejects(rate("0.25/5min"), "not a whole number", "write 1/20min");
    rejects(rate("0.00001/min"), "not a whole number", "counted whole");
    rejects(rate("/min"), "not an amount", "1200");
    rejects(rate("60/minute"), "unit of time", "`min`");
    rejects(rate("60/fortnight"), "unit of time", "ms, s, min, h and d");
    rejects(rate("60/min/s"), "unit of time", "ms, s, min, h and d");
    rejects(rate("60K/min"), "not an amount", "small `k`");
    rejects(rate("2m/min"), "not an amount", "capital `M`");
    rejects(rate("9999999G/min"), "too large", "1000000000000000");
    rejects(rate("1/500d"), "too long", "400d");
    rejects(rate("1/-5s"), "negative", "0 or more");
    rejects(rate("6🚰/min"), "not an amount", "1200");
}

#[test]
fn durations_are_exact_to_the_microsecond() {
    for (text, micros) in [
        ("500ms", 500_000),
        ("30s", 30_000_000),
        ("5min", 300_000_000),
        ("2h", 7_200_000_000),
        ("1d", 86_400_000_000),
        ("30", 30_000_000),
        ("0", 0),
        ("0.5", 500_000),
        ("0.000001s", 1),
        ("1.5h", 5_400_000_000),
        ("0.1ms", 100),
        ("007s", 7_000_000),
        ("2 min", 120_000_000),
        ("1.000000000s", 1_000_000),
        ("400d", bounds::SPAN.0),
    ] {
        assert_eq!(duration(text), Ok(Span(micros)), "{text}");
    }
}

#[test]
fn invalid_durations() {
    rejects(duration("5m"), "\"m\" is not a unit of time", "write 5min or 5ms");
    rejects(duration(""), "not a duration", "5min");
    rejects(duration("soon"), "not a duration", "5min");
    rejects(duration("-3s"), "negative", "0 or more");
    rejects(duration("0.0000001s"), "finer than a microsecond", "fewer decimals");
    rejects(duration("401d"), "too long", "400d");
    rejects(duration("99999999999999999999999s"), "too long", "400d");
    rejects(duration("1h30min"), "\"1h30min\" has several units", "write 90min");
    rejects(duration("1h30m"), "has several units", "write 90min");
    rejects(duration("1d 12h"), "has several units", "write 36h");
    rejects(duration("1h30x"), "unit of time", "ms, s, min, h and d");
    rejects(duration("1..5s"), "not a duration", "5min");
    rejects(duration(".5s"), "not a duration", "5min");
    rejects(duration("5.s"), "not a duration", "5min");
    rejects(duration("1e3"), "unit of time", "ms, s, min, h and d");
    rejects(duration("_5s"), "not a duration", "5min");
    rejects(duration("+5s"), "not a duration", "5min");
    rejects(duration("5 sec"), "unit of time", "`s`");
}

#[test]
fn amounts_with_multiples_and_underscores() {
    for (text, amount) in [
        ("0", 0),
        ("1200", 1_200),
        ("1_200", 1_200),
        ("400k", 400_000),
        ("2M", 2_000_000),
        ("1.5G", 1_500_000_000),
        ("1000000G", bounds::AMOUNT),
        ("0.001k", 1),
    ] {
        assert_eq!(super::amount(text), Ok(amount), "{text}");
    }
    assert_eq!(amount_of(&Unit::Usd, "0.000001"), Ok(1));
    assert_eq!(amount_of(&Unit::Usd, "12.5"), Ok(12_500_000));
}

#[test]
fn invalid_amounts() {
    rejects(amount("-1"), "negative", "0 or more");
    rejects(amount("1.5"), "not a whole number", "whole");
    rejects(amount("0.0001k"), "not a whole number", "whole");
    rejects(amount("1000001G"), "too large", "1000000000000000");
    rejects(amount("18446744073709551616"), "too large", "1000000000000000");
    rejects(amount(&"9".repeat(10_000)), "too large", "1000000000000000");
    rejects(amount("1__0"), "not an amount", "1200");
    rejects(amount("--1"), "not an amount", "1200");
    rejects(amount("1-2"), "not an amount", "1200");
    rejects(amount("12 apples"), "not an amount", "1200");
    rejects(amount("٣"), "not an amount", "1200");
    rejects(amount_of(&Unit::Usd, "0.0000001"), "millionth", "six decimals");
    rejects(amount_of(&Unit::Usd, "1000000001"), "too large", "most that is counted is 1000000000");
    rejects(amount_of(&Unit::Usd, "$5"), "not an amount", "1200");
}

#[test]
fn costs_name_each_unit_once() {
    let parsed = costs("input_tokens=1200, output_tokens = 800").unwrap();
    assert_eq!(parsed, [(Unit::InputTokens, 1_200), (Unit::OutputTokens, 800)]);
    assert_eq!(costs("requests=0").unwrap(), [(Unit::Requests, 0)]);
    rejects(costs(""), "not a cost", "unit=amount");
    rejects(costs("tokens"), "not a cost", "unit=amount");
    rejects(costs("tokens=1,"), "not a cost", "unit=amount");
    rejects(costs("tokens=1,tokens=2"), "`tokens` is named twice", "once");
    rejects(costs("tokens=-1"), "negative", "0 or more");
    rejects(costs("Tokens=1"), "not the name of a unit", "did you mean `tokens`?");
    rejects(costs("GPU=1"), "not the name of a unit", "write `gpu`");
    rejects(costs("a b=1"), "not the name of a unit", "a-z");
    assert_eq!(costs("parallel=3"), Ok(vec![(Unit::Parallel, 3)]));
    rejects(costs("parallel=3,parallel=1"), "named twice", "once");
    let many: Vec<String> = (0..17).map(|n| format!("u{n}=1")).collect();
    rejects(costs(&many.join(",")), "17 units", "16");
}

#[test]
fn limits_as_flags() {
    let period = Span::secs(60);
    let window = |unit: Unit| Rule::Window { unit, amount: 60, period };
    assert_eq!(limit("requests=60/min"), Ok(Limit::new(window(Unit::Requests))));
    assert_eq!(limit("parallel = 5"), Ok(Limit::new(Rule::Parallel { amount: 5 })));
    let output = limit("output_tokens=60/min").unwrap();
    assert_eq!((output.rule, output.charged), (window(Unit::OutputTokens), Charged::End));
    rejects(limit("requests"), "not a limit", "requests=60/min");
    rejects(limit("requests=60"), "no period", "60/min");
    rejects(limit("parallel=0"), "admits no call", "above 0");
    rejects(limit("parallel=5/min"), "is a rate", "number alone");
    rejects(limit("parallel=2.5"), "not a whole number", "whole");
    rejects(limit("=5/min"), "not the name of a unit", "a-z");
    rejects(limit("paralel=2"), "`paralel` is not a known unit", "did you mean `parallel`?");
    rejects(limit("request=60"), "`request` is not a known unit", "did you mean `requests`?");
    rejects(limit("widgets=60"), "no period", "60/min");
}

#[test]
fn shares_in_thousandths() {
    assert_eq!(percent("25%"), Ok(250));
    assert_eq!(percent("12.5 %"), Ok(125));
    assert_eq!(percent("0%"), Ok(0));
    assert_eq!(percent("100%"), Ok(1_000));
    assert_eq!(share("0.8"), Ok(800));
    assert_eq!(share("1"), Ok(1_000));
    assert_eq!(share("1.0"), Ok(1_000));
    assert_eq!(share("80%"), Ok(800));
    rejects(percent("25"), "not a percentage", "25%");
    rejects(percent("101%"), "more than 100 %", "100%");
    rejects(percent("0.01%"), "finer", "one decimal");
    rejects(percent("-5%"), "negative", "between");
    rejects(percent("%"), "not a share", "25%");
    rejects(share("80"), "more than 100 %", "100%");
    rejects(share("most"), "not a share", "25%");
}

#[test]
fn long_and_unprintable_texts_are_shown_short_and_escaped() {
    let error = rate(&"x".repeat(10_000)).unwrap_err();
    assert!(error.to_string().len() < 200, "{error}");
    let error = rate("a\nb\u{1b}[31m").unwrap_err();
    assert!(!error.to_string().chars().any(char::is_control), "{error}");
}

#[test]
fn names_and_numbers_of_other_programs_have_a_hint_that_works() {
    for (text, what, hint) in [
        ("concurrency=3", "there is no unit `concurrency`", "did you mean parallel=3?"),
        ("jobs=2", "there is no unit `jobs`", "did you mean parallel=2?"),
        ("rpm=60", "there is no unit `rpm`", "did you mean requests=60/min?"),
        ("tpm=40k/min", "there is no unit `tpm`", "did you mean tokens=40k/min?"),
        ("tokens=100,000/min", "\"100,000\" has commas", "write 100000 or 100k"),
        ("parallel=two", "\"two\" is not an amount", "write a whole number, for example 5"),
        ("parallel=-2", "\"-2\" is negative", "write a number above 0, for example 5"),
    ] {
        let error = limit(text).unwrap_err();
        assert_eq!((error.what.as_str(), error.remedy.contains(hint)), (what, true), "{error}");
    }
    let error = costs("tokens=100,000").unwrap_err();
    assert_eq!(error.to_string(), "\"100,000\" has commas; write 100000 or 100k");
    assert!(costs("tokens=100,zzz").unwrap_err().what.contains("zzz"));
    assert!(limit("jobs=5/min").is_ok() && limit("slots=5/min").is_ok());
}
