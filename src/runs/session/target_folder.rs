//! The folder of the target's files: not one of the system's, and what else is in it.

use std::path::{Component, Path, PathBuf};

use crate::error::{Error, Result};
use crate::printable::{self, Shown as _};
use crate::settings::Settings;
use crate::settings::profile::expand_home;
use crate::stack::id::StackId;
use crate::stack::undo::others_in;

/// Folders of the system: nothing is put there, nor below.
const OF_SYSTEM: &[&str] = &[
    "/bin", "/boot", "/dev", "/efi", "/etc", "/lib", "/lib32", "/lib64", "/libx32", "/proc", "/run", "/sbin",
    "/sys", "/usr",
];
/// Folders below these for which the operator answers.
const OF_OPERATOR: &[&str] = &["/dev/shm", "/run/media", "/run/user", "/usr/local"];
/// Folders that hold everybody's folders: nothing is put there, but below.
const SHARED: &[&str] = &[
    "/",
    "/dev/shm",
    "/home",
    "/opt",
    "/root",
    "/run/media",
    "/run/user",
    "/usr/local",
    "/var",
    "/var/cache",
    "/var/lib",
    "/var/log",
    "/var/spool",
];
/// Names that a note gives.
const NAMED: usize = 3;

/// Refuses the system's folders as root, who could put files anywhere.
///
/// # Errors
/// Input, with the folder.
pub(super) fn refuse_system_folder(settings: &Settings) -> Result<()> {
    let Some(dir) = folder(settings)? else { return Ok(()) };
    let really = resolved(&dir);
    if !rustix::process::geteuid().is_root() || !is_systems(&really) {
        return Ok(());
    }
    let also = if really == dir { String::new() } else { format!(" ({})", really.shown()) };
    let what = format!("target.files.dir: {}{also} is a folder of the system", dir.shown());
    Err(Error::input(what)
        .hint("choose a folder for the target alone, such as one below /srv, /mnt or /var/lib"))
}

/// What others have in the folder, as a note; none if there is nothing.
pub fn others_in_folder(settings: &Settings) -> Option<String> {
    let dir = folder(settings).ok()??;
    let is_stack =
        |name: &str| name.strip_prefix("stack-").is_some_and(|id| StackId(id.to_owned()).is_sound());
    let mut others = others_in(&dir).ok()?;
    others.retain(|name| !is_stack(name));
    if others.is_empty() {
        return None;
    }
    let more = match others.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let named: Vec<_> = others.iter().take(NAMED).map(|name| printable::line(name)).collect();
    let named = named.join(", ");
    Some(format!("{} holds {named}{more}, which stacktune did not put there: it stays as it is", dir.shown()))
}

/// The folder of the files; none where the target is devices or nothing.
fn folder(settings: &Settings) -> Result<Option<PathBuf>> {
    if !settings.target.devices.is_empty() || !settings.touches_storage() {
        return Ok(None);
    }
    let dir = std::path::absolute(expand_home(&settings.target.dir)?);
    dir.map(Some).map_err(|error| Error::input(format!("target.files.dir: {error}")))
}

/// The path without links and `..`, as far as it exists; what is missing has neither once it is made.
fn resolved(dir: &Path) -> PathBuf {
    let mut really = PathBuf::from("/");
    for part in dir.components() {
        match part {
            Component::ParentDir => drop(really.pop()),
            Component::Normal(name) => {
                really.push(name);
                really = really.canonicalize().unwrap_or(really);
            }
            _ => {}
        }
    }
    really
}

fn is_systems(dir: &Path) -> bool {
    let is_below = |folders: &[&str]| folders.iter().any(|folder| dir.starts_with(folder));
    SHARED.iter().any(|folder| dir == Path::new(folder)) || is_below(OF_SYSTEM) && !is_below(OF_OPERATOR)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_systems_folders_are_known_through_links_and_parents() {
        for dir in [
            "/",
            "/etc",
            "/etc/x/y",
            "/boot",
            "/dev/x",
            "/usr/share",
            "/var",
            "/home",
            "/root",
            "/proc/1",
            "/run/x",
        ] {
            assert!(is_systems(Path::new(dir)), "{dir}");
        }
        for dir in [
            "/srv",
            "/mnt/x",
            "/root/x",
            "/home/u",
            "/var/lib/x",
            "/dev/shm/x",
            "/usr/local/x",
            "/run/media/x",
            "/etcetera",
            "/tmp",
        ] {
            assert!(!is_systems(Path::new(dir)), "{dir}");
        }
        let dir = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/etc", dir.path().join("link")).unwrap();
        assert!(is_systems(&resolved(&dir.path().join("link/none"))));
        assert!(is_systems(&resolved(Path::new("/none/../etc"))));
        assert!(!is_systems(&resolved(&dir.path().join("none"))));
    }

    #[test]
    fn what_others_have_in_the_folder_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let mut settings = Settings::default();
        settings.target.dir = dir.path().display().to_string();
        for ours in ["data-0", "wal", "stacktune-set", "stack-0123456789abcdef"] {
            std::fs::write(dir.path().join(ours), "").unwrap();
        }
        assert_eq!(others_in_folder(&settings), None);
        for theirs in ["a", "b", "stack-of-books"] {
            std::fs::write(dir.path().join(theirs), "").unwrap();
        }
        let note = others_in_folder(&settings).unwrap();
        assert!(note.contains(" holds a, b, stack-of-books, which"), "{note}");
        std::fs::write(dir.path().join("aa"), "").unwrap();
        assert!(others_in_folder(&settings).unwrap().contains(" holds a, aa, b and 1 more, which"));
        settings.target.devices = vec!["/dev/sda".into()];
        assert_eq!(others_in_folder(&settings), None);
    }
}
