//! Under load: what the daemon asks of the machine. Floods, slow clients and used-up descriptors are tested with the
//! guarantees and with the daemon's life.

use std::{fs, time::Duration};

use exeat_loadtest::process::Program;

/// A tunnel takes two descriptors, and the usual soft limit is 1,024.
#[test]
fn the_limit_of_descriptors_is_raised_at_the_start() {
    let limits = |pid: u32| {
        let text = fs::read_to_string(format!("/proc/{pid}/limits")).unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix("Max open files")).unwrap();
        let mut numbers = line.split_whitespace().map(|number| number.parse::<u64>().unwrap_or(u64::MAX));
        (numbers.next().unwrap(), numbers.next().unwrap())
    };
    let script = "ulimit -Sn 100; ulimit -Hn 500; echo low; read go; exec \"$0\" \"$@\"";
    let mut daemon = Program::new("sh")
        .args(["-c", script, env!("CARGO_BIN_EXE_exeat")])
        .args(["serve", "--no-auth", "--listen", "127.0.0.1:0", "--allow", "good.example"])
        .start()
        .unwrap();
    daemon.wait_for_line(Duration::from_secs(5), |line| line == "low").unwrap();
    assert_eq!(limits(daemon.pid()), (100, 500), "the control");
    daemon.write_stdin("\n").unwrap();
    daemon.wait_for_line(Duration::from_secs(20), |line| line.contains("listening")).unwrap();
    assert_eq!(limits(daemon.pid()), (500, 500));
}
