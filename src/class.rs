//! The four I/O classes of an HTAP database (paper 001, section 3.2, Table 3).

use serde::{Deserialize, Serialize};

/// A class of I/O.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    /// Table scans: random page reads at depth, measured for throughput.
    Scan,
    /// Point reads: one random page at a time, measured for latency.
    Point,
    /// The write-ahead log: sequential writes, each made durable by a flush.
    Wal,
    /// The background writer: random page writes at a steady rate.
    Background,
}

impl Class {
    /// All classes, in the order of tables and files.
    pub const ALL: [Class; 4] = [Class::Scan, Class::Point, Class::Wal, Class::Background];

    /// The name in profiles, files and on the screen.
    pub const fn name(self) -> &'static str {
        match self {
            Class::Scan => "scan",
            Class::Point => "point",
            Class::Wal => "wal",
            Class::Background => "background",
        }
    }

    /// The position in [`Class::ALL`] and in every array of one item a class.
    pub const fn index(self) -> usize {
        self as usize
    }

    /// Whether the class writes.
    pub const fn writes(self) -> bool {
        matches!(self, Class::Wal | Class::Background)
    }
}

impl std::fmt::Display for Class {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}
