//! The connection to the helper: its process, the socket to it, and its end.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::protocol::{Answer, Ask, Reply, Request, say, understand};
use crate::error::{Error, Result, describe};
use crate::load::workers::control::Writes;
use crate::threads;

/// The helper has this long to release the drives, then it is killed.
const END_PATIENCE: Duration = Duration::from_secs(20);
const LOOK: Duration = Duration::from_millis(10);
/// Lines of the helper's output that are kept.
const WORDS: usize = 20;
/// How many of them go into a message.
const LAST_WORDS: usize = 3;

pub(super) fn lock(link: &Mutex<Link>) -> MutexGuard<'_, Link> {
    link.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cold]
pub(super) fn senseless(answer: &Answer) -> Error {
    Error::failed(format!("unexpected answer from the process that drives SPDK: {answer:?}"))
}

/// The socket to the helper, and the process.
pub(super) struct Link {
    pub stream: UnixStream,
    answers: BufReader<UnixStream>,
    /// `None` in tests, where the helper is a thread.
    child: Option<Child>,
    words: Arc<Mutex<VecDeque<String>>>,
    listener: Option<JoinHandle<()>>,
    /// The counts that follow the helper's; every request carries their limit.
    pub writes: Option<Arc<Writes>>,
    /// Why no more requests can be made.
    failed: Option<Error>,
}

impl Link {
    /// Starts the helper that this command runs, and connects to it.
    ///
    /// # Errors
    /// Failed if it can't be started.
    pub fn spawn(mut command: Command) -> Result<Self> {
        let failed = |error: std::io::Error| {
            Error::failed(format!("cannot start the process that drives SPDK: {}", describe(&error)))
        };
        let (ours, theirs) = UnixStream::pair().map_err(failed)?;
        let (said, saying) = std::io::pipe().map_err(failed)?;
        // In its own process group, away from the terminal's signals: it ends when this process releases it.
        command.stdin(OwnedFd::from(theirs)).process_group(0);
        command.stdout(saying.try_clone().map_err(failed)?).stderr(Stdio::from(saying));
        let child = command.spawn().map_err(failed)?;
        // The command holds the other ends of socket and pipe, which must close when the helper ends.
        drop(command);
        let mut link = Self::over(ours)?;
        link.child = Some(child);
        let words = link.words.clone();
        let listener = threads::start("read SPDK's messages", move || listen(BufReader::new(said), &words));
        link.listener = Some(listener?);
        Ok(link)
    }

    /// A link over a socket with a helper at its other end.
    pub fn over(stream: UnixStream) -> Result<Self> {
        let answers = stream.try_clone().map_err(|error| {
            Error::failed(format!(
                "cannot communicate with the process that drives SPDK: {}",
                describe(&error)
            ))
        })?;
        Ok(Self {
            stream,
            answers: BufReader::new(answers),
            child: None,
            words: Arc::default(),
            listener: None,
            writes: None,
            failed: None,
        })
    }

    /// Sets how long to wait for an answer.
    pub fn be_patient(&self, time: Duration) {
        // A socket that does not support a timeout waits without one.
        let _ = self.stream.set_read_timeout(Some(time));
    }

    /// Sends a request and waits for the answer.
    pub fn ask(&mut self, ask: Ask) -> Result<Answer> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let limit_bytes = self.writes.as_ref().map_or(u64::MAX, |writes| writes.limit_bytes());
        let reply = match self.exchange(&Request { ask, limit_bytes }) {
            Ok(reply) => reply,
            Err(error) => {
                let error = self.gone(&error);
                self.failed = Some(error.clone());
                return Err(error);
            }
        };
        if let (Some(writes), Some(bytes)) = (&self.writes, reply.written_bytes) {
            writes.follow(bytes);
        }
        reply.answer.map_err(Error::from)
    }

    fn exchange(&mut self, request: &Request) -> std::io::Result<Reply> {
        say(&mut self.stream, request)?;
        let mut line = Vec::new();
        self.answers.read_until(b'\n', &mut line)?;
        if !line.ends_with(b"\n") {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        understand(&line)
    }

    /// Why the helper does not answer. It has ended by itself, or is ended now.
    #[cold]
    fn gone(&mut self, error: &std::io::Error) -> Error {
        let what = match error.kind() {
            std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut => {
                let then = if self.kill() {
                    "was killed"
                } else {
                    "can't be killed: the kernel still waits for a drive"
                };
                format!("the process that drives SPDK no longer responds, and {then}")
            }
            _ => {
                if let Some(status) = self.wait(Duration::from_secs(2)) {
                    format!("the process that drives SPDK has ended: {}", end_of(status))
                } else {
                    self.kill();
                    format!("the answer of the process that drives SPDK can't be parsed: {}", describe(error))
                }
            }
        };
        self.with_words(Error::failed(what))
    }

    /// Adds the last lines of the helper's output.
    pub fn with_words(&mut self, error: Error) -> Error {
        if self.failed.is_none() || self.child.is_none() {
            // If it has ended, the rest of its output will be read soon.
            let until = Instant::now() + Duration::from_millis(500);
            while self.listener.as_ref().is_some_and(|thread| !thread.is_finished()) && Instant::now() < until
            {
                std::thread::sleep(LOOK);
            }
        }
        let words = self.words.lock().unwrap_or_else(PoisonError::into_inner);
        let last: Vec<&str> = words.iter().rev().take(LAST_WORDS).rev().map(String::as_str).collect();
        if last.is_empty() || error.what.contains("last output") {
            return error;
        }
        Error { what: format!("{}; last output: {}", error.what, last.join(" | ")), ..error }
    }

    /// Waits for it to end, but not longer than `patience`.
    fn wait(&mut self, patience: Duration) -> Option<ExitStatus> {
        let child = self.child.as_mut()?;
        let until = Instant::now() + patience;
        loop {
            match child.try_wait() {
                Ok(Some(status)) => return Some(status),
                Ok(None) if Instant::now() < until => std::thread::sleep(LOOK),
                _ => return None,
            }
        }
    }

    /// Kills it. Returns whether it has ended: the kernel may keep it while it waits for a drive that does
    /// not respond.
    fn kill(&mut self) -> bool {
        // Killing one that has already ended fails, but it must be reaped all the same.
        let _ = self.child.as_mut().map(std::process::Child::kill);
        self.wait(END_PATIENCE).is_some()
    }

    /// Lets the helper end cleanly, or kills it.
    pub fn end(&mut self) {
        let ended = || Error::failed("the process that drives SPDK was released");
        self.failed.get_or_insert_with(ended);
        // It ends when its socket closes.
        let _ = self.stream.shutdown(std::net::Shutdown::Both);
        let has_ended = self.child.is_none() || self.wait(END_PATIENCE).is_some() || self.kill();
        if let Some(listener) = self.listener.take().filter(|_| has_ended) {
            let _ = listener.join();
        }
        // So that it is not waited for twice.
        self.child = None;
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.end();
    }
}

/// Keeps the last lines of the helper's output.
fn listen(said: impl BufRead, words: &Mutex<VecDeque<String>>) {
    for line in said.split(b'\n').map_while(std::io::Result::ok) {
        let line = String::from_utf8_lossy(&line).trim().to_owned();
        if line.is_empty() {
            continue;
        }
        let mut words = words.lock().unwrap_or_else(PoisonError::into_inner);
        words.push_back(line);
        if words.len() > WORDS {
            words.pop_front();
        }
    }
}

fn end_of(status: ExitStatus) -> String {
    let named = |signal| match signal {
        libc::SIGABRT => ", it aborted",
        libc::SIGKILL => ", it was killed",
        libc::SIGSEGV | libc::SIGBUS => ", it accessed invalid memory",
        _ => "",
    };
    match (status.signal(), status.code()) {
        (Some(signal), _) => format!("signal {signal}{}", named(signal)),
        (_, Some(code)) => format!("exit status {code}"),
        _ => "for no known reason".to_owned(),
    }
}
