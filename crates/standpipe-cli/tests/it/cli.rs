//! The built program, run as a user or script does, each test in a home of its own.

mod bad_input;
mod calls;
mod checks;
mod configuration;
mod help;
mod hints;
mod hold;
mod json;
mod lost_ledger;
mod many_pools;
mod mistakes;
mod output;
mod pause_events;
mod plain_errors;
mod reasons;
mod refused_at_once;
mod signals;
mod status_check;
mod throttled_messages;
mod top;
mod unusable;
mod wait_times;
mod within;
