//! Workers that move pages, in threads of this process.

use std::sync::Arc;

use super::control::Writes;
use super::generations::Generations;
use super::launch::launch;
use super::lifecycle::{Activity, Workers};
use crate::class::Class;
use crate::error::Result;
use crate::load::io::clock;
use crate::load::volume::Region;
use crate::meter::source::Source;
use crate::settings::jobs::Job;

/// Workers on the regions of a volume, one thread each.
pub struct ThreadedWorkers(Generations);

impl ThreadedWorkers {
    /// Workers over these regions, which are on that many members.
    pub fn new(data: Arc<Region>, wal: Arc<Region>, members: usize, writes: Arc<Writes>) -> Self {
        Self(Generations::new(data, wal, members, writes))
    }
}

impl Workers for ThreadedWorkers {
    fn start(&mut self, job: &Job, cpus: &[u32]) -> Result<Vec<Box<dyn Source>>> {
        self.0.start(job, |orders| launch(job, cpus, orders))
    }

    fn stop(&mut self, class: Class) {
        self.0.stop(class, clock::now_ns());
    }

    fn activity(&mut self, class: Class) -> Activity {
        self.0.activity(class)
    }
}
