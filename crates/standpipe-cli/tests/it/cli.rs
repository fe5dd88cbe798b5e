//! The real program, run as people and scripts run it, each test in a home of its own.

mod bad_input;
mod calls;
mod checking;
mod configuration;
mod help;
mod hidden;
mod hold;
mod manners;
mod shapes;
mod signals;
mod top;
mod when;
