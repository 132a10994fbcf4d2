//! Giving up the rights that a command does not need.

use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities, set_no_new_privs};

/// Gives up what root may do, except to read every file, and makes sure that no program which this process
/// starts gets more. For commands that only read recordings, profiles or texts: what they read is often from
/// others.
pub fn drop_to_reading() {
    let reads = CapabilitySet::DAC_READ_SEARCH;
    let own = rustix::thread::capabilities(None).map_or(CapabilitySet::empty(), |sets| sets.permitted);
    let left = own & reads;
    // Where a sandbox forbids it, there is nothing to fall back to, and nothing that the command needs is lost.
    let _ = set_no_new_privs(true);
    let sets = CapabilitySets { effective: left, permitted: left, inheritable: CapabilitySet::empty() };
    let _ = set_capabilities(None, sets);
}
