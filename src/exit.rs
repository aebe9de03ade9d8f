//! Exit statuses: what each means is in `docs/exit-codes.md`, which a test compares with this table.

use std::process::ExitCode;

/// How a command ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// It did what it was asked, or the answer is yes.
    Success,
    /// `check`: the answer is no.
    Refused,
    /// It could not do what it was asked.
    Failure,
    /// It was asked wrongly: flags, or a configuration that is not valid.
    Usage,
}

impl Exit {
    /// The number.
    pub(crate) const fn number(self) -> u8 {
        match self {
            Self::Success => 0,
            Self::Refused | Self::Failure => 1,
            Self::Usage => 2,
        }
    }

    pub(crate) fn code(self) -> ExitCode {
        ExitCode::from(self.number())
    }
}
