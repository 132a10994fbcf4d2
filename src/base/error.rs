//! The error type: what happened, to what, and what to do.
//!
//! Every error that reaches the operator is a sentence; its [`Kind`] decides the exit status.

use std::fmt;
use std::path::Path;

use crate::printable;

/// Result with [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// The kind of failure; each has its own exit status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Something that should work did not (exit 1).
    Failed,
    /// The operator's input is wrong, or asks for what this host can't do (exit 2).
    Input,
    /// Refused because data that is not ours could be destroyed (exit 3).
    Refused,
    /// Stopped for the host's sake, as asked for: nothing that follows may run either (exit 1).
    Stopped,
    /// Ended early by a signal (exit 130).
    Interrupted,
}

/// An error, for people to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    /// The kind of failure.
    pub kind: Kind,
    /// What happened, to what.
    pub what: String,
    /// What to do about it, if anything.
    pub hint: Option<String>,
}

impl Error {
    fn new(kind: Kind, what: impl Into<String>) -> Self {
        Self { kind, what: what.into(), hint: None }
    }

    /// Something that should work did not.
    pub fn failed(what: impl Into<String>) -> Self {
        Self::new(Kind::Failed, what)
    }

    /// The input is wrong or can't be done on this host.
    pub fn input(what: impl Into<String>) -> Self {
        Self::new(Kind::Input, what)
    }

    /// This build lacks the requested feature; `lacks` follows "this build".
    pub fn not_built(lacks: &str) -> Self {
        Self::input(format!("this build {lacks}")).hint("`make build` builds the full program")
    }

    /// Refused for the safety of data.
    pub fn refused(what: impl Into<String>) -> Self {
        Self::new(Kind::Refused, what)
    }

    /// Stopped for the host's sake.
    pub fn stopped(what: impl Into<String>) -> Self {
        Self::new(Kind::Stopped, what)
    }

    /// Ended early by the operator or a signal.
    pub fn interrupted(what: impl Into<String>) -> Self {
        Self::new(Kind::Interrupted, what)
    }

    /// A system call failed: `doing` is a phrase such as "cannot open".
    pub fn os(doing: &str, path: &Path, error: impl Into<std::io::Error>) -> Self {
        Self::failed(format!("{doing} {}: {}", printable::path(path), describe(&error.into())))
    }

    /// Adds what to do.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The same error, which led to another one.
    #[must_use]
    pub fn and_then(mut self, next: &Self) -> Self {
        self.what = format!("{}; and then {}", self.what, next.what);
        self
    }

    /// The error and what to do, in one line.
    pub fn one_line(&self) -> String {
        match &self.hint {
            Some(hint) => printable::joined(&format!("{} – {hint}", self.what)),
            None => printable::joined(&self.what),
        }
    }

    /// The process's exit status for this error.
    pub fn exit_status(&self) -> u8 {
        match self.kind {
            Kind::Failed | Kind::Stopped => 1,
            Kind::Input => 2,
            Kind::Refused => 3,
            Kind::Interrupted => 130,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        if let Some(hint) = &self.hint {
            write!(f, "\n  {hint}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {}

/// An I/O error in words, with its symbol: `no space left on device (ENOSPC)`.
pub fn describe(error: &std::io::Error) -> String {
    match error.raw_os_error() {
        Some(errno) => describe_errno(errno),
        None => error.to_string(),
    }
}

/// An errno in words, with its symbol.
pub fn describe_errno(errno: i32) -> String {
    let text = std::io::Error::from_raw_os_error(errno).to_string();
    let text = text.split(" (os error").next().unwrap_or(&text).to_lowercase();
    match errno_name(errno) {
        Some(name) => format!("{text} ({name})"),
        None => format!("{text} (errno {errno})"),
    }
}

/// The symbol of an errno that storage produces, or none.
pub fn errno_name(errno: i32) -> Option<&'static str> {
    Some(match errno {
        libc::EPERM => "EPERM",
        libc::ENOENT => "ENOENT",
        libc::EINTR => "EINTR",
        libc::EIO => "EIO",
        libc::ENXIO => "ENXIO",
        libc::EBADF => "EBADF",
        libc::EAGAIN => "EAGAIN",
        libc::ENOMEM => "ENOMEM",
        libc::EACCES => "EACCES",
        libc::EFAULT => "EFAULT",
        libc::EBUSY => "EBUSY",
        libc::EEXIST => "EEXIST",
        libc::ENODEV => "ENODEV",
        libc::ENOTDIR => "ENOTDIR",
        libc::EISDIR => "EISDIR",
        libc::EINVAL => "EINVAL",
        libc::EMFILE => "EMFILE",
        libc::EFBIG => "EFBIG",
        libc::ENOSPC => "ENOSPC",
        libc::EROFS => "EROFS",
        libc::ENOSYS => "ENOSYS",
        libc::ENODATA => "ENODATA",
        libc::ETIME => "ETIME",
        libc::ENOLINK => "ENOLINK",
        libc::EILSEQ => "EILSEQ",
        libc::EOPNOTSUPP => "EOPNOTSUPP",
        libc::ETIMEDOUT => "ETIMEDOUT",
        libc::EREMOTEIO => "EREMOTEIO",
        libc::ECANCELED => "ECANCELED",
        libc::EDQUOT => "EDQUOT",
        libc::EOVERFLOW => "EOVERFLOW",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_errno_is_described_in_words_and_by_symbol() {
        assert_eq!(describe_errno(libc::ENOSPC), "no space left on device (ENOSPC)");
    }

    #[test]
    fn what_to_do_is_told_apart_from_what_happened() {
        let error = Error::os("cannot create", Path::new("/no/where"), rustix::io::Errno::NOENT);
        let error = error.hint("name a folder that exists");
        let what = "cannot create /no/where: no such file or directory (ENOENT)";
        assert_eq!(error.one_line(), format!("{what} – name a folder that exists"));
        assert_eq!(error.to_string(), format!("{what}\n  name a folder that exists"));
    }

    #[test]
    fn each_kind_has_its_exit_status() {
        assert_eq!(Error::failed("x").exit_status(), 1);
        assert_eq!(Error::input("x").exit_status(), 2);
        assert_eq!(Error::refused("x").exit_status(), 3);
        assert_eq!(Error::interrupted("x").exit_status(), 130);
    }
}
