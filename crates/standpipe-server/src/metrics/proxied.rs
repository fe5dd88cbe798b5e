//! Metrics of proxied calls by model.

use std::collections::BTreeMap;

use super::exposition::{Exposition, millionths};
use crate::proxy::ModelTotals;

/// The text of these metrics, which follows that of the others.
pub(crate) fn text(models: &BTreeMap<String, ModelTotals>) -> String {
    let mut page = Exposition::default();
    let mut family = page.counter("proxied_calls_total", "Calls through the proxy, by model.");
    for (model, totals) in models {
        family.put(&[("model", model)], totals.calls);
    }
    let help = "Calls through the proxy that were answered with an error.";
    let mut family = page.counter("proxied_errors_total", help);
    for (model, totals) in models {
        family.put(&[("model", model)], totals.errors);
    }
    let help = "Tokens of calls through the proxy; input that did not count is left out.";
    let mut family = page.counter("proxied_tokens_total", help);
    for (model, totals) in models {
        family.put(&[("model", model), ("unit", "input_tokens")], totals.input_tokens);
        family.put(&[("model", model), ("unit", "output_tokens")], totals.output_tokens);
    }
    let help = "The cost of calls through the proxy, in dollars, where the pool has prices.";
    let mut family = page.counter("proxied_usd_total", help);
    for (model, totals) in models {
        family.put(&[("model", model)], millionths(totals.micro_usd));
    }
    page.into_text()
}
