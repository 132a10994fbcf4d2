//! Whether users other than root could change what a path leads to.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags, Stat, fstat, getxattr, openat, readlinkat};
use rustix::io::Errno;
use rustix::process::geteuid;

use crate::error::describe;
use crate::printable::Shown as _;

/// The most links to follow: as many as the kernel does.
const LINKS_MAX: usize = 40;
/// The mode bits that let users other than the owner write.
const OTHERS_MAY_WRITE: u32 = 0o022;
const GROUP_MAY_WRITE: u32 = 0o020;
const STICKY: u32 = 0o1000;

/// Why a path can't be relied on.
#[derive(Debug)]
pub enum Doubt {
    /// The path can't be followed as far as here.
    Os(PathBuf, Errno),
    /// This belongs to another user, who can replace it or what is in it.
    Owner(PathBuf, u32),
    /// Users other than its owner may write to this folder.
    Writable(PathBuf),
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Os(at, error) => write!(f, "cannot open {}: {}", at.shown(), describe(&(*error).into())),
            Self::Owner(at, user) => write!(f, "{} belongs to user {user}", at.shown()),
            Self::Writable(at) => write!(f, "others may write to {}", at.shown()),
        }
    }
}

/// Opens a folder (only as a location: `O_PATH`) if nobody but root and the effective user can replace it or
/// any folder above it. A link on the way is followed if the same holds for the link.
///
/// Above others, a folder that everybody may write to is accepted if it is sticky, as `/tmp` is: what is in it
/// can be replaced only by its owner.
///
/// # Errors
/// The first doubt on the way from `/`. The path must be absolute.
pub fn open_trusted(path: &Path) -> Result<OwnedFd, Doubt> {
    open_trusted_with(path, None)
}

/// The same, with this user trusted too.
pub(super) fn open_trusted_with(path: &Path, user: Option<u32>) -> Result<OwnedFd, Doubt> {
    let mut ahead: VecDeque<OsString> = parts(path).collect();
    let mut shown = PathBuf::from("/");
    let folder = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let open_root = || openat(CWD, "/", folder, Mode::empty()).map_err(|e| Doubt::Os("/".into(), e));
    let mut at = open_root()?;
    doubt_of(&at, &shown, user)?;
    let mut links = 0;
    while let Some(name) = ahead.pop_front() {
        let next_shown = if name == ".." {
            shown.parent().unwrap_or(Path::new("/")).to_owned()
        } else {
            shown.join(&name)
        };
        let failed = |error| Doubt::Os(next_shown.clone(), error);
        let place = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let next = openat(&at, &name, place, Mode::empty()).map_err(failed)?;
        let kind = doubt_of(&next, &next_shown, user)?;
        match kind {
            FileType::Directory => (at, shown) = (next, next_shown),
            FileType::Symlink if links < LINKS_MAX => {
                links += 1;
                let target = readlinkat(&next, "", Vec::new()).map_err(failed)?;
                let target = PathBuf::from(OsStr::from_bytes(target.as_bytes()));
                if target.is_absolute() {
                    (at, shown) = (open_root()?, PathBuf::from("/"));
                }
                parts(&target).collect::<Vec<_>>().into_iter().rev().for_each(|part| ahead.push_front(part));
            }
            FileType::Symlink => return Err(failed(Errno::LOOP)),
            _ => return Err(failed(Errno::NOTDIR)),
        }
    }
    Ok(at)
}

fn parts(path: &Path) -> impl Iterator<Item = OsString> {
    let parts = path.components().filter(|part| matches!(part, Component::Normal(_) | Component::ParentDir));
    parts.map(|part| part.as_os_str().to_owned())
}

/// The type of an entry on the way; an error if others can change it.
fn doubt_of(at: &OwnedFd, shown: &Path, user: Option<u32>) -> Result<FileType, Doubt> {
    let found = fstat(at).map_err(|error| Doubt::Os(shown.to_owned(), error))?;
    let kind = FileType::from_raw_mode(found.st_mode);
    if ![Some(0), Some(geteuid().as_raw()), user].contains(&Some(found.st_uid)) {
        return Err(Doubt::Owner(shown.to_owned(), found.st_uid));
    }
    // A link's mode means nothing.
    let is_open = kind == FileType::Directory && found.st_mode & STICKY == 0 && others_may_write(at, &found);
    if is_open { Err(Doubt::Writable(shown.to_owned())) } else { Ok(kind) }
}

/// Whether users other than the owner may write to it. A user's private group, with the user's number, counts
/// as the user; not so for root, whose group has members on some hosts.
fn others_may_write(at: impl AsFd, found: &Stat) -> bool {
    let owner = found.st_uid;
    match found.st_mode & OTHERS_MAY_WRITE {
        0 => false,
        GROUP_MAY_WRITE => {
            let is_private = owner != 0 && found.st_gid == owner;
            !is_private || has_acl(at) || !is_alone(owner)
        }
        _ => true,
    }
}

/// Whether an access control list may let others in: the mode's group bits are then the list's mask.
fn has_acl(at: impl AsFd) -> bool {
    // Unlike fgetxattr, this works on a descriptor opened with O_PATH.
    let path = format!("/proc/self/fd/{}", at.as_fd().as_raw_fd());
    let found = getxattr(path, "system.posix_acl_access", &mut [0_u8][..]);
    !matches!(found, Err(Errno::NODATA | Errno::OPNOTSUPP))
}

/// Whether a user's private group is known to have no other members.
fn is_alone(user: u32) -> bool {
    let text = |path| std::fs::read_to_string(path).unwrap_or_default();
    is_alone_in(user, &text("/etc/passwd"), &text("/etc/group"))
}

fn is_alone_in(user: u32, passwd: &str, group: &str) -> bool {
    let id = user.to_string();
    let field = |line: &str, at: usize| line.split(':').nth(at).unwrap_or_default().to_owned();
    let (own, others): (Vec<&str>, Vec<&str>) = passwd.lines().partition(|line| field(line, 2) == id);
    let is_own = |name: &str| own.iter().any(|line| field(line, 0) == name);
    let mut groups = group.lines().filter(|line| field(line, 2) == id).peekable();
    groups.peek().is_some()
        && groups.all(|line| field(line, 3).split(',').all(|name| name.is_empty() || is_own(name)))
        && others.iter().all(|line| field(line, 3) != id)
}

/// Whether a file or folder, open as `at`, belongs to the effective user, and nobody else may write to it.
pub fn is_private(at: impl AsFd, found: &Stat) -> bool {
    found.st_uid == geteuid().as_raw() && !others_may_write(at, found)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn mode(path: &Path, bits: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(bits)).unwrap();
    }

    #[test]
    fn a_folder_that_others_can_replace_is_not_trusted() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap();
        let inner = top.join("a/b");
        fs::create_dir_all(&inner).unwrap();
        mode(&top.join("a"), 0o755);
        mode(&inner, 0o755);
        open_trusted(&inner).unwrap();
        mode(&top.join("a"), 0o777);
        let doubt = open_trusted(&inner).unwrap_err();
        assert!(matches!(&doubt, Doubt::Writable(at) if *at == top.join("a")), "{doubt}");
        mode(&top.join("a"), 0o1777);
        open_trusted(&inner).unwrap();
        mode(&inner, 0o775);
        let is_trusted = open_trusted(&inner).is_ok();
        let found = rustix::fs::stat(&inner).unwrap();
        let own = geteuid().as_raw();
        let is_own_group = own != 0 && found.st_gid == own && is_alone(own);
        assert_eq!(is_trusted, is_own_group, "only a user's private group may write");
        assert_eq!(is_private(fs::File::open(&inner).unwrap(), &found), is_trusted);
        let none = open_trusted(&top.join("a/none")).unwrap_err();
        assert!(matches!(none, Doubt::Os(_, Errno::NOENT)), "{none}");
    }

    #[test]
    fn a_group_is_the_users_own_only_if_that_is_known() {
        let passwd = "root:x:0:0::/:\nme:x:1000:1000::/:\nother:x:1001:1001::/:\n";
        let alone = |group: &str| is_alone_in(1000, passwd, &format!("root:x:0:\n{group}\n"));
        assert!(alone("me:x:1000:") && alone("me:x:1000:me"));
        assert!(!alone("me:x:1000:other") && !alone("me:x:1000:me,other"));
        assert!(!alone("me:x:1002:"), "nothing is known about it");
        let shared = "me:x:1000:1000::/:\nother:x:1001:1000::/:\n";
        assert!(!is_alone_in(1000, shared, "me:x:1000:\n"));
    }

    #[test]
    fn a_list_that_lets_others_in_is_seen() {
        // Version 2; then tag, permissions and number of the owner, user 65534, the group, the mask and others.
        let entries = [
            (1_u16, 7_u16, u32::MAX),
            (2, 7, 65_534),
            (4, 5, u32::MAX),
            (16, 7, u32::MAX),
            (32, 5, u32::MAX),
        ];
        let entry = |(tag, bits, id): (u16, u16, u32)| {
            [&tag.to_le_bytes()[..], &bits.to_le_bytes(), &id.to_le_bytes()].concat()
        };
        let list: Vec<u8> =
            [2_u32.to_le_bytes().to_vec()].into_iter().chain(entries.map(entry)).flatten().collect();
        let dir = tempfile::tempdir().unwrap();
        let place = open_trusted(&dir.path().canonicalize().unwrap()).unwrap();
        assert!(!has_acl(&place));
        let set = rustix::fs::setxattr(
            dir.path(),
            "system.posix_acl_access",
            &list,
            rustix::fs::XattrFlags::empty(),
        );
        match set {
            // The file system has no such lists.
            Err(Errno::OPNOTSUPP) => {}
            set => set.unwrap(),
        }
        let found = fstat(&place).unwrap();
        let is_set = found.st_mode & GROUP_MAY_WRITE != 0;
        assert_eq!(has_acl(&place), is_set);
        assert_eq!(others_may_write(&place, &found), is_set);
    }

    #[test]
    fn links_are_followed_as_far_as_they_are_trusted() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap();
        fs::create_dir_all(top.join("real/open/b")).unwrap();
        mode(&top.join("real"), 0o755);
        mode(&top.join("real/open/b"), 0o755);
        symlink("real/../real/open", top.join("link")).unwrap();
        symlink(top.join("loop"), top.join("loop")).unwrap();
        mode(&top.join("real/open"), 0o755);
        open_trusted(&top.join("link/b/..")).unwrap();
        mode(&top.join("real/open"), 0o777);
        let doubt = open_trusted(&top.join("link/b")).unwrap_err();
        assert!(matches!(&doubt, Doubt::Writable(at) if *at == top.join("real/open")), "{doubt}");
        assert!(matches!(open_trusted(&top.join("loop")).unwrap_err(), Doubt::Os(_, Errno::LOOP)));
    }

    #[test]
    fn what_belongs_to_another_user_is_not_trusted() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap();
        fs::create_dir_all(top.join("theirs/ours")).unwrap();
        symlink("ours", top.join("theirs/link")).unwrap();
        // Only root can give a folder away.
        let is_given = std::os::unix::fs::chown(top.join("theirs"), Some(65534), None).is_ok();
        assert_eq!(is_given, geteuid().is_root());
        for name in ["theirs", "theirs/ours", "theirs/link"] {
            let doubt = open_trusted(&top.join(name)).err();
            let is_named =
                |doubt: &Doubt| matches!(doubt, Doubt::Owner(at, 65534) if *at == top.join("theirs"));
            assert_eq!(doubt.as_ref().is_some_and(is_named), is_given, "{name}: {doubt:?}");
        }
    }
}
