//! Log lines for people (or for a collector, as JSON), on standard error.
//!
//! This is what the daemon says of itself. What its clients did is in the audit log. Untrusted text is escaped
//! where it enters a message; the formatter here escapes once more whatever a terminal would act on, so that one
//! forgotten place is not a hole. Not here: repetition, which `exeat_proxy::record::RateLimit` bounds.

use std::{
    fmt::{self, Write as _},
    io::{self, IsTerminal as _},
};

use tracing::{
    Event, Level, Subscriber,
    field::{Field, Visit},
    level_filters::LevelFilter,
};
use tracing_subscriber::{
    filter::Targets,
    fmt::{
        FmtContext, FormatEvent, FormatFields, MakeWriter,
        format::Writer,
        time::{FormatTime as _, SystemTime},
    },
    layer::SubscriberExt as _,
    registry::LookupSpan,
    util::SubscriberInitExt as _,
};

/// How a log line looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub(crate) enum LogFormat {
    /// For people.
    #[default]
    Human,
    /// One JSON object per line.
    Json,
}

/// Whether a line has colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Colour {
    Yes,
    No,
}

/// The level after so many `-v` and `-q`.
pub(crate) fn level(default: LevelFilter, verbose: u8, quiet: u8) -> LevelFilter {
    const SCALE: [LevelFilter; 6] = [
        LevelFilter::OFF,
        LevelFilter::ERROR,
        LevelFilter::WARN,
        LevelFilter::INFO,
        LevelFilter::DEBUG,
        LevelFilter::TRACE,
    ];
    let start = SCALE.iter().position(|level| *level == default).unwrap_or(0);
    let place = (start + usize::from(verbose)).saturating_sub(usize::from(quiet));
    SCALE[place.min(SCALE.len() - 1)]
}

/// Sends log lines to standard error from now on. Only the first call has an effect.
pub(crate) fn init(format: LogFormat, level: LevelFilter) {
    let colour = if io::stderr().is_terminal() { Colour::Yes } else { Colour::No };
    // Fails only if there is a subscriber already, which then stays.
    let _ = subscriber(format, level, colour, io::stderr).try_init();
}

fn subscriber<W>(
    format: LogFormat,
    level: LevelFilter,
    colour: Colour,
    writer: W,
) -> Box<dyn Subscriber + Send + Sync>
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    // Ours as asked for; libraries only when something is wrong, or when everything is wanted.
    let others = if level == LevelFilter::TRACE { level } else { level.min(LevelFilter::WARN) };
    let filter = Targets::new().with_default(others).with_target("exeat", level);
    // A closed standard error is no reason to print to standard error.
    let layer = tracing_subscriber::fmt::layer().with_writer(writer).log_internal_errors(false);
    let registry = tracing_subscriber::registry().with(filter);
    match format {
        LogFormat::Human => Box::new(registry.with(layer.event_format(Human { colour }))),
        LogFormat::Json => Box::new(registry.with(layer.json().flatten_event(true).with_target(false))),
    }
}

/// `2026-11-30T12:00:00.123456Z WARN words key=value`. Spans are not shown: what belongs to a flow says so.
struct Human {
    colour: Colour,
}

impl<S, N> FormatEvent<S, N> for Human
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'w> FormatFields<'w> + 'static,
{
    fn format_event(
        &self,
        _: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        SystemTime.format_time(&mut writer)?;
        let level = *event.metadata().level();
        match self.colour {
            Colour::Yes => write!(writer, " \x1b[{}m{level}\x1b[0m", colour_of(level))?,
            Colour::No => write!(writer, " {level}")?,
        }
        let mut fields = Fields { out: Escaped { inner: &mut writer }, result: Ok(()) };
        event.record(&mut fields);
        fields.result?;
        writeln!(writer)
    }
}

fn colour_of(level: Level) -> u8 {
    match level {
        Level::ERROR => 31,
        Level::WARN => 33,
        Level::INFO => 32,
        Level::DEBUG => 34,
        Level::TRACE => 35,
    }
}

/// Writes the message, then `key=value` for each field.
struct Fields<'a, 'w> {
    out: Escaped<'a, 'w>,
    result: fmt::Result,
}

impl Fields<'_, '_> {
    fn put(&mut self, field: &Field, value: fmt::Arguments<'_>) {
        if self.result.is_ok() {
            self.result = if field.name() == "message" {
                write!(self.out, " {value}")
            } else {
                write!(self.out, " {}={value}", field.name())
            };
        }
    }
}

impl Visit for Fields<'_, '_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put(field, format_args!("{value:?}"));
    }

    fn record_error(&mut self, field: &Field, value: &(dyn std::error::Error + 'static)) {
        self.put(field, format_args!("{}", Chain(value)));
    }
}

/// An error and what caused it: `Display` prints its own level only.
struct Chain<'a>(&'a (dyn std::error::Error + 'static));

impl fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)?;
        let mut next = self.0.source();
        while let Some(source) = next {
            write!(f, ": {source}")?;
            next = source.source();
        }
        Ok(())
    }
}

/// Passes printable characters on and escapes the others as it goes.
struct Escaped<'a, 'w> {
    inner: &'a mut Writer<'w>,
}

impl fmt::Write for Escaped<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let mut rest = text;
        while let Some((at, character)) = rest.char_indices().find(|(_, character)| is_unsafe(*character)) {
            self.inner.write_str(&rest[..at])?;
            write!(self.inner, "{}", character.escape_default())?;
            rest = &rest[at + character.len_utf8()..];
        }
        self.inner.write_str(rest)
    }
}

/// What a terminal acts on instead of showing it: controls, separators of lines, and what turns the direction of
/// text or has no width (Unicode TR 36 section 2.10.2, CVE-2021-42574).
fn is_unsafe(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Buffer(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Buffer {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn logged(format: LogFormat, level: LevelFilter, colour: Colour, log: impl FnOnce()) -> String {
        let buffer = Buffer::default();
        let writer = buffer.clone();
        let subscriber = subscriber(format, level, colour, move || writer.clone());
        tracing::subscriber::with_default(subscriber, log);
        let bytes = buffer.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap()
    }

    fn human(log: impl FnOnce()) -> String {
        logged(LogFormat::Human, LevelFilter::INFO, Colour::No, log)
    }

    #[test]
    fn a_line_for_people_has_time_level_words_and_fields() {
        let line = human(|| tracing::warn!(suppressed = 3, host = "a b", port = %443, "cannot accept"));
        let (time, rest) = line.split_once(' ').unwrap();
        assert!(time.ends_with('Z') && time.contains('T'), "{time}");
        assert_eq!(rest, "WARN cannot accept suppressed=3 host=\"a b\" port=443\n");
    }

    #[test]
    fn an_error_is_shown_with_its_causes() {
        #[derive(Debug, thiserror::Error)]
        #[error("outer")]
        struct Outer(#[source] io::Error);
        let error = Outer(io::Error::other("inner\n"));
        let line = human(|| tracing::error!(error = &error as &(dyn std::error::Error + 'static), "failed"));
        assert!(line.ends_with(" ERROR failed error=outer: inner\\n\n"), "{line:?}");
    }

    #[test]
    fn nothing_reaches_the_terminal_raw() {
        let hostile: String = ('\0'..='\u{a0}')
            .filter(|c| c.is_control())
            .chain(['\u{202e}', '\u{2066}', '\u{2028}', '\u{200b}', '\u{feff}'])
            .collect();
        let text = hostile.as_str();
        let line = human(|| {
            tracing::info!(display = %text, debug = ?text, plain = text, "message {text}");
            tracing::info!(error = &io::Error::other(text) as &(dyn std::error::Error + 'static), "{}", text);
        });
        assert_eq!(line.matches('\n').count(), 2, "one line per event: {line:?}");
        assert!(line.chars().all(|c| c == '\n' || !hostile.contains(c)), "{line:?}");
        assert!(line.contains("\\u{1b}") && line.contains("\\r"), "{line:?}");
    }

    #[test]
    fn readable_text_of_any_script_is_left_alone() {
        let line = human(|| tracing::info!("b\u{fc}cher \u{4f8b}\u{3048} C:\\x"));
        assert!(line.ends_with(" INFO b\u{fc}cher \u{4f8b}\u{3048} C:\\x\n"), "{line:?}");
    }

    #[test]
    fn colours_are_ours_alone() {
        let line = logged(LogFormat::Human, LevelFilter::INFO, Colour::Yes, || {
            tracing::error!("\x1b[2J{}", "\x1b[31m");
        });
        assert!(line.ends_with(" \x1b[31mERROR\x1b[0m \\u{1b}[2J\\u{1b}[31m\n"), "{line:?}");
        let plain = human(|| tracing::error!("x"));
        assert!(!plain.contains('\x1b'), "{plain:?}");
    }

    #[test]
    fn json_lines_parse_and_stay_lines() {
        let text = "a\r\n\x1b[31m\"";
        let lines = logged(LogFormat::Json, LevelFilter::INFO, Colour::No, || {
            tracing::warn!(host = %text, count = 2, "words");
        });
        assert_eq!(lines.matches('\n').count(), 1, "{lines:?}");
        assert!(!lines.contains('\x1b'), "{lines:?}");
        let line: serde_json::Value = serde_json::from_str(&lines).unwrap();
        assert_eq!(
            (&line["level"], &line["message"], &line["host"]),
            (&"WARN".into(), &"words".into(), &text.into())
        );
        assert_eq!(line["count"], 2);
    }

    #[test]
    fn the_level_holds_for_us_and_libraries_are_quiet() {
        let log = || {
            tracing::debug!(target: "exeat_proxy::record", "ours");
            tracing::info!(target: "hickory_resolver", "theirs");
            tracing::warn!(target: "hickory_resolver", "their warning");
        };
        let at = |level| logged(LogFormat::Human, level, Colour::No, log);
        assert_eq!(at(LevelFilter::DEBUG).lines().count(), 2);
        assert_eq!(at(LevelFilter::WARN).lines().count(), 1);
        assert_eq!(at(LevelFilter::ERROR).lines().count(), 0);
        assert_eq!(at(LevelFilter::TRACE).lines().count(), 3);
    }

    #[test]
    fn flags_move_the_level() {
        let table = [
            (LevelFilter::INFO, 0, 0, LevelFilter::INFO),
            (LevelFilter::INFO, 1, 0, LevelFilter::DEBUG),
            (LevelFilter::INFO, 9, 0, LevelFilter::TRACE),
            (LevelFilter::INFO, 0, 1, LevelFilter::WARN),
            (LevelFilter::INFO, 0, 9, LevelFilter::OFF),
            (LevelFilter::WARN, 1, 1, LevelFilter::WARN),
        ];
        for (default, verbose, quiet, expected) in table {
            assert_eq!(level(default, verbose, quiet), expected, "{default} -v×{verbose} -q×{quiet}");
        }
    }
}
