//! The same stories with agents that ask the tap first, and those of what it does when a provider
//! says no. They are the *after*; each file holds one beside its before.

mod cascade;
mod crash;
mod day;
mod fair;
mod floors;
mod foreign;
mod herd;
mod hour;
mod incident;
mod inversion;
mod learn;
mod odd;
mod once;
mod overload;
mod page;
mod pause;
mod picture;
mod pools;
mod quota;
mod saturated;
mod scene;
mod stacking;
mod table;
mod terminal;
mod without;
