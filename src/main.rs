//! x
#[cfg_attr(not(test), expect(dead_code, reason = "called once the commands are written"))]
mod daemon;
#[cfg_attr(not(test), expect(dead_code, reason = "called once the commands are written"))]
mod logging;

fn main() {}
