//! This side: starts the helper, asks it, and notices its end.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::protocol::{Answer, Ask, Attached, Load, Reply, Request, Sample, say, understand};
use crate::class::Class;
use crate::error::{Error, Result, describe};
use crate::load::volume::Region;
use crate::load::workers::control::Writes;
use crate::load::workers::{Activity, RemoteWorkers};
use crate::meter::source::{Delta, Source};
use crate::settings::jobs::Job;

/// The hidden command that is the helper.
pub const COMMAND: &str = "drive-spdk";
/// Attaching clears huge pages and resets drives.
const ATTACH_PATIENCE: Duration = Duration::from_mins(2);
/// Everything else is done at once, but for I/O that drains: a drive that hangs is given 30 s, and its
/// abort as many.
const PATIENCE: Duration = Duration::from_secs(90);
/// The helper lets go of the drives within this, or is killed.
const END_PATIENCE: Duration = Duration::from_secs(20);
const LOOK: Duration = Duration::from_millis(10);
/// Lines that are kept of what the helper says.
const WORDS: usize = 20;
/// Of those, lines that a message has.
const LAST_WORDS: usize = 3;

/// The helper, with the drives that it drives. Dropped, it lets go of them and ends.
pub struct Remote {
    link: Arc<Mutex<Link>>,
    attached: Attached,
}

impl Remote {
    /// Starts a helper that drives these namespaces, by PCI address and number.
    ///
    /// # Errors
    /// Why it does not, with what it said.
    pub fn start(drives: Vec<(String, u32)>) -> Result<Self> {
        // This very program, whatever has become of its file.
        let mut helper = Command::new("/proc/self/exe");
        helper.arg0("stacktune").arg(COMMAND);
        Self::attach(Link::spawn(helper)?, drives)
    }

    fn attach(mut link: Link, drives: Vec<(String, u32)>) -> Result<Self> {
        link.be_patient(ATTACH_PATIENCE);
        let attached = match link.ask(Ask::Attach(drives)) {
            Ok(Answer::Attached(attached)) => attached,
            Ok(other) => return Err(senseless(&other)),
            Err(error) => return Err(link.with_words(error)),
        };
        link.be_patient(PATIENCE);
        Ok(Self { link: Arc::new(Mutex::new(link)), attached })
    }

    /// What drives the drives, and how.
    pub fn attached(&self) -> &Attached {
        &self.attached
    }

    /// A load there, on these regions, for an engine here. What it writes counts as written here.
    ///
    /// # Errors
    /// Where the helper is gone.
    pub fn load(
        &self,
        data: Region,
        wal: Region,
        members: usize,
        writes: Arc<Writes>,
    ) -> Result<Box<dyn RemoteWorkers>> {
        let (sequence, written_bytes) = (writes.sequence(), writes.written_bytes());
        let mut link = lock(&self.link);
        link.writes = Some(writes);
        link.ask(Ask::Load(Box::new(Load { data, wal, members, sequence, written_bytes })))?;
        Ok(Box::new(RemoteLoad { link: self.link.clone(), running: [false; 4] }))
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        lock(&self.link).end();
    }
}

fn lock(link: &Mutex<Link>) -> MutexGuard<'_, Link> {
    link.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cold]
fn senseless(answer: &Answer) -> Error {
    Error::failed(format!("the helper that drives SPDK answers something else than was asked: {answer:?}"))
}

/// The socket to the helper, and the process.
struct Link {
    stream: UnixStream,
    answers: BufReader<UnixStream>,
    /// None in tests, which have it in a thread.
    child: Option<Child>,
    words: Arc<Mutex<VecDeque<String>>>,
    listener: Option<JoinHandle<()>>,
    /// Whose counts follow the helper's, and whose limit it is told.
    writes: Option<Arc<Writes>>,
    /// Why nothing can be asked any more.
    failed: Option<Error>,
}

impl Link {
    fn spawn(mut command: Command) -> Result<Self> {
        let failed = |error: std::io::Error| {
            Error::failed(format!("cannot start the helper that drives SPDK: {}", describe(&error)))
        };
        let (ours, theirs) = UnixStream::pair().map_err(failed)?;
        let (said, saying) = std::io::pipe().map_err(failed)?;
        // Apart from the terminal's signals, for it ends when this process has let go of it.
        command.stdin(OwnedFd::from(theirs)).process_group(0);
        command.stdout(saying.try_clone().map_err(failed)?).stderr(Stdio::from(saying));
        let child = command.spawn().map_err(failed)?;
        // It holds the other ends of socket and pipe: they must end with the helper.
        drop(command);
        let mut link = Self::over(ours)?;
        link.child = Some(child);
        let words = link.words.clone();
        link.listener = Some(std::thread::spawn(move || listen(BufReader::new(said), &words)));
        Ok(link)
    }

    fn over(stream: UnixStream) -> Result<Self> {
        let answers = stream.try_clone().map_err(|error| {
            Error::failed(format!("cannot talk to the helper that drives SPDK: {}", describe(&error)))
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

    fn be_patient(&self, time: Duration) {
        // A socket that takes no time-out waits without one.
        let _ = self.stream.set_read_timeout(Some(time));
    }

    /// Asks, and waits for the answer.
    fn ask(&mut self, ask: Ask) -> Result<Answer> {
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

    /// Why the helper does not answer. It has ended then, or is ended now.
    #[cold]
    fn gone(&mut self, error: &std::io::Error) -> Error {
        let what = match error.kind() {
            std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut => {
                let then =
                    if self.kill() { "was ended" } else { "can't be ended: the kernel holds on to it" };
                format!("the process that drives SPDK does not answer any more, and {then}")
            }
            _ => {
                if let Some(status) = self.wait(Duration::from_secs(2)) {
                    format!("the process that drives SPDK has ended: {}", end_of(status))
                } else {
                    self.kill();
                    format!("the process that drives SPDK can't be understood: {}", describe(error))
                }
            }
        };
        self.with_words(Error::failed(what))
    }

    /// Adds what the helper said last.
    fn with_words(&mut self, error: Error) -> Error {
        if self.failed.is_none() || self.child.is_none() {
            // Where it has ended, all that it said is read soon.
            let until = Instant::now() + Duration::from_millis(500);
            while self.listener.as_ref().is_some_and(|thread| !thread.is_finished()) && Instant::now() < until
            {
                std::thread::sleep(LOOK);
            }
        }
        let words = self.words.lock().unwrap_or_else(PoisonError::into_inner);
        let last: Vec<&str> = words.iter().rev().take(LAST_WORDS).rev().map(String::as_str).collect();
        if last.is_empty() || error.what.contains("it said last") {
            return error;
        }
        Error { what: format!("{}; it said last: {}", error.what, last.join(" | ")), ..error }
    }

    /// Waits for its end, so long at most.
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

    /// Ends it. Returns whether it has ended: the kernel may hold on to it, where it waits for a drive that
    /// does not answer.
    fn kill(&mut self) -> bool {
        // One that has ended already can't be killed, and is waited for all the same.
        let _ = self.child.as_mut().map(std::process::Child::kill);
        self.wait(END_PATIENCE).is_some()
    }

    /// Lets the helper end in order, or ends it.
    fn end(&mut self) {
        let ended = || Error::failed("the process that drives SPDK was let go of");
        self.failed.get_or_insert_with(ended);
        // It ends with its socket.
        let _ = self.stream.shutdown(std::net::Shutdown::Both);
        let has_ended = self.child.is_none() || self.wait(END_PATIENCE).is_some() || self.kill();
        if let Some(listener) = self.listener.take().filter(|_| has_ended) {
            let _ = listener.join();
        }
        // Whatever became of it, it is not waited for twice.
        self.child = None;
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.end();
    }
}

/// Keeps the last lines that the helper says.
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
        libc::SIGABRT => ", it aborted itself",
        libc::SIGKILL => ", it was killed",
        libc::SIGSEGV | libc::SIGBUS => ", it reached for memory that is not there",
        _ => "",
    };
    match (status.signal(), status.code()) {
        (Some(signal), _) => format!("signal {signal}{}", named(signal)),
        (_, Some(code)) => format!("exit status {code}"),
        _ => "for no known reason".to_owned(),
    }
}

/// The engine's workers in the helper.
struct RemoteLoad {
    link: Arc<Mutex<Link>>,
    /// Classes that were started and not seen to have ended.
    running: [bool; 4],
}

impl RemoteWorkers for RemoteLoad {
    fn start(&mut self, plan: &Job, cpus: &[u32]) -> Result<Box<dyn Source>> {
        let ask = Ask::Start { plan: Box::new(plan.clone()), cpus: cpus.to_vec() };
        match lock(&self.link).ask(ask)? {
            Answer::Started(number) => {
                self.running[plan.class.index()] = true;
                let (link, class) = (self.link.clone(), plan.class);
                Ok(Box::new(RemoteSource { link, class, number, sample: Sample::default() }))
            }
            other => Err(senseless(&other)),
        }
    }

    fn stop(&mut self, class: Class) {
        // A helper that is gone shows in what the class is doing.
        let _ = lock(&self.link).ask(Ask::Stop(class));
    }

    fn activity(&mut self, class: Class) -> Activity {
        let running = &mut self.running[class.index()];
        if !*running {
            return Activity::Idle;
        }
        let activity = match lock(&self.link).ask(Ask::Look(class)) {
            Ok(Answer::Activity(activity)) => activity,
            Ok(other) => Activity::Gone(senseless(&other).what),
            Err(error) => Activity::Gone(error.what),
        };
        *running = matches!(activity, Activity::Running | Activity::Draining);
        activity
    }

    fn end(&mut self) {
        let _ = lock(&self.link).ask(Ask::Unload);
    }
}

/// What a class counts in the helper.
struct RemoteSource {
    link: Arc<Mutex<Link>>,
    class: Class,
    number: u64,
    /// What was heard last, for its latencies.
    sample: Sample,
}

impl Source for RemoteSource {
    fn class(&self) -> Class {
        self.class
    }

    fn counts(&mut self, delta: &mut Delta) -> bool {
        self.sample = match lock(&self.link).ask(Ask::Sample(self.number)) {
            Ok(Answer::Sample(sample)) => *sample,
            // What was not told is lost with it; that it is gone is told by the class.
            _ => Sample::default(),
        };
        self.sample.add_counts(delta);
        self.sample.more
    }

    fn latencies(&mut self, delta: &mut Delta) {
        std::mem::take(&mut self.sample).add_latencies(delta);
    }

    fn thread_id(&self) -> Option<i32> {
        None
    }
}

#[cfg(test)]
#[path = "client_tests.rs"]
mod tests;
