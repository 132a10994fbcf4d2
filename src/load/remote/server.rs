//! The helper's side: starts and stops workers on request.

use std::fs::OpenOptions;
use std::io::{BufRead, BufReader};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use super::protocol::{Answer, Ask, Attached, Load, Reply, Request, Sample, say, understand};
use crate::class::Class;
use crate::error::{Error, Result, describe};
use crate::load::volume::write_map::WriteMap;
use crate::load::workers::control::Writes;
use crate::load::workers::{ThreadedWorkers, Workers};
use crate::meter::processors::tasks::{TaskProbe, TaskTimes};
use crate::meter::source::{Delta, Source};

/// How often to service the drives.
const ATTEND: Duration = Duration::from_millis(100);
/// How often to check on ending workers.
const LOOK: Duration = Duration::from_millis(2);

/// Devices under a load, which have to be prepared before it and serviced during it.
pub trait Devices {
    /// Prepares these namespaces, by PCI address and number.
    fn attach(&mut self, drives: &[(String, u32)]) -> Result<Attached>;
    /// Services them.
    fn attend(&mut self);
}

/// Serves requests until the other side is gone; by then no worker is left.
///
/// # Errors
/// If the socket fails, or a message makes no sense.
pub fn serve(stream: UnixStream, devices: &mut dyn Devices) -> Result<()> {
    let failed = |error: std::io::Error| {
        Error::failed(format!("the socket to stacktune failed: {}", describe(&error)))
    };
    stream.set_read_timeout(Some(ATTEND)).map_err(failed)?;
    let mut answers = stream.try_clone().map_err(failed)?;
    let mut questions = BufReader::new(stream);
    let mut server = Server::default();
    let (mut line, mut attended) = (Vec::new(), Instant::now());
    loop {
        // A partial line that arrived before the timeout stays in the buffer.
        match questions.read_until(b'\n', &mut line) {
            Ok(0) => {
                server.drain(devices);
                return Ok(());
            }
            Ok(_) if line.ends_with(b"\n") => {
                let Request { ask, limit_bytes } = understand(&line).map_err(failed)?;
                line.clear();
                server.writes.limit(Some(limit_bytes));
                let was_loaded = server.load.is_some();
                let answer = server.answer(ask, devices).map_err(Into::into);
                let loaded = was_loaded || server.load.is_some();
                let written_bytes = loaded.then(|| server.writes.written_bytes());
                say(&mut answers, &Reply { answer, written_bytes }).map_err(failed)?;
            }
            Ok(_) => return Ok(()), // it ended in the middle of a line
            Err(error)
                if [std::io::ErrorKind::WouldBlock, std::io::ErrorKind::Interrupted]
                    .contains(&error.kind()) => {}
            Err(error) => return Err(failed(error)),
        }
        if attended.elapsed() >= ATTEND {
            devices.attend();
            attended = Instant::now();
        }
    }
}

/// A started class.
struct Started {
    number: u64,
    class: Class,
    sources: Vec<Box<dyn Source>>,
}

struct Server {
    load: Option<Loaded>,
    writes: Arc<Writes>,
    /// How often classes have been started.
    starts: u64,
}

struct Loaded {
    workers: ThreadedWorkers,
    started: Vec<Started>,
    delta: Delta,
    probe: TaskProbe,
    /// CPU time not yet reported: of the process, of everything that is not a worker, and of each class's
    /// busiest worker.
    unreported: ((u64, u64), [Option<u64>; 4]),
}

impl Default for Server {
    fn default() -> Self {
        Self { load: None, writes: Arc::new(Writes::new(0, Arc::default())), starts: 0 }
    }
}

impl Server {
    fn answer(&mut self, ask: Ask, devices: &mut dyn Devices) -> Result<Answer> {
        match ask {
            Ask::Attach(drives) => return devices.attach(&drives).map(Answer::Attached),
            Ask::Load(load) => self.load(*load)?,
            Ask::Unload => {
                self.drain(devices);
                self.load = None;
            }
            Ask::Start { job, cpus } => {
                let loaded = self.load.as_mut().ok_or_else(nothing_loaded)?;
                let sources = loaded.workers.start(&job, &cpus)?;
                self.starts += 1;
                loaded.started.push(Started { number: self.starts, class: job.class, sources });
                return Ok(Answer::Started(self.starts));
            }
            Ask::Stop(class) => self.load.as_mut().ok_or_else(nothing_loaded)?.workers.stop(class),
            Ask::Look(class) => {
                let loaded = self.load.as_mut().ok_or_else(nothing_loaded)?;
                return Ok(Answer::Activity(loaded.workers.activity(class)));
            }
            Ask::Sample(number) => {
                let loaded = self.load.as_mut().ok_or_else(nothing_loaded)?;
                return Ok(Answer::Sample(Box::new(loaded.sample(number))));
            }
            Ask::UnderWay(number) => {
                let loaded = self.load.as_mut().ok_or_else(nothing_loaded)?;
                let of = loaded.started.iter_mut().filter(|started| started.number == number);
                let under_way =
                    of.flat_map(|started| &mut started.sources).flat_map(|source| source.under_way());
                return Ok(Answer::UnderWay(under_way.collect()));
            }
        }
        Ok(Answer::Done)
    }

    /// Ends all classes, and keeps servicing the drives meanwhile, because one may hang.
    fn drain(&mut self, devices: &mut dyn Devices) {
        let Some(Loaded { workers, .. }) = &mut self.load else { return };
        Class::ALL.into_iter().for_each(|class| workers.stop(class));
        while Class::ALL.into_iter().any(|class| workers.activity(class).is_busy()) {
            devices.attend();
            std::thread::sleep(LOOK);
        }
    }

    fn load(&mut self, load: Load) -> Result<()> {
        let Load { data, wal, members, sequence, written_bytes, map } = load;
        let limit_bytes = self.writes.limit_bytes();
        let map = map.map(|path| {
            let joined = OpenOptions::new().read(true).write(true).open(&path).and_then(WriteMap::join);
            joined.map(Arc::new).map_err(|error| Error::os("cannot open the write map", &path, error))
        });
        let writes = Writes::new(sequence, Arc::new(AtomicU64::new(written_bytes)));
        self.writes = Arc::new(writes.keeping(map.transpose()?));
        self.writes.limit(Some(limit_bytes));
        self.load = Some(Loaded {
            workers: ThreadedWorkers::new(Arc::new(data), Arc::new(wal), members, self.writes.clone()),
            started: Vec::new(),
            delta: Delta::new(members),
            probe: TaskProbe::open(0),
            unreported: Default::default(),
        });
        Ok(())
    }
}

fn nothing_loaded() -> Error {
    Error::failed("there is no load yet")
}

impl Loaded {
    fn sample(&mut self, number: u64) -> Sample {
        self.delta.clear();
        let Some(at) = self.started.iter().position(|started| started.number == number) else {
            return Sample::default();
        };
        let (started, delta) = (&mut self.started[at], &mut self.delta);
        started.sources.retain_mut(|source| source.collect(delta));
        let (class, more) = (started.class, !started.sources.is_empty());
        self.look();
        let ((own_ns, overhead_ns), busiest_ns) = &mut self.unreported;
        let times = TaskTimes {
            own_ns: std::mem::take(own_ns),
            overhead_ns: std::mem::take(overhead_ns),
            busiest_ns: busiest_ns[class.index()].take(),
        };
        if !more {
            self.started.remove(at);
        }
        Sample::of(&self.delta, more, times)
    }

    /// Reads the threads' clocks; the next sample reports them.
    fn look(&mut self) {
        let workers = self.started.iter().flat_map(|started| {
            started.sources.iter().filter_map(|source| Some((source.thread_id()?, started.class)))
        });
        let workers: Vec<_> = workers.collect();
        let (own_ns, overhead_ns, busiest_ns) = self.probe.times(&workers);
        let ((own, overhead), busiest) = &mut self.unreported;
        (*own, *overhead) = (*own + own_ns, *overhead + overhead_ns);
        for (sum, ns) in busiest.iter_mut().zip(busiest_ns) {
            *sum = ns.map_or(*sum, |ns| Some(sum.unwrap_or(0) + ns));
        }
    }
}
