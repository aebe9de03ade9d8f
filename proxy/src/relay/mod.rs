//! Stand-in.

pub mod http;
