//! Stage 2: from the first byte to a claim.

pub mod http;
