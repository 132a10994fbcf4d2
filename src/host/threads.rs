//! Threads of other processes that have descriptors of their own.
#![allow(unsafe_code)] // kcmp, which no library wraps

/// `KCMP_FILES` of linux/kcmp.h: whether two threads share one table of descriptors.
const KCMP_FILES: libc::c_int = 2;

/// The threads of a process, but for its first, with a table of descriptors that is not its first one's.
/// `look` gives its threads, and whether its first one has no descriptors at all, as one that has ended.
///
/// Where the kernel does not say whether a table is shared, those of all threads count if the first
/// thread has none, and else none of them.
pub(crate) fn with_own_descriptors(
    asks_kernel: bool,
    process: &str,
    look: &dyn Fn() -> (Vec<String>, bool),
) -> Vec<String> {
    let (threads, is_empty) = look();
    let shares = |thread: &str| {
        let known = if asks_kernel { share_descriptors(process, thread) } else { None };
        known.unwrap_or(!is_empty)
    };
    threads.into_iter().filter(|thread| thread != process && !shares(thread)).collect()
}

/// Whether two threads share their descriptors; none where the kernel does not say.
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
    fn threads_of_one_table_are_looked_at_once() {
        let own = std::process::id().to_string();
        let (send, wait) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || wait.recv().is_ok());
        let threads: Vec<String> = std::fs::read_dir("/proc/self/task")
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        assert!(threads.len() > 1);
        let looked = |is_empty| with_own_descriptors(true, &own, &|| (threads.clone(), is_empty));
        assert!(looked(false).is_empty());
        let unasked = with_own_descriptors(false, &own, &|| (threads.clone(), true));
        assert_eq!(unasked.len(), threads.iter().filter(|thread| **thread != own).count());
        drop(send);
        assert!(!thread.join().unwrap());
    }
}
