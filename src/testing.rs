//! What the programs in `tests` see of the rooms, under the rooms' own paths.
//!
//! It only re-exports, by name and as little as possible: what stands here is never reported as dead code.

#[cfg(feature = "proofs")]
pub mod app {
    pub mod reproduce {
        pub use crate::app::reproduce::shown;
    }
}

pub mod class {
    pub use crate::class::Class;
}

pub mod error {
    pub use crate::error::{Error, Kind, Result};
}

pub mod host {
    pub use crate::host::{CgroupMemory, Cpu, Device, Facts, Feature, Platform, Queue, Spdk, Storage, Usage};
}

pub mod settings {
    pub use crate::settings::{
        Arrival, Buffering, Filesystem, Interface, LoadEngine, MdSettings, Named, Offsets, QueueSettings,
        Raid, RingSetup, Settings,
    };

    pub mod jobs {
        pub use crate::settings::jobs::{Job, jobs};
    }

    pub mod knobs {
        pub use crate::settings::knobs::{Conditions, Value, all, find};
    }

    pub mod profile {
        pub use crate::settings::profile::parse::parse_bytes;
        pub use crate::settings::profile::{Profile, builtin, check, parse, to_toml};
    }
}

pub mod stack {
    pub mod build {
        pub use crate::stack::build::{BuildContext, build};
    }

    pub mod devices {
        pub use crate::stack::devices::gpt::disk_ids;
        pub use crate::stack::devices::{BlockDevice, Drive};
    }

    pub mod guard {
        pub use crate::stack::guard::{
            Consent, Examination, OwnData, check_serials, examine, examine_read_only, permit,
        };
    }

    pub mod id {
        pub use crate::stack::id::StackId;
    }

    pub mod journal {
        pub use crate::stack::journal::{Journal, Opened, Undo};
    }

    pub mod plan {
        pub use crate::stack::plan::{
            Confirmed, Destroyed, Endurance, Exposed, LiveValues, Plan, PowerCutReason, Properties,
            Resilience, Step, live_values,
        };
    }

    pub mod runner {
        pub use crate::stack::runner::Runner;
    }

    pub mod tuning {
        pub use crate::stack::tuning::Adjustments;
    }

    pub mod undo {
        pub use crate::stack::undo::{
            Cleaned, CleanupRequest, Leftover, Remnant, StackState, cleanup, leftovers, others_in, undo_all,
        };
    }
}

pub mod load {
    pub mod io {
        pub use crate::load::io::{Op, OpKind, Queue, Setup, Wait};

        pub mod clock {
            pub use crate::load::io::clock::now_ns;
        }

        #[cfg(feature = "userspace")]
        pub mod vfio {
            pub use crate::load::io::vfio::{Drives, Polled};
        }
    }

    pub mod kv {
        pub use crate::load::kv::acks::Acks;
        pub use crate::load::kv::dataset::DatabaseFolder;
    }

    #[cfg(feature = "userspace")]
    pub mod nvme {
        pub use crate::load::nvme::identify::{ControllerFacts, active_namespaces};
        pub use crate::load::nvme::{Controller, Namespace, Patience};

        pub mod vfio {
            pub use crate::load::nvme::vfio::VfioBus;
        }
    }

    pub mod volume {
        pub use crate::load::volume::{
            Extent, MemberSource, Region, Request, Stamper, VerifyReport, Volume, affordable_size, is_ours_at,
        };

        pub mod header {
            pub use crate::load::volume::header::{COPIES_AT, COPY_BYTES, Found, Header};
        }

        pub mod write_map {
            pub use crate::load::volume::write_map::WriteMap;
        }
    }

    pub mod workers {
        pub use crate::load::workers::{ThreadedWorkers, Workers};

        pub mod control {
            pub use crate::load::workers::control::Writes;
        }
    }
}

pub mod meter {
    pub mod window {
        pub use crate::meter::window::LedgerLine;
    }

    pub mod source {
        pub use crate::meter::source::{Delta, Source};
    }
}

pub mod printable {
    pub use crate::printable::{is_obeyed, json, lines};
}

pub mod runs {
    pub mod duel {
        pub use crate::runs::duel::report::{DuelRow, Report, Verdict};
        pub use crate::runs::duel::{DuelSpec, Figure};
    }

    pub mod record {
        pub use crate::runs::record::Recording;
    }

    pub mod sweep {
        pub use crate::runs::sweep::{Folder, Schedule};
    }

    pub mod session {
        pub use crate::runs::session::{
            Advance, Attendant, Command, Duel, Event, Options, Phase, PlanShown, Progress, Session, Wanted,
            raise_thread_priority,
        };

        pub mod live {
            pub use crate::runs::session::live::run;
        }
    }
}

#[cfg(feature = "trace")]
pub mod trace {
    pub use crate::trace::{WrittenForm, read_bytes, write};

    pub mod contract {
        pub use crate::trace::contract::{ContractSpec, score};
    }
}

pub mod ui {
    pub mod report {
        #[cfg(feature = "proofs")]
        pub use crate::ui::report::reproduction;
        pub use crate::ui::report::{CostMap, OverTime, Shown, SweepShown, compare, schedule, show, sweep};
        #[cfg(feature = "trace")]
        pub use crate::ui::report::{contract, contract_files, contract_json};

        pub mod stacks {
            pub use crate::ui::report::stacks::status;
        }

        pub mod host {
            pub use crate::ui::report::host::describe;
        }
    }

    pub mod tui {
        pub use crate::ui::tui::{Link, Memory, Options, ProfileEntry, ProfileStore, run};

        pub mod message {
            pub use crate::ui::tui::message::Msg;
        }

        pub mod state {
            pub use crate::ui::tui::state::State;
        }

        pub mod theme {
            pub use crate::ui::tui::theme::Theme;
        }

        pub mod themes {
            pub use crate::ui::tui::themes::parse;
        }

        pub mod update {
            pub use crate::ui::tui::update::update;
        }

        pub mod view {
            pub use crate::ui::tui::view::draw;
        }
    }
}

pub mod units {
    pub use crate::units::{MIB, parse_size};
}
