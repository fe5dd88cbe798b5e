//! The built program, run as a user or script does, each test in a home of its own.

mod bad_input;
mod calls;
mod checks;
mod configuration;
mod help;
mod hold;
mod json;
mod mistakes;
mod output;
mod plain_errors;
mod reasons;
mod signals;
mod throttled_messages;
mod top;
mod unusable;
mod wait_times;
mod within;
