//! `stacktune help`: what the figures, flags, knobs and files mean, one topic at a time.
//!
//! Enters: a topic. Leaves: text, paged on a terminal.
//!
//! The texts are Markdown in `assets/help`, so that they read well in a browser too; here they are laid
//! out for a terminal. Their tables of flags and knobs are generated from the code by a test.

#[cfg(test)]
mod generated;
mod markdown;
mod pager;
#[cfg(test)]
mod tests;

pub use markdown::render;
pub use pager::{TextOutput, page};

/// A help topic.
#[derive(Debug, PartialEq, Eq)]
pub struct Topic {
    /// The word after `stacktune help`.
    pub name: &'static str,
    /// What it is about, in one line.
    pub about: &'static str,
    /// The text, in Markdown.
    pub text: &'static str,
}

macro_rules! topic {
    ($name:literal, $about:literal) => {
        Topic {
            name: $name,
            about: $about,
            text: include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/assets/help/", $name, ".md")),
        }
    };
}

/// All topics, in the order of the list.
pub const TOPICS: &[Topic] = &[
    topic!("figures", "What each figure means, and whether it can be believed"),
    topic!("flags", "Why a figure may not be the storage's own"),
    topic!("knobs", "Everything that can be turned"),
    topic!("keys", "The keys of the screen"),
    topic!("profiles", "How a profile is written; the built-in ones"),
    topic!("safety", "From the demo to your own drives; what is refused"),
    topic!("stack", "RAID and file systems below the load"),
    topic!("interfaces", "How an I/O enters the kernel, or avoids it"),
    topic!("polling", "Polled I/O through the kernel"),
    topic!("userspace", "NVMe drives without the kernel: VFIO and SPDK"),
    topic!("rocksdb", "RocksDB as the storage engine"),
    topic!("run", "Your own program as the load"),
    topic!("sweep", "The same load under many settings"),
    topic!("reproduce", "A paper's tables and figures next to your own"),
    topic!("contract", "How well an application's I/O follows the rules of SSDs"),
    topic!("ftl", "What a drive's flash would do with a trace, by model"),
    topic!("attest", "stacktune's figures checked against other programs"),
    topic!("lab", "The practice array: a machine with nothing to lose"),
    topic!("formats", "Recordings, folders and exit statuses"),
];

/// The topic of that name.
pub fn topic(name: &str) -> Option<&'static Topic> {
    TOPICS.iter().find(|topic| topic.name == name)
}

/// The list of topics, as shown below the program's own help.
pub fn list() -> String {
    format!("Topics (stacktune help TOPIC):\n{}", rows())
}

/// The topics, a line each.
pub fn rows() -> String {
    let rows: Vec<_> = TOPICS.iter().map(|topic| format!("  {:<11}  {}", topic.name, topic.about)).collect();
    rows.join("\n") + "\n"
}
