//! Completion scripts: whole, and in the language of their shell.

use std::process::Command;

use exeat_loadtest::{process::Program, requirement::find_program};

use super::transcript::{EXEAT, piped};

#[test]
fn scripts_parse() {
    for (shell, check) in [("bash", &["-n"][..]), ("zsh", &["-n"]), ("fish", &["--no-execute"])] {
        let limit = std::time::Duration::from_secs(20);
        let done = Program::new(EXEAT).args(["completions", shell]).run(limit).unwrap();
        assert!(done.status.success() && done.stderr.is_empty(), "{shell}: {}", done.stderr);
        for word in ["serve", "check", "completions", "allow", "report-only", "log-format"] {
            assert!(done.stdout.contains(word), "{shell} does not know `{word}`");
        }
        // bash is everywhere; the others are parsed where they are.
        let program = find_program(shell);
        assert!(program.is_some() || shell != "bash", "no bash");
        if let Some(program) = program {
            assert_eq!(
                piped(Command::new(program).args(check), &done.stdout),
                (Some(0), String::new()),
                "{shell}"
            );
        }
    }
}

#[test]
fn bash_completes_a_flag() {
    let done =
        Program::new(EXEAT).args(["completions", "bash"]).run(std::time::Duration::from_secs(20)).unwrap();
    let script = format!(
        "{}\nCOMP_WORDS=(exeat serve --rep) COMP_CWORD=2\n_exeat exeat --rep serve\necho \"${{COMPREPLY[@]}}\"\n",
        done.stdout
    );
    let (status, said) = piped(Command::new("bash").arg("--norc"), &script);
    assert_eq!((status, said.as_str()), (Some(0), "--report-only\n"));
}
