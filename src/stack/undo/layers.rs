//! Taking command layers down, with the commands recorded in the journal.
//!
//! Exit statuses do not tell whether the commands worked, since some of them find nothing of a layer that was
//! only begun. Instead, the layer's device must be gone, with nothing built or left on the devices below.

use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use super::undoer::{Undoer, persist, refuse_used};
use crate::error::{Error, Result};
use crate::printable::{self, Shown as _};
use crate::stack::devices::{BlockDevice, Drive, Found, holders_of, layer_node};
use crate::stack::layer::{LayerCommand, LayerMade};
use crate::stack::runner::{WIPEFS, quoted};

/// Devices with their nodes.
type Below<'m> = Vec<(&'m BlockDevice, Vec<PathBuf>)>;

impl Undoer<'_> {
    /// Refuses a layer on which others have put something, or may have, if that can't be seen.
    pub(super) fn leave_layer(&self, name: &str, made: &LayerMade) -> Result<()> {
        self.own_layer(name, made)?;
        if let Some(node) = layer_node(&made.path)? {
            refuse_used(&node)?;
            return self.refuse_foreign_layer(&node, made);
        }
        if !self.may_hide_others(&made.path) || self.forget_missing || !self.is_hidden(made)? {
            return Ok(());
        }
        let (name, path, id) = (printable::line(name), made.path.shown(), &self.id.0);
        let what = format!("layer `{name}` is down: there is no {path}, so its content is unknown");
        Err(Error::refused(what).hint(format!(
            "bring it up again, and clean up then; or give up what is on it: `stacktune cleanup --forget-missing {id}`"
        )))
    }

    /// Until a layer was completed, and wiped, the old content of the devices below shows through it.
    fn refuse_foreign_layer(&self, node: &Path, made: &LayerMade) -> Result<()> {
        if !self.retained && !self.complete_layers.contains(&made.path) {
            return Ok(());
        }
        self.refuse_foreign_below(node, |device| *device == made.device())
    }

    /// Whether a layer that is down may come up again with its content. If a dead run left it, and no device
    /// below bears a signature, its content is gone.
    fn is_hidden(&self, made: &LayerMade) -> Result<bool> {
        if self.retained {
            return Ok(true);
        }
        for device in &made.below {
            let Found::At(nodes) = device.nodes(self.runner, self.same_boot)? else { continue };
            if nodes.is_empty() {
                return Ok(true);
            }
            for node in nodes {
                if self.probe(&node, "TYPE")?.is_some() {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    pub(super) fn lower_layer(&self, name: &str, made: &LayerMade) -> Result<Option<Drive>> {
        self.own_layer(name, made)?;
        let (below, missing) = self.below(made)?;
        if let Some(node) = layer_node(&made.path)? {
            refuse_used(&node)?;
            self.refuse_foreign_layer(&node, made)?;
        }
        let stands = layer_node(&made.path)?.is_some();
        for node in below.iter().flat_map(|(_, nodes)| nodes) {
            self.refuse_others_holders(node)?;
            self.refuse_file_system(node)?;
            if stands {
                self.mark(node);
            }
        }
        persist(|| {
            let down = self.run_down(made, &below);
            self.wipe_own(&below)?;
            let left = self.left_of(made, &below)?;
            match (left, down) {
                (None, _) => Ok(()),
                (Some(left), Ok(())) => Err(still_there(name, made, &left)),
                (Some(left), Err(error)) => Err(Error {
                    what: format!("{}; {}", still_there(name, made, &left).what, error.what),
                    ..still_there(name, made, &left)
                }),
            }
        })?;
        Ok(missing)
    }

    /// A journal that names anything outside this stack is not trusted.
    fn own_layer(&self, name: &str, made: &LayerMade) -> Result<()> {
        if made.is_of(self.id) {
            return Ok(());
        }
        let what = format!(
            "not all commands and paths of layer `{}` name stack {}",
            printable::line(name),
            self.id.0
        );
        Err(Error::refused(what).hint("remove it by hand, and then the journal"))
    }

    /// The nodes of each device below, and a drive that is missing.
    fn below<'m>(&self, made: &'m LayerMade) -> Result<(Below<'m>, Option<Drive>)> {
        let (mut below, mut missing) = (Vec::new(), None);
        for device in &made.below {
            match device.nodes(self.runner, self.same_boot)? {
                Found::Missing(drive) => drop(missing.get_or_insert(drive)),
                Found::At(nodes) if nodes.len() > 1 => {
                    let what = format!("{} may be any of {} devices", device.describe(), nodes.len());
                    return Err(Error::refused(what).hint("detach the others, then clean up again"));
                }
                Found::At(nodes) => below.push((device, nodes)),
            }
        }
        Ok((below, missing))
    }

    /// Runs all of `down`; the first error counts.
    fn run_down(&self, made: &LayerMade, below: &[(&BlockDevice, Vec<PathBuf>)]) -> Result<()> {
        let node = |device: &BlockDevice| {
            below.iter().find(|(known, _)| *known == device).and_then(|(_, nodes)| nodes.first().cloned())
        };
        let run = |command: &LayerCommand| command.run(self.runner, |device| Ok(node(device)));
        made.down.iter().map(run).fold(Ok(()), Result::and)
    }

    /// Anything built on a node below must be named after the stack.
    fn refuse_others_holders(&self, node: &Path) -> Result<()> {
        for (holder, mapped) in holders_of(node) {
            if !mapped.as_ref().is_some_and(|mapped| mapped.contains(&self.id.0))
                && !self.is_array_of(&holder)
            {
                let holder =
                    mapped.map_or_else(|| holder.shown(), |mapped| printable::line(&mapped).into_owned());
                let what = format!("{} is in use by {holder}, which the stack did not make", node.shown());
                return Err(Error::refused(what).hint("remove that first, then clean up again"));
            }
        }
        Ok(())
    }

    /// Whether a holder is an array that a layer's commands named after the stack.
    fn is_array_of(&self, holder: &Path) -> bool {
        let links = std::fs::read_dir("/dev/md").into_iter().flatten().flatten();
        let leads_there = |entry: &std::fs::DirEntry| {
            entry.file_name().to_string_lossy().contains(&self.id.0)
                && entry.path().canonicalize().is_ok_and(|at| at == holder)
        };
        links.into_iter().any(|entry| leads_there(&entry))
    }

    /// A file system or partition table directly on a device below is others', unless it has an id of the stack.
    pub(super) fn refuse_file_system(&self, node: &Path) -> Result<()> {
        let is_file_system = self.probe(node, "USAGE")?.is_some_and(|usage| usage == "filesystem");
        if is_file_system || self.probe(node, "PTTYPE")?.is_some() {
            self.refuse_foreign(node)
        } else {
            Ok(())
        }
    }

    /// Wipes anything with an id of the stack: what was made on a layer may show through on the devices below.
    fn wipe_own(&self, below: &[(&BlockDevice, Vec<PathBuf>)]) -> Result<()> {
        for node in below.iter().flat_map(|(_, nodes)| nodes) {
            if self.probe(node, "UUID")?.is_some_and(|uuid| self.id.is_of(&uuid)) {
                self.runner.run_well(WIPEFS, &["--all".as_ref(), "--quiet".as_ref(), node.as_os_str()])?;
            }
        }
        Ok(())
    }

    /// What is still left of it, in words.
    fn left_of(&self, made: &LayerMade, below: &[(&BlockDevice, Vec<PathBuf>)]) -> Result<Option<String>> {
        // A stale node without its device does no harm; anything else is not the device that was to be made.
        let is_other = made.path.metadata().is_ok_and(|found| !found.file_type().is_block_device());
        if is_other || layer_node(&made.path)?.is_some() {
            return Ok(Some(made.path.shown()));
        }
        for (device, nodes) in below {
            for node in nodes {
                if let Some((holder, _)) = holders_of(node).first() {
                    return Ok(Some(format!("{} on {}", holder.shown(), node.shown())));
                }
                // Content on an array or another layer goes away with it.
                let stays = !matches!(device, BlockDevice::Array { .. } | BlockDevice::Layer { .. });
                if stays && let Some(kind) = self.probe(node, "TYPE")? {
                    return Ok(Some(format!("{} on {}", printable::line(&kind), node.shown())));
                }
            }
        }
        Ok(None)
    }

    /// The commands that take a layer down by hand; none if it is down and nothing of it is left.
    pub(super) fn layer_commands(&self, made: &LayerMade) -> Vec<String> {
        let Ok((below, _)) = self.below(made) else { return Vec::new() };
        if !made.is_of(self.id) || self.left_of(made, &below).is_ok_and(|left| left.is_none()) {
            return Vec::new();
        }
        let node = |device: &BlockDevice| {
            below.iter().find(|(known, _)| *known == device).and_then(|(_, nodes)| nodes.first().cloned())
        };
        made.down.iter().filter_map(|command| command.typed(node)).collect()
    }
}

fn still_there(name: &str, made: &LayerMade, left: &str) -> Error {
    let program = made.down.first().map_or("its commands", |command| command.program.as_str());
    let name = printable::line(name);
    Error::failed(format!("layer `{name}` is still there after its `down`: {left}")).hint(format!(
        "remove it by hand ({} …; `wipefs --all` for a signature on a device), then clean up again",
        quoted(program.as_ref())
    ))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use crate::error::Result;
    use crate::stack::id::StackId;
    use crate::stack::journal::{Journal, Undo, all};
    use crate::stack::layer::{LayerCommand, LayerMade, LayerPart};
    use crate::stack::runner::Runner;
    use crate::stack::undo::undo_all;

    const ID: &str = "00112233aabbccdd";

    fn made(path: &str, word: &str) -> LayerMade {
        let text = |text: &str| vec![LayerPart::Text(text.to_owned())];
        let command = |program: &str| LayerCommand {
            program: program.into(),
            words: vec![text(word), text("two words")],
        };
        LayerMade { path: path.into(), below: Vec::new(), down: vec![command("first"), command("second")] }
    }

    /// The result of undoing that layer, and which programs ran: each logs its words, and the first fails.
    fn undone(made: LayerMade) -> (Result<()>, String, usize) {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("log");
        for (program, status) in [("first", 5), ("second", 0)] {
            let path = dir.path().join(program);
            let script = format!("#!/bin/sh\necho \"{program} $*\" >>{}\nexit {status}\n", log.display());
            fs::write(&path, script).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        let state = dir.path().join("state");
        let mut journal = Journal::begin(&state, &StackId(ID.into()), "mine", &[]).unwrap();
        let name = || "layer".to_owned();
        let lower = Undo::LowerLayer { name: name(), made: made.clone() };
        journal
            .act("first", Some(lower), || Err::<(), _>(crate::error::Error::failed("killed")))
            .unwrap_err();
        let leave = Undo::LeaveLayer { name: name(), made };
        journal.act("look", Some(leave), || Ok(())).unwrap();
        let runner = Runner::in_folders(vec![dir.path().to_owned()]);
        let outcome = undo_all(journal, &runner, &mut |_| true);
        (outcome, fs::read_to_string(log).unwrap_or_default(), all(&state).unwrap().len())
    }

    #[test]
    fn down_is_run_in_full_and_may_fail_where_nothing_is_left() {
        let (outcome, log, journals) = undone(made(&format!("/dev/mapper/st{ID}"), &format!("st{ID}")));
        outcome.unwrap();
        assert_eq!(log, format!("first st{ID} two words\nsecond st{ID} two words\n"));
        assert_eq!(journals, 0);
    }

    #[test]
    fn a_layer_that_names_another_stack_or_device_is_not_believed() {
        let other = "00112233aabbccde";
        for (path, word) in [
            (format!("/dev/mapper/st{ID}"), format!("st{other}")),
            (format!("/dev/mapper/st{other}"), format!("st{ID}")),
            (format!("/tmp/st{ID}"), format!("st{ID}")),
            (format!("/dev/mapper/../{ID}"), format!("st{ID}")),
            (format!("/dev/mapper/st{ID}"), String::new()),
        ] {
            let (outcome, log, journals) = undone(made(&path, &word));
            let error = outcome.unwrap_err();
            assert!(error.what.contains("not all commands and paths of layer"), "{error}");
            assert_eq!((log.as_str(), journals), ("", 1), "nothing is run: {path} {word}");
        }
    }
}
