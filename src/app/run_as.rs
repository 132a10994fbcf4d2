//! The user that a program runs as.

use rustix::process::{Uid, geteuid};

use crate::error::{Error, Result};
use crate::host::User;

/// The user to run a program as: whom the command line names, else the profile, else who called sudo. Root only if
/// the command line says so; none to stay this process's user, where that is not root.
pub fn user(named: Option<&str>, in_profile: Option<&str>) -> Result<Option<User>> {
    let find = |name: &str| {
        let shown = crate::printable::line(name);
        User::find(name).ok_or_else(|| Error::input(format!("there is no user {shown} in /etc/passwd")))
    };
    if !geteuid().is_root() {
        let other = named.or(in_profile).map(find).transpose()?;
        return match other.filter(|user| Uid::from_raw(user.uid) != geteuid()) {
            Some(user) => Err(Error::input(format!("only root can run a program as {}", user.name))
                .hint("use sudo, or leave --user and command.user out")),
            None => Ok(None),
        };
    }
    let user = match (named, in_profile) {
        (Some(name), _) => return find(name).map(Some),
        (None, Some(name)) => find(name)?,
        (None, None) => User::who_called_sudo().ok_or_else(|| {
            Error::input("a program does not run as root unless that is asked for")
                .hint("say as whom: --user NAME, or --user root")
        })?,
    };
    if user.is_root() {
        return Err(Error::input("the profile asks for a program that runs as root (command.user)")
            .hint("look at what it runs, with --dry-run, and say so yourself: --user root"));
    }
    Ok(Some(user))
}
