//! `stacktune verify`: reads every written page back and checks it.

use std::io::{IsTerminal, stderr};
use std::sync::atomic::{AtomicBool, Ordering};

use super::inputs::facts;
use super::output::{print, print_json};
use super::signals::Interrupts;
use crate::error::{Error, Result};
use crate::load::volume::Volume;
use crate::runs::session::{Verified, compare_with_map, to_read_back, verify_pairs};
use crate::ui::report::Progress;

/// Runs the command.
pub fn run(profile: Option<&str>, sets: &[String], json: bool) -> Result<()> {
    let (profile, _) = super::inputs::profile(profile, sets)?;
    let settings = profile.settings;
    let interrupts = Interrupts::watch()?;
    let mut progress = Progress::new(stderr(), stderr().is_terminal(), None);
    let stop = AtomicBool::new(false);
    let mut on_progress = |step: crate::runs::session::Progress| {
        progress.fill(&step);
        stop.store(interrupts.count() > 0, Ordering::Relaxed);
    };
    let (verified, has_wal) = if settings.is_keyed() {
        (Verified::Pairs(verify_pairs(&settings, &mut on_progress, &stop)?), true)
    } else {
        let mut volume = Volume::open(to_read_back(&settings, facts)?)?;
        compare_with_map(&mut volume)?;
        (Verified::Pages(Box::new(volume.verify(&mut on_progress, &stop)?)), volume.wal.bytes() > 0)
    };
    progress.done();
    match &verified {
        Verified::Pages(report) if json => print_json(report)?,
        Verified::Pairs(report) if json => print_json(report)?,
        verified => print(&format!("{verified}\n"))?,
    }
    if interrupts.count() > 0 {
        return Err(Error::interrupted("interrupted: not everything was read"));
    }
    if !has_wal {
        return Err(Error::failed("the WAL is not verified: it is missing, or its header is damaged"));
    }
    verified.ended_well()
}
