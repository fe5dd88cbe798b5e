//! Metrics of proxied calls by model.

use std::collections::BTreeMap;

use super::exposition::{Exposition, millionths};
use super::labels::{MODEL, UNIT};
use crate::proxy::ModelTotals;

/// The text of these metrics, which follows that of the others.
pub(crate) fn text(models: &BTreeMap<String, ModelTotals>) -> String {
    let mut page = Exposition::default();
    write(&mut page, models);
    page.into_text()
}

/// Writes these metrics.
pub(super) fn write(page: &mut Exposition, models: &BTreeMap<String, ModelTotals>) {
    let mut family =
        page.counter("proxied_calls_total", &[MODEL], "Calls through the proxy, by model.");
    for (model, totals) in models {
        family.put(&[model], totals.calls);
    }
    let help = "Calls through the proxy that returned an error.";
    let mut family = page.counter("proxied_errors_total", &[MODEL], help);
    for (model, totals) in models {
        family.put(&[model], totals.errors);
    }
    let help = "Tokens of calls through the proxy; input that did not count is left out.";
    let mut family = page.counter("proxied_tokens_total", &[MODEL, UNIT], help);
    for (model, totals) in models {
        family.put(&[model, "input_tokens"], totals.input_tokens);
        family.put(&[model, "output_tokens"], totals.output_tokens);
    }
    let help = "The cost of calls through the proxy, in dollars, where the pool has prices.";
    let mut family = page.counter("proxied_usd_total", &[MODEL], help);
    for (model, totals) in models {
        family.put(&[model], millionths(totals.micro_usd));
    }
}
