//! x
#[expect(dead_code, reason = "called once the commands are written")]
mod daemon;
#[expect(dead_code, reason = "called once the commands are written")]
mod logging;

fn main() {}
