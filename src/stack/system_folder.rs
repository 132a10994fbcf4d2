//! The system's folders, and stacktune's own: root may put no data and no recordings there.

use std::path::{Component, Path, PathBuf};

use rustix::process::geteuid;

use super::paths::state_dir;
use crate::error::{Error, Result};
use crate::host::paths_of;
use crate::printable::Shown as _;

/// Nothing may be put in or below these.
const OF_SYSTEM: &[&str] = &[
    "/bin", "/boot", "/dev", "/efi", "/etc", "/lib", "/lib32", "/lib64", "/libx32", "/nix", "/proc", "/run",
    "/sbin", "/snap", "/sys", "/usr", "/var",
];
/// Exceptions below these, for which the operator is responsible.
const OF_OPERATOR: &[&str] = &["/dev/shm", "/run/media", "/run/user", "/var/cache", "/var/tmp"];
/// Folders that hold everybody's folders: nothing may be put directly in them, only below.
const SHARED: &[&str] = &["/", "/dev/shm", "/home", "/opt", "/root", "/run/media", "/run/user", "/var/cache"];
/// Hidden folders in root's home that may hold data; the others hold keys and settings.
const OF_DATA: &[&str] = &[".cache", ".local/share"];

/// Refuses the system's folders as root, who could put files anywhere. `what` names the setting.
///
/// # Errors
/// Input, with the folder.
pub fn refuse_system_folder(what: &str, dir: &Path) -> Result<()> {
    if !geteuid().is_root() {
        return Ok(());
    }
    let dir = std::path::absolute(dir).map_err(|error| Error::input(format!("{what}: {error}")))?;
    let really = resolved(&dir);
    let also = if really == dir { String::new() } else { format!(" ({})", really.shown()) };
    let shown = dir.shown();
    if really.starts_with(resolved(&state_dir())) {
        let what = format!("{what}: {shown}{also} is where stacktune keeps its journals");
        return Err(Error::input(what).hint("choose another folder"));
    }
    let homes = [Some("/root".into()), std::env::var_os("HOME").map(PathBuf::from)];
    let is_hidden = |path: &Path| homes.iter().flatten().any(|home| is_hidden_in(home, path));
    if !paths_of(&really).iter().any(|path| is_systems(path) || is_hidden(path)) {
        return Ok(());
    }
    Err(Error::input(format!("{what}: {shown}{also} is a system folder"))
        .hint("choose a dedicated folder, such as one below /srv, /mnt or /var/tmp"))
}

/// The path with links and `..` resolved, as far as it exists; the missing rest will have neither once it is made.
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
    SHARED.iter().any(|folder| dir == Path::new(folder))
        || is_below(OF_SYSTEM) && !is_below(OF_OPERATOR)
        // Files that a file system check has recovered.
        || dir.iter().any(|name| name == "lost+found")
}

fn is_hidden_in(home: &Path, dir: &Path) -> bool {
    let Ok(within) = dir.strip_prefix(home) else { return false };
    let is_hidden = within.iter().next().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
    is_hidden && !OF_DATA.iter().any(|folder| within.starts_with(folder))
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
            "/usr/local/bin",
            "/var",
            "/var/cache",
            "/var/lib/dpkg",
            "/var/spool/cron/crontabs",
            "/home",
            "/root",
            "/proc/1",
            "/nix/store/x",
            "/snap/core",
            "/run/x",
            "/srv/lost+found",
        ] {
            assert!(is_systems(Path::new(dir)), "{dir}");
        }
        for dir in [
            "/srv",
            "/mnt/x",
            "/root/x",
            "/home/u",
            "/var/tmp",
            "/var/cache/x",
            "/dev/shm/x",
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
    fn keys_and_settings_in_a_home_are_the_systems() {
        let home = Path::new("/root");
        for dir in [".ssh", ".ssh/x", ".config/systemd/user", ".bashrc", ".local/bin"] {
            assert!(is_hidden_in(home, &home.join(dir)), "{dir}");
        }
        for dir in ["", "data", "data/.x", ".cache/stacktune/demo", ".local/share/stacktune"] {
            assert!(!is_hidden_in(home, &home.join(dir)), "{dir}");
        }
        assert!(!is_hidden_in(home, Path::new("/srv/.x")));
    }
}
