//! The helper's workers, as seen by this process.

use std::sync::{Arc, Mutex};

use super::link::{Link, lock, senseless};
use super::protocol::{Answer, Ask, Sample};
use crate::class::Class;
use crate::error::Result;
use crate::load::workers::{Activity, Workers};
use crate::meter::counts::under_way::{Begun, Intents};
use crate::meter::source::{Delta, Source};
use crate::settings::jobs::Job;

/// Workers of the classes in the helper's process.
pub struct RemoteWorkers {
    link: Arc<Mutex<Link>>,
    /// Classes that were started and may not have ended yet.
    running: [bool; 4],
}

impl RemoteWorkers {
    pub(super) fn new(link: Arc<Mutex<Link>>) -> Self {
        Self { link, running: [false; 4] }
    }
}

impl Workers for RemoteWorkers {
    fn start(&mut self, job: &Job, cpus: &[u32]) -> Result<Vec<Box<dyn Source>>> {
        let ask = Ask::Start { job: Box::new(job.clone()), cpus: cpus.to_vec() };
        match lock(&self.link).ask(ask)? {
            Answer::Started(number) => {
                self.running[job.class.index()] = true;
                let (link, class) = (self.link.clone(), job.class);
                Ok(vec![Box::new(RemoteSource { link, class, number, sample: Sample::default() })])
            }
            other => Err(senseless(&other)),
        }
    }

    fn stop(&mut self, class: Class) {
        // If the helper is gone, the class's activity will show it.
        let _ = lock(&self.link).ask(Ask::Stop(class));
    }

    /// [`Activity::Gone`], once, for each class that was running when the helper died.
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
        *running = activity.is_busy();
        activity
    }
}

impl Drop for RemoteWorkers {
    fn drop(&mut self) {
        Class::ALL.into_iter().for_each(|class| self.stop(class));
        let _ = lock(&self.link).ask(Ask::Unload);
    }
}

/// The counts of a class in the helper.
struct RemoteSource {
    link: Arc<Mutex<Link>>,
    class: Class,
    number: u64,
    /// The last answer, for its latencies.
    sample: Sample,
}

impl Source for RemoteSource {
    fn class(&self) -> Class {
        self.class
    }

    fn counts(&mut self, delta: &mut Delta) -> bool {
        self.sample = match lock(&self.link).ask(Ask::Sample(self.number)) {
            Ok(Answer::Sample(sample)) => *sample,
            // Counts since the last sample are lost; the class's activity will show that the helper is gone.
            _ => Sample::default(),
        };
        self.sample.add_counts(delta);
        self.sample.more
    }

    fn latencies(&mut self, delta: &mut Delta) {
        std::mem::take(&mut self.sample).add_latencies(delta);
    }

    fn under_way(&mut self) -> Vec<(Vec<Begun>, Option<Intents>)> {
        match lock(&self.link).ask(Ask::UnderWay(self.number)) {
            Ok(Answer::UnderWay(under_way)) => under_way,
            _ => Vec::new(),
        }
    }

    fn thread_id(&self) -> Option<i32> {
        None
    }
}
