//! `exeat.toml`: no panic, and every answer can be shown to a person.

use std::{fs, process};

use exeat_config::{Color, Diagnostic, Flags, load};

/// Checks one input. A file is read by its path, so the input becomes one.
pub(crate) fn check(data: &[u8]) {
    let path = std::env::temp_dir().join(format!("exeat-invariants-{}.toml", process::id()));
    fs::write(&path, data).expect("a temporary file");
    let loaded = load(Some(&path), &Flags::default());
    fs::remove_file(&path).expect("the same file");
    match loaded {
        Ok(loaded) => {
            assert!(loaded.files.iter().any(|file| file.path == path));
            loaded.warnings.iter().for_each(shown);
        }
        Err(diagnostics) => {
            assert!(diagnostics.iter().next().is_some(), "a refusal says why");
            diagnostics.iter().for_each(shown);
        }
    }
}

fn shown(diagnostic: &Diagnostic) {
    assert!(!diagnostic.message().is_empty());
    let rendered = diagnostic.render(Color::Never);
    assert!(!rendered.chars().any(|c| c.is_control() && c != '\n'), "{rendered:?}");
}
