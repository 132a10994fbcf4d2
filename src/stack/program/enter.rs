//! A process of a program: it inherits only what is set here, and nothing else of ours.

use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::fs::Mode;
use rustix::process::{
    Gid, Pid, Resource, Signal, Uid, getpid, getppid, set_parent_process_death_signal, setrlimit, setsid,
    umask,
};
use rustix::thread::{set_no_new_privs, set_thread_groups, set_thread_res_gid, set_thread_res_uid};

use crate::error::{Error, Result, describe};
use crate::host::{User, file_limit_before};
use crate::printable;

/// Where programs are found, whatever `PATH` says.
const FOLDERS: [&str; 6] = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];
/// Programs, and their packages on Debian and Ubuntu if these are named differently.
const PACKAGES: [(&str, &str); 11] = [
    ("pgbench", "postgresql"),
    ("pg_isready", "postgresql"),
    ("psql", "postgresql"),
    ("mariadb-install-db", "mariadb-server"),
    ("mariadbd", "mariadb-server"),
    ("mariadb", "mariadb-client"),
    ("mariadb-admin", "mariadb-client"),
    ("redis-server", "redis"),
    ("redis-cli", "redis"),
    ("redis-benchmark", "redis"),
    ("db_bench", "rocksdb-tools"),
];
/// Programs that Debian does not package, and how to install them.
const ELSEWHERE: [(&str, &str); 8] = [
    ("duckdb", "pip install --break-system-packages duckdb-cli"),
    ("tpchgen-cli", "pip install --break-system-packages 'tpchgen-cli>=4'"),
    (
        "leanstore-tpcc",
        "build github.com/leanstore/leanstore, and link its frontend/tpcc to /usr/local/bin/leanstore-tpcc",
    ),
    ("mysqld", "unpack MySQL 8.4, and link its bin/mysqld to /usr/local/bin"),
    ("mysql", "unpack MySQL 8.4, and link its bin/mysql to /usr/local/bin"),
    ("mysqladmin", "unpack MySQL 8.4, and link its bin/mysqladmin to /usr/local/bin"),
    ("asd", "build github.com/aerospike/aerospike-server, and link its asd to /usr/local/bin"),
    ("asbench", "build github.com/aerospike/aerospike-benchmark, and link its asbench to /usr/local/bin"),
];
/// How many descriptors are marked one by one on a kernel without `CLOSE_RANGE_CLOEXEC`.
const DESCRIPTORS_MAX: i32 = 1 << 20;

/// A process that is to be started.
pub struct Start<'a> {
    /// The program and its arguments.
    pub words: &'a [String],
    /// Environment variables, besides `PATH`, `HOME`, `USER`, `LOGNAME` and `LANG`.
    pub environment: &'a [(String, String)],
    /// Its working directory and home.
    pub folder: &'a Path,
    /// The user it runs as; none for the user of this process.
    pub user: Option<&'a User>,
}

impl Start<'_> {
    /// The command. It enters the cgroups, drops root privileges for good, keeps no descriptor but an empty
    /// input and `output`, leaves the terminal, and is killed when the thread that starts it ends.
    ///
    /// # Errors
    /// Input if there is no such program.
    pub fn command(&self, entrances: Vec<File>, output: io::PipeWriter) -> Result<Command> {
        let [program, arguments @ ..] = self.words else {
            return Err(Error::input("a command names no program"));
        };
        let both = output.try_clone().map_err(|error| Error::failed(describe(&error)))?;
        let mut command = Command::new(find(program)?);
        command.arg0(program).args(arguments).current_dir(self.folder);
        command.env_clear().env("PATH", FOLDERS.join(":")).env("LANG", "C.UTF-8").env("HOME", self.folder);
        if let Some(user) = self.user {
            command.env("USER", &user.name).env("LOGNAME", &user.name);
        }
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null()).stdout(output).stderr(both);
        let user = self.user.map(|user| (Uid::from_raw(user.uid), Gid::from_raw(user.gid)));
        let (parent, files) = (getpid(), file_limit_before());
        let enter = move || {
            if let Some(limit) = &files {
                setrlimit(Resource::Nofile, *limit)?;
            }
            enter(&entrances, user, parent)
        };
        // SAFETY: between fork and exec `enter` only makes system calls: it takes no lock and allocates no memory.
        #[allow(unsafe_code)]
        unsafe {
            command.pre_exec(enter)
        };
        Ok(command)
    }
}

/// Where a program is: a bare name is looked up in the system's folders; a path must be absolute.
///
/// # Errors
/// Input if there is none.
pub fn find(program: &str) -> Result<PathBuf> {
    let is_program = |path: &PathBuf| {
        use std::os::unix::fs::PermissionsExt;
        path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    };
    let shown = printable::line(program);
    if program.contains('/') {
        let path = PathBuf::from(program);
        if !path.is_absolute() {
            return Err(Error::input(format!("{shown} is not an absolute path"))
                .hint("begin it with `/`, or name a program"));
        }
        return Some(path)
            .filter(is_program)
            .ok_or_else(|| Error::input(format!("there is no program {shown}")));
    }
    let found = FOLDERS.iter().map(|folder| Path::new(folder).join(program)).find(is_program);
    found.ok_or_else(|| {
        Error::input(format!("the program {shown} is not installed")).hint(format!(
            "install it ({}), or give its path; programs are looked for in {}",
            installed_by(&shown),
            FOLDERS.join(", ")
        ))
    })
}

/// The command that installs a program on Debian and Ubuntu.
pub fn installed_by(program: &str) -> String {
    let of =
        |list: &[(&str, &'static str)]| list.iter().find(|(name, _)| *name == program).map(|(_, by)| *by);
    match (of(&ELSEWHERE), of(&PACKAGES)) {
        (Some(by), _) => by.to_owned(),
        (None, package) => format!("apt-get install {}", package.unwrap_or(program)),
    }
}

fn enter(entrances: &[File], user: Option<(Uid, Gid)>, parent: Pid) -> io::Result<()> {
    // Before root privileges are dropped, if there are any.
    for entrance in entrances {
        rustix::io::write(entrance, b"0")?;
    }
    setsid()?;
    umask(Mode::from_raw_mode(0o022));
    if let Some((uid, gid)) = user {
        set_thread_groups(&[gid])?;
        set_thread_res_gid(gid, gid, gid)?;
        set_thread_res_uid(uid, uid, uid)?;
    }
    set_no_new_privs(true)?;
    // After the change of user, which would have reset it.
    set_parent_process_death_signal(Some(Signal::KILL))?;
    if getppid() != Some(parent) {
        return Err(io::ErrorKind::BrokenPipe.into());
    }
    close_on_exec();
    Ok(())
}

/// Makes all descriptors but the first three close on exec, whoever left them open.
#[allow(unsafe_code)]
fn close_on_exec() {
    // SAFETY: these calls take only numbers, and change no memory.
    unsafe {
        if libc::syscall(libc::SYS_close_range, 3_u32, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) == 0 {
            return;
        }
        // Fallback for kernels before Linux 5.11.
        for descriptor in 3..DESCRIPTORS_MAX {
            libc::fcntl(descriptor, libc::F_SETFD, libc::FD_CLOEXEC);
        }
    }
}
