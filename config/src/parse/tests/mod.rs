//! Goldens for what a person reads, and tables for what a file means.
#![expect(clippy::needless_raw_string_hashes, reason = "snapbox writes them")]
#![expect(clippy::format_push_string, clippy::format_collect, reason = "tests may be plain")]
mod daemon;
mod profiles;
mod sessions;
mod shape;

use crate::{
    diagnostic::{Color, Report},
    settings::Settings,
    source::TextFile,
};

fn parse(text: &str) -> Result<(Settings, Vec<String>), String> {
    let mut report = Report::default();
    let settings = super::parse(&mut TextFile::for_test("exeat.toml", text), &mut report);
    match report.finish() {
        Ok(warnings) => Ok((settings, warnings.iter().map(|one| one.render(Color::Never)).collect())),
        Err(diagnostics) => Err(diagnostics.to_string()),
    }
}

/// The settings of a file without fault or warning.
#[track_caller]
fn settings(text: &str) -> Settings {
    let (settings, warnings) = parse(text).unwrap();
    assert_eq!(warnings, Vec::<String>::new());
    settings
}

#[track_caller]
fn warnings(text: &str) -> String {
    parse(text).unwrap().1.join("\n\n")
}

/// What is shown of a file with too many rules, when there may be `max`.
fn errors_within(text: &str, max: usize) -> String {
    let mut report = Report::default();
    super::parse_within(&mut TextFile::for_test("exeat.toml", text), &mut report, max);
    report.finish().unwrap_err().to_string()
}

/// What is shown of a faulty file.
#[track_caller]
fn errors(text: &str) -> String {
    parse(text).unwrap_err()
}
