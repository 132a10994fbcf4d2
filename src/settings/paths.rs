//! Paths as settings have them: `~` stands for the home folder.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// The error if a home folder is needed.
pub const NO_HOME: &str = "there is no home folder: HOME is not set to an absolute path";

/// A path with a leading `~/.cache` replaced by the user's cache folder (which `XDG_CACHE_HOME` may set),
/// and any other leading `~` by the home folder.
pub fn expand_home(path: &str) -> Result<PathBuf> {
    expand_with(path, std::env::var_os("HOME"), std::env::var_os("XDG_CACHE_HOME"))
}

/// The absolute path that a setting names: [`expand_home`], from the working folder.
pub fn absolute(setting: &str, path: &str) -> Result<PathBuf> {
    std::path::absolute(expand_home(path)?).map_err(|error| Error::input(format!("{setting}: {error}")))
}

fn expand_with(path: &str, home: Option<OsString>, cache: Option<OsString>) -> Result<PathBuf> {
    let Some(rest) = path.strip_prefix('~') else { return Ok(path.into()) };
    if !rest.is_empty() && !rest.starts_with('/') {
        return Err(Error::input(format!("`{path}` names another user's home folder: write it in full")));
    }
    // The XDG specification ignores paths that are not absolute.
    let absolute = |folder: Option<OsString>| folder.map(PathBuf::from).filter(|folder| folder.is_absolute());
    let below = Path::new(rest.trim_start_matches('/'));
    let (folder, below) = match (below.strip_prefix(".cache"), absolute(cache)) {
        (Ok(below), Some(cache)) => (Some(cache), below),
        _ => (absolute(home), below),
    };
    let folder = folder.ok_or_else(|| Error::input(format!("cannot find `{path}`: {NO_HOME}")))?;
    Ok(if below.as_os_str().is_empty() { folder } else { folder.join(below) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tilde_is_the_home_folder() {
        let expand = |path| expand_with(path, Some("/home/a".into()), None);
        assert_eq!(expand("~").unwrap(), Path::new("/home/a"));
        assert_eq!(expand("~/x/y").unwrap(), Path::new("/home/a/x/y"));
        assert_eq!(expand("/x/~").unwrap(), Path::new("/x/~"));
        assert_eq!(expand("~bob/x").unwrap_err().exit_status(), 2);
        assert_eq!(expand_with("/x", None, None).unwrap(), Path::new("/x"));
        assert_eq!(
            expand_with("~/x", None, None).unwrap_err().what,
            "cannot find `~/x`: there is no home folder: HOME is not set to an absolute path"
        );
    }

    #[test]
    fn the_cache_folder_is_where_the_user_has_it() {
        let expand =
            |path, cache: &str| expand_with(path, Some("/home/a".into()), Some(cache.into())).unwrap();
        assert_eq!(expand("~/.cache/stacktune/demo", "/big/cache"), Path::new("/big/cache/stacktune/demo"));
        assert_eq!(expand("~/.cache", "/big/cache"), Path::new("/big/cache"));
        assert_eq!(expand("~/.cached/x", "/big/cache"), Path::new("/home/a/.cached/x"));
        assert_eq!(expand("/home/a/.cache/x", "/big/cache"), Path::new("/home/a/.cache/x"));
        for ignored in ["", "cache"] {
            assert_eq!(expand("~/.cache/x", ignored), Path::new("/home/a/.cache/x"));
        }
        assert_eq!(expand_with("~/.cache/x", None, Some("/c".into())).unwrap(), Path::new("/c/x"));
    }
}
