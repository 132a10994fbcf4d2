//! Signals that end a run cleanly, or stop it.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Once};

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGXFSZ};
use signal_hook::iterator::Signals;

use crate::error::{Error, Result, describe};
use crate::job_control::is_without_shell;
use crate::stopping::NoneEnding;
use crate::threads;

/// Makes a write beyond `RLIMIT_FSIZE` fail like others (EFBIG) and be counted, instead of ending the run.
pub fn outlive_file_limit() {
    // If the signal can't be caught, it ends the run as it would without this.
    let _ = signal_hook::flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false)));
}

/// Counts the signals that request the end.
pub struct Interrupts(Arc<AtomicUsize>);

impl Interrupts {
    /// Counts from now on, instead of dying. Ctrl-Z stops as soon as no thread is ending.
    pub fn watch() -> Result<Self> {
        // Only once: a second thread would stop what the first let go on. If none can start, Ctrl-Z stops at once.
        static STOPS: Once = Once::new();
        STOPS.call_once(|| drop(threads::start("watch for Ctrl-Z", stop_in_order)));
        let count = Arc::new(AtomicUsize::new(0));
        for signal in [SIGINT, SIGTERM, SIGQUIT, SIGHUP] {
            let theirs = count.clone();
            // SAFETY: the handler only adds to an atomic.
            #[allow(unsafe_code)]
            let registered = unsafe {
                signal_hook::low_level::register(signal, move || {
                    // A closing terminal sends it more than once: from its shell, and from the kernel.
                    if signal == SIGHUP {
                        theirs.fetch_max(1, Ordering::SeqCst);
                    } else {
                        theirs.fetch_add(1, Ordering::SeqCst);
                    }
                })
            };
            registered.map_err(|e| Error::failed(format!("cannot watch for signals: {}", describe(&e))))?;
        }
        Ok(Self(count))
    }

    /// How many have arrived: hang-ups count as one, however many, and not at all after another signal.
    pub fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

/// Stops the process at each Ctrl-Z, once none of its threads is ending.
fn stop_in_order() {
    let Ok(mut signals) = Signals::new([SIGTSTP]) else { return };
    for _ in signals.forever() {
        // Like the kernel, don't stop a process that nobody would continue.
        if !is_without_shell() {
            let _ = NoneEnding::wait().stop_this_process();
        }
    }
}
