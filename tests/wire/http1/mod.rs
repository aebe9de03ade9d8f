//! Plain HTTP/1 requests: what the origin gets, what the client gets, and who is told when one of them leaves.
//!
//! What has to be refused before an origin sees it is `tests/guarantees/g11_one_reading.rs`.

mod abuse;
mod answers;
mod bad_answers;
mod connections;
mod endings;
mod requests;
