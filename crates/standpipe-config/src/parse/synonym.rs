//! Names that other programs give to limits of this one. They are suggested, never accepted.

use super::{amount, rate, slots};

/// Names of the number of calls in flight that no unit of a rate has.
const IN_FLIGHT: [&str; 5] =
    ["concurrency", "concurrent", "max_parallel", "in_flight", "max_in_flight"];
/// Names of it that may also be units of a rate: so many jobs per minute.
const IN_FLIGHT_OR_UNIT: [&str; 2] = ["jobs", "slots"];
/// Names of units per minute.
const PER_MINUTE: [(&str, &str); 2] = [("rpm", "requests"), ("tpm", "tokens")];

/// Returns the key and the value of the limit that a name and its figure mean: `parallel` and `3`
/// for `concurrency` and `3`, `requests` and `60/min` for `rpm` and `60`.
pub(crate) fn meant(name: &str, figure: &str) -> Option<(&'static str, String)> {
    let lower = name.to_ascii_lowercase();
    let figure = figure.trim();
    let is_rate = figure.contains('/');
    let is_in_flight = IN_FLIGHT.contains(&lower.as_str())
        || IN_FLIGHT_OR_UNIT.contains(&lower.as_str()) && !is_rate;
    if is_in_flight {
        // Of a rate only the number can be meant.
        let number = figure.split(['/', ',']).next().unwrap_or_default().trim();
        let number = if slots(number).is_ok() { number } else { "5" };
        return Some(("parallel", number.to_owned()));
    }
    let (_, unit) = PER_MINUTE.iter().find(|(known, _)| *known == lower)?;
    let stated = if is_rate { figure.to_owned() } else { format!("{figure}/min") };
    let is_valid = rate(&stated).is_ok() && (is_rate || amount(figure).is_ok());
    Some((unit, if is_valid { stated } else { "60/min".to_owned() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_of_another_program_is_understood() {
        for (name, figure, key, value) in [
            ("concurrency", "3", "parallel", "3"),
            ("concurrency", "3/min", "parallel", "3"),
            ("max_parallel", "many", "parallel", "5"),
            ("Concurrent", "2", "parallel", "2"),
            ("slots", "4", "parallel", "4"),
            ("in_flight", "4", "parallel", "4"),
            ("rpm", "60", "requests", "60/min"),
            ("RPM", "60/h", "requests", "60/h"),
            ("tpm", "400k", "tokens", "400k/min"),
            ("rpm", "lots", "requests", "60/min"),
        ] {
            assert_eq!(meant(name, figure), Some((key, value.to_owned())), "{name}={figure}");
        }
        for (name, figure) in [("jobs", "5/min"), ("slots", "5/h"), ("gpu", "5"), ("rps", "5")] {
            assert_eq!(meant(name, figure), None, "{name}={figure}");
        }
    }
}
