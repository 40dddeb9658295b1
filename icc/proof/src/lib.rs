//! The algorithms of `Latest` (announced pairs) and `Mailbox` in Rust, for loom: it runs every
//! interleaving, lets loads see every value that the C11 orders allow, and reports payload accesses
//! that race. The explorer in `icc/tests/explorer` checks the shipped C++ headers themselves; this
//! is a second opinion, of a checker that others wrote, on the same algorithms.
#![cfg(test)]

mod announced_pairs;
mod mailbox;
