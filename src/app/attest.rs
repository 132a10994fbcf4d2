//! `stacktune attest`: stacktune's figures beside those of other programs, on this host.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::inputs::facts;
use super::new_file;
use super::output::{eprint_line, print, print_json};
use super::signals::Interrupts;
use super::watcher::Watcher;
use crate::error::{Error, Result};
use crate::held_folder::HeldFolder;
use crate::host::Facts;
use crate::json;
use crate::printable::Shown as _;
use crate::runs::attest::{
    Attester, Bundle, Check, CheckOutcome, CheckVerdict, CheckedOn, Extent, attest, default_folder,
    settings_of,
};
use crate::runs::session::plan_shown;
use crate::runs::session::{Attendant as _, Options};
use crate::ui::cli::AttestArgs;
use crate::ui::report;

/// The bundle, unless the operator names another file.
const BUNDLE: &str = "attest.json";

/// Runs the command.
pub fn run(args: &AttestArgs) -> Result<()> {
    let on = checked_on(args)?;
    let extent = if args.quick { Extent::Quick } else { Extent::Full };
    let facts = facts();
    if args.dry_run {
        return dry_run(&on, extent, &facts, args.output.json);
    }
    // Checked before minutes are spent.
    let out = args.out.clone().unwrap_or_else(|| PathBuf::from(BUNDLE));
    let folder = new_file::folder_of(&out)?;
    let interrupts = Interrupts::watch()?;
    let destroy = args.destroy.iter().map(|path| path.display().to_string()).collect();
    let options = Options { destroy, ..Options::default() };
    let mut watcher = Watcher::new(None, &interrupts);
    let bundle = attest(&on, extent, options, facts, &mut watcher, &|| interrupts.count());
    watcher.progress.done();
    let bundle = bundle?;
    write(&folder, &out, &bundle)?;
    if args.output.json {
        print_json(&bundle)?;
    } else {
        print(&report::attest(&bundle))?;
    }
    match bundle.count(CheckVerdict::Fail) {
        0 => Ok(()),
        1 => Err(Error::failed("a check failed")),
        failed => Err(Error::failed(format!("{failed} checks failed"))),
    }
}

fn checked_on(args: &AttestArgs) -> Result<CheckedOn> {
    if args.devices.is_empty() {
        return Ok(CheckedOn::Files(args.files.clone().map_or_else(default_folder, Ok)?));
    }
    Ok(CheckedOn::Devices(args.devices.clone(), default_folder()?))
}

fn write(folder: &HeldFolder, out: &Path, bundle: &Bundle) -> Result<()> {
    let text = json::lines(bundle)?;
    let mut file = new_file::make(folder, out)?;
    let written = file.write_all(&text).and_then(|()| file.sync_all());
    written.map_err(|error| Error::os("cannot write", out, error))?;
    eprint_line(&format!("stacktune: the bundle is {}; it names no host, user, path or serial", out.shown()));
    Ok(())
}

/// Prints what the target takes, and does nothing else.
fn dry_run(on: &CheckedOn, extent: Extent, facts: &Arc<Facts>, json: bool) -> Result<()> {
    let folder = match on {
        CheckedOn::Files(dir) | CheckedOn::Devices(_, dir) => dir.join("attest-…"),
    };
    let plan = plan_shown(&settings_of(on, &folder, extent, facts)?, facts)?;
    if json { print_json(&report::PlanFile::from(&plan)) } else { print(&report::plan(&plan)) }
}

impl Attester for Watcher<'_> {
    fn begins(&mut self, checks: &[Check]) {
        self.notice(&report::begins(checks));
    }

    fn outcome(&mut self, outcome: &CheckOutcome) {
        if outcome.is_failure() {
            self.notice(&format!("{}: failed", outcome.check.row().title));
        }
    }
}
