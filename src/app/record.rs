//! `stacktune record`: a profile run without a terminal.

use std::io::{IsTerminal, stderr};

use super::signals::Interrupts;
use super::{facts_with_versions, options, print, print_json, settings};
use crate::cli::RecordArgs;
use crate::error::{Error, Result};
use crate::profile::by_identity;
use crate::record::refuse_content;
use crate::report::{self, Progress};
use crate::session::{Advance, Attendant, Event, Options, PlanShown, Session, Wanted, headless};

/// Runs the command.
pub fn run(args: &RecordArgs) -> Result<()> {
    let (settings, demo) = settings(Some(&args.profile), &args.run.sets.set)?;
    // Before hours are spent on a fill.
    refuse_content(&args.out)?;
    let interrupts = Interrupts::watch()?;
    let facts = facts_with_versions();
    let settings = by_identity(&settings, &facts);
    let options = Options { warmup: args.warmup, ..options(&args.run, demo) };
    let time = args.warmup + args.duration;
    let progress = Progress::new(stderr(), stderr().is_terminal(), Some(time));
    let mut watcher = Watcher { progress, interrupts: &interrupts };
    let mut session = Session::open(settings, options, facts, &mut watcher)?;
    let mut on_event = |event| watcher.watch(&event);
    let summary = headless::record(&mut session, &args.out, time, &|| interrupts.count(), &mut on_event)?;
    watcher.progress.done();
    if interrupts.count() > 1 {
        // Nobody waits any more for I/O that does not drain; the kernel ends it with the process.
        std::mem::forget(session);
    }
    if args.output.json {
        print_json(&summary)?;
    } else {
        print(&report::table(&summary))?;
    }
    match summary.errors_line() {
        _ if summary.interrupted => {
            Err(Error::interrupted("interrupted: the summary holds what was measured"))
        }
        Some(errors) => Err(Error::failed(errors)),
        None => Ok(()),
    }
}

/// Shows on standard error what goes on.
struct Watcher<'a> {
    progress: Progress<std::io::Stderr>,
    interrupts: &'a Interrupts,
}

impl Watcher<'_> {
    fn watch(&mut self, event: &Event) {
        match event {
            Event::Window(window, totals) => self.progress.window(window, totals),
            Event::Notice(text) => self.notice(text),
            _ => {}
        }
    }
}

impl Attendant for Watcher<'_> {
    fn progress(&mut self, progress: crate::session::Progress) -> bool {
        self.progress.fill(&progress);
        self.interrupts.count() == 0
    }

    fn notice(&mut self, text: &str) {
        self.progress.done();
        eprintln!("stacktune: {text}");
    }

    fn consent(&mut self, _: Vec<Wanted>) -> Option<Vec<String>> {
        None
    }

    fn plan(&mut self, _: PlanShown) -> Option<Vec<String>> {
        None
    }

    fn step(&mut self, advance: &Advance) -> bool {
        self.progress.step(advance);
        self.interrupts.count() == 0
    }
}
