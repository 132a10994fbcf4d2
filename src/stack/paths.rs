//! Where stacktune keeps state that must outlive a crash.

use std::path::PathBuf;

/// The folder of journals and mount points: `$XDG_STATE_HOME/stacktune` if that is set, else
/// `/var/lib/stacktune` for root and `~/.local/state/stacktune` for others.
pub fn state_dir() -> PathBuf {
    let var = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    state_dir_of(rustix::process::geteuid().is_root(), var("XDG_STATE_HOME"), var("HOME"))
}

fn state_dir_of(root: bool, state_home: Option<PathBuf>, home: Option<PathBuf>) -> PathBuf {
    match (state_home, home) {
        (Some(state), _) => state.join("stacktune"),
        (None, Some(home)) if !root => home.join(".local/state/stacktune"),
        _ => PathBuf::from("/var/lib/stacktune"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn state_is_kept_where_it_outlives_a_reboot() {
        let path = |text: &str| Some(PathBuf::from(text));
        let of = |root, state, home| state_dir_of(root, state, home).display().to_string();
        assert_eq!(of(true, path("/s"), path("/h")), "/s/stacktune");
        assert_eq!(of(true, None, path("/root")), "/var/lib/stacktune");
        assert_eq!(of(false, None, path("/home/u")), "/home/u/.local/state/stacktune");
    }
}
