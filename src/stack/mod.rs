//! The storage under the load: what may be written, and the tools that read and prepare it.
//!
//! Enters: the settings and the host's facts. Leaves: devices or a folder for the load to use, and what
//! cleanup needs to remove everything again. A block device is opened for writing in one place only,
//! [`guard`]: writing needs its [`guard::Claim`].
//!
//! | module | is about | may import |
//! |---|---|---|
//! | [`runner`] | runs the system's own tools | – |
//! | [`supervise`] | watches work that takes a while: progress, time left, stopping it | – |
//! | [`id`] | a stack's id, and the ids of its layers | – |
//! | [`devices`] | drives, loops, partitions, arrays: named before they exist, found again | runner |
//! | [`layer`] | command layers of a profile: their commands, shown, journaled and run | runner, id, devices |
//! | [`guard`] | what may be written: uses, content, consent, claims, wiping | runner, devices |
//! | [`state`] | the folder of journals and notes, which others can't change | runner |
//! | [`journal`] | each change and its undo, durable before the change is made | id, devices, layer, state |
//! | [`paths`] | where journals and mount points are | – |
//! | [`system_folder`] | folders that root may not use for data: the system's, and stacktune's own | paths |
//! | [`plan`] | settings to steps: layers, capacity, resilience, wear, durations | runner, id, devices, layer, guard, state, journal, handover |
//! | [`tuning`] | queue settings and a memory budget, during a run | runner, id, devices, journal, plan |
//! | [`program`] | a program as the load: its folder, user and cgroups, and killing it | journal, tuning |
//! | [`handover`] | drives that leave the kernel for VFIO, and come back; how the IOMMU treats them | runner, supervise, id, devices, guard, journal |
//! | [`undo`] | removes what a journal names; leftovers and cleanup | runner, supervise, id, devices, layer, guard, journal, tuning, program, handover |
//! | [`build`] | runs a confirmed plan: preconditioning, resync, tear-down | runner, supervise, devices, layer, guard, state, journal, plan, tuning, handover, undo |

pub mod build;
pub mod devices;
pub mod guard;
pub mod handover;
pub mod id;
pub mod journal;
pub mod layer;
pub mod paths;
pub mod plan;
pub mod program;
pub mod runner;
pub mod state;
pub mod supervise;
pub mod system_folder;
pub mod tuning;
pub mod undo;
