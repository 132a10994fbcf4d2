//! How other processes hold files: threads with separate descriptors, and shared memory.
#![allow(unsafe_code)] // kcmp, which no library wraps

/// `KCMP_FILES` of linux/kcmp.h: whether two threads share one table of descriptors.
const KCMP_FILES: libc::c_int = 2;

/// The threads of a process, except its first, whose descriptor table differs from the first one's; `is_bare`
/// if that one has no descriptors at all, as when it has ended.
///
/// If the kernel does not reveal whether a table is shared, all threads count if the first thread has no
/// table, and otherwise none of them.
pub(crate) fn with_own_descriptors(
    asks_kernel: bool,
    process: &str,
    threads: Vec<String>,
    is_bare: bool,
) -> Vec<String> {
    let shares = |thread: &str| {
        let known = if asks_kernel { share_descriptors(process, thread) } else { None };
        known.unwrap_or(!is_bare)
    };
    threads.into_iter().filter(|thread| thread != process && !shares(thread)).collect()
}

/// The ranges of a process's memory through which it writes to files, and the files' paths. Parsed by hand, as
/// procfs-core rejects the whole text for one line that it does not know.
pub(crate) fn shared_for_writing(maps: &str) -> impl Iterator<Item = (&str, &str)> {
    // "7f00-7f01 rw-s 00000000 00:05 320    /srv/disk.img"
    maps.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let (range, rights, path) = (words.next()?, words.next()?, words.nth(3)?);
        (rights.contains('w') && rights.ends_with('s') && path.starts_with('/')).then_some((range, path))
    })
}

/// Whether two threads share their descriptors; none if the kernel does not reveal it.
fn share_descriptors(one: &str, other: &str) -> Option<bool> {
    let [one, other] = [one, other].map(|id| id.parse::<libc::c_long>().ok());
    // SAFETY: with this kind it takes two numbers of threads, and touches no memory of ours.
    let order = unsafe { libc::syscall(libc::SYS_kcmp, one?, other?, KCMP_FILES, 0, 0) };
    (order >= 0).then_some(order == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_with_one_table_are_examined_once() {
        let own = std::process::id().to_string();
        let (send, wait) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || wait.recv().is_ok());
        let threads: Vec<String> = std::fs::read_dir("/proc/self/task")
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        assert!(threads.len() > 1);
        assert!(with_own_descriptors(true, &own, threads.clone(), false).is_empty());
        let unasked = with_own_descriptors(false, &own, threads.clone(), true);
        assert_eq!(unasked.len(), threads.iter().filter(|thread| **thread != own).count());
        drop(send);
        assert!(!thread.join().unwrap());
    }

    #[test]
    fn writers_through_shared_memory_are_found_by_the_range() {
        let maps =
            "55-56 r--p 0 fd:00 9 /bin/x\n70-71 rw-s 0 fd:00 12    /srv/disk.img\n72-73 rw-p 0 0:0 0 \n";
        assert_eq!(shared_for_writing(maps).collect::<Vec<_>>(), [("70-71", "/srv/disk.img")]);
    }
}
