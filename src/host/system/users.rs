//! Users of this host, from `/etc/passwd`: the system's libraries are not asked, as they could run others' code.

use std::path::Path;

use crate::host::root::Root;

/// A user, and the group that its new files get.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// The name, or the number if it has no name here.
    pub name: String,
    /// The number.
    pub uid: u32,
    /// The primary group's number.
    pub gid: u32,
}

impl User {
    /// The user of that name, or of that number; none if `/etc/passwd` has none.
    pub fn find(name: &str) -> Option<Self> {
        find(&Root::new(Path::new("/")), name)
    }

    /// Who called `sudo`; none without it, and for root.
    pub fn who_called_sudo() -> Option<Self> {
        let number = |name| id(&std::env::var(name).ok()?);
        let (uid, gid) = (number("SUDO_UID").filter(|uid| *uid != 0)?, number("SUDO_GID")?);
        let name = Self::find(&uid.to_string()).map_or_else(|| uid.to_string(), |user| user.name);
        Some(Self { name, uid, gid })
    }

    /// Whether it is root, by whatever name.
    pub fn is_root(&self) -> bool {
        self.uid == 0
    }
}

fn find(root: &Root, name: &str) -> Option<User> {
    let text = root.text("etc/passwd")?;
    let users: Vec<User> = text.lines().filter_map(user).collect();
    let named = users.iter().find(|user| user.name == name);
    named.or_else(|| users.iter().find(|user| user.uid.to_string() == name)).cloned()
}

/// The number of a user or group. The last one stands for none: a process that is to become it stays as it is.
fn id(text: &str) -> Option<u32> {
    text.parse().ok().filter(|id| *id != u32::MAX)
}

fn user(line: &str) -> Option<User> {
    let mut fields = line.split(':');
    let name = fields.next().filter(|name| !name.is_empty())?.to_owned();
    let (uid, gid) = (id(fields.nth(1)?)?, id(fields.next()?)?);
    Some(User { name, uid, gid })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::root::faked;

    #[test]
    fn a_user_is_found_by_name_before_number() {
        let passwd = "root:x:0:0:root:/root:/bin/sh\nann:x:1000:100::/home/ann:\n1000:x:7:8::/:\nbad:x:q:1\nnone:x:4294967295:1::/:\n\n";
        let (_dir, root) = faked(&[("etc/passwd", passwd)]);
        let of = |name: &str| find(&root, name).map(|user| (user.uid, user.gid));
        assert_eq!((of("ann"), of("1000"), of("7")), (Some((1000, 100)), Some((7, 8)), Some((7, 8))));
        assert_eq!([of("nobody"), of("bad"), of(""), of("none"), of("4294967295")], [None; 5]);
        assert!(find(&root, "root").unwrap().is_root());
        let (_dir, none) = faked(&[]);
        assert_eq!(find(&none, "root"), None);
    }
}
