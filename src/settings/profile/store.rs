//! Where profiles are kept: the built-in ones, and the user's in the XDG config folder.

use std::ffi::OsString;
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::builtin::{BUILTIN, builtin};
use super::contents::Profile;
use super::parse::{parse, parse_bytes};
use super::write::to_toml;
use crate::error::{Error, Result, describe};
use crate::host::{Trusting, make_own_folder};
use crate::printable;
use crate::regular_file;
use crate::settings::knobs::nearest_of;
use crate::settings::paths::{NO_HOME, expand_home};
use crate::settings::values::Settings;

/// The extension of a profile's file name.
const EXTENSION: &str = ".toml";
/// The longest name: file names have at most 255 bytes.
const NAME_BYTES_MAX: usize = 100;
/// Larger than the file of any profile.
pub const FILE_BYTES_MAX: u64 = 1 << 20;

/// Finds and saves profiles.
#[derive(Debug, Clone)]
pub struct ProfileFolder {
    /// The user's profiles; none without a home folder.
    folder: Option<PathBuf>,
}

/// Where a profile comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// Built into the program.
    BuiltIn,
    /// A file of the user.
    File(PathBuf),
}

/// A profile in a list.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Entry {
    /// The name by which it is loaded.
    pub name: String,
    /// Its description; empty if there is none.
    pub about: String,
    /// How many steps it has; 0 for an ordinary profile.
    pub steps: usize,
    /// Where it comes from.
    pub source: Source,
    /// Why it can't be loaded, with the position in the file.
    pub error: Option<String>,
    /// Its settings, if it can be loaded.
    #[serde(skip)]
    pub settings: Option<Box<Settings>>,
}

impl ProfileFolder {
    /// The store of the current user.
    pub fn of_user() -> Self {
        Self::from_env(|key| std::env::var_os(key))
    }

    fn from_env(var: impl Fn(&str) -> Option<OsString>) -> Self {
        Self { folder: config_in(var).map(|config| config.join("profiles")) }
    }

    /// Whether there is a profile of this name, even a broken one. A path counts as one.
    pub fn knows(&self, name_or_path: &str) -> bool {
        is_path(name_or_path)
            || self.file_of(name_or_path).is_some()
            || BUILTIN.iter().any(|(name, _)| *name == name_or_path)
    }

    /// A profile: a path if it has a `/` or ends in `.toml`, else the name of one
    /// of the user's, else of a built-in one.
    pub fn load(&self, name_or_path: &str) -> Result<Profile> {
        if is_path(name_or_path) {
            return load_file(&expand_home(name_or_path)?);
        }
        // Whatever it is: reading it says why it can't be a profile.
        if let Some(path) = self.file_of(name_or_path) {
            return load_file(&path);
        }
        builtin(name_or_path).ok_or_else(|| self.unknown(name_or_path))
    }

    fn unknown(&self, name: &str) -> Error {
        let mut names: Vec<_> = BUILTIN.iter().map(|(name, _)| (*name).to_owned()).collect();
        names.extend(self.user_files().unwrap_or_default().into_iter().map(|(name, _)| name));
        let meant = nearest_of(name, names.iter().map(String::as_str));
        let meant = meant.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
        Error::input(format!("there is no profile `{}`{meant}", printable::line(name)))
            .hint("`stacktune profiles` lists them; the path of a file has a `/` or ends in `.toml`")
    }

    /// All profiles that can be loaded by name: the user's by name, then the built-in ones. One of the user's
    /// with a built-in name replaces the built-in one, as in [`ProfileFolder::load`].
    pub fn list(&self) -> Result<Vec<Entry>> {
        let user_files = self.user_files()?;
        let is_users = |name: &str| user_files.iter().any(|(known, _)| known == name);
        let of_program = BUILTIN
            .iter()
            .filter(|(name, _)| !is_users(name))
            .map(|(name, text)| entry((*name).to_owned(), Source::BuiltIn, parse(text, name)));
        let of_user = user_files
            .iter()
            .map(|(name, path)| entry(name.clone(), Source::File(path.clone()), load_file(path)));
        Ok(of_user.chain(of_program).collect())
    }

    /// Saves the profile as the user's under that name, and returns its file.
    ///
    /// The file is complete at every moment: a new one, flushed, is renamed into place. An existing profile,
    /// even a built-in one, is replaced only if `replace` is set (otherwise an error of the kind `Refused`; a
    /// built-in one is hidden by the user's of the same name).
    pub fn save(&self, profile: &Profile, name: &str, replace: bool) -> Result<PathBuf> {
        check_name(name)?;
        let folder = self.folder.as_deref().ok_or_else(|| {
            Error::failed(format!("cannot save `{name}`: {NO_HOME}")).hint("set HOME or XDG_CONFIG_HOME")
        })?;
        let path = folder.join(format!("{name}{EXTENSION}"));
        let hides_builtin = BUILTIN.iter().any(|(known, _)| *known == name);
        if !replace && (hides_builtin || path.symlink_metadata().is_ok()) {
            return Err(exists(name));
        }
        let mut named = profile.clone();
        name.clone_into(&mut named.settings.name);
        let text = to_toml(&named);
        // A saved profile must load unchanged.
        parse(&text, &path.to_string_lossy())?;

        make_own_folder(folder, Trusting::Caller)?;
        let file = new_file(folder, &text).map_err(|e| Error::os("cannot write", &path, e))?;
        let renamed = if replace { file.persist(&path) } else { file.persist_noclobber(&path) };
        renamed.map_err(|e| match e.error.kind() {
            std::io::ErrorKind::AlreadyExists => exists(name),
            _ => Error::os("cannot write", &path, e.error),
        })?;
        let synced = fs::File::open(folder).and_then(|folder| folder.sync_all());
        synced.map_err(|e| Error::os("cannot flush the folder", folder, e))?;
        Ok(path)
    }

    /// The path of the user's profile of that name, if anything is there.
    fn file_of(&self, name: &str) -> Option<PathBuf> {
        check_name(name).ok()?;
        let path = self.folder.as_ref()?.join(format!("{name}{EXTENSION}"));
        path.symlink_metadata().is_ok().then_some(path)
    }

    /// Names and paths of the user's profiles, sorted by name.
    fn user_files(&self) -> Result<Vec<(String, PathBuf)>> {
        let Some(folder) = &self.folder else { return Ok(Vec::new()) };
        let unreadable = |e| Error::os("cannot read the profiles in", folder, e);
        let entries = match fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(e) => return Err(unreadable(e)),
        };
        let mut files = Vec::new();
        for entry in entries {
            let path = entry.map_err(unreadable)?.path();
            let name = path.file_name().and_then(|name| name.to_str()?.strip_suffix(EXTENSION));
            if let Some(name) = name.filter(|name| check_name(name).is_ok()) {
                files.push((name.to_owned(), path.clone()));
            }
        }
        files.sort();
        Ok(files)
    }
}

/// The folder of the user's profiles and themes; none without a home folder.
pub fn config_folder() -> Option<PathBuf> {
    config_in(|key| std::env::var_os(key))
}

fn config_in(var: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let absolute = |key| var(key).map(PathBuf::from).filter(|path| path.is_absolute());
    let config = absolute("XDG_CONFIG_HOME").or_else(|| Some(absolute("HOME")?.join(".config")))?;
    Some(config.join("stacktune"))
}

fn new_file(folder: &Path, text: &str) -> std::io::Result<tempfile::NamedTempFile> {
    let mut file = tempfile::Builder::new()
        .prefix(".")
        .suffix(".tmp")
        .permissions(fs::Permissions::from_mode(0o644))
        .tempfile_in(folder)?;
    file.write_all(text.as_bytes())?;
    file.as_file().sync_all()?;
    Ok(file)
}

fn entry(name: String, source: Source, loaded: Result<Profile>) -> Entry {
    match loaded {
        Ok(profile) => {
            let (steps, about) = (profile.steps(), profile.settings.about.clone());
            Entry { name, about, steps, source, error: None, settings: Some(Box::new(profile.settings)) }
        }
        Err(error) => {
            let error = Some(error.what);
            Entry { name, about: String::new(), steps: 0, source, error, settings: None }
        }
    }
}

fn load_file(path: &Path) -> Result<Profile> {
    let bytes = regular_file::read(path, FILE_BYTES_MAX)
        .map_err(|e| Error::input(format!("cannot read {}: {}", printable::path(path), describe(&e))))
        .map_err(|error| error.hint("give the path of a profile's file"))?;
    parse_bytes(&bytes, &path.to_string_lossy())
}

/// Whether it is the path of a profile's file, not a name.
fn is_path(name_or_path: &str) -> bool {
    name_or_path.contains('/') || name_or_path.ends_with(EXTENSION)
}

fn exists(name: &str) -> Error {
    Error::refused(format!("there is already a profile `{name}`"))
        .hint("choose another name, or allow replacing it")
}

fn check_name(name: &str) -> Result<()> {
    let allowed = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    let wrong = if name.is_empty() {
        "is empty"
    } else if !name.chars().all(allowed) {
        "may have letters, digits, `-`, `_` and `.` only"
    } else if name.starts_with(['.', '-']) {
        "must not begin with a dot or a dash"
    } else if name.ends_with(EXTENSION) {
        "must not end in `.toml`: that would be a path"
    } else if name.len() > NAME_BYTES_MAX {
        "is too long"
    } else {
        return Ok(());
    };
    Err(Error::input(format!("`{}` can't name a profile: a name {wrong}", name.escape_debug())))
}

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;
