//! The recordings that can be read on the screen: those of its folder, and those of the current one.

use std::path::PathBuf;

use super::filter::Filter;
use crate::error::Result;
use crate::runs::record::{Listed, Recording, list};
use crate::ui::report;
use crate::ui::report::recordings::{date, figures, profile_and_length};

/// The list of recordings as it is shown.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Shelf {
    /// The recordings, or why there are none; nothing while they are being listed.
    pub listed: Option<Result<Vec<Listed>>>,
    /// The chosen one.
    pub chosen: usize,
    /// Those that are marked for comparison, in the order of marking: two at most.
    pub marked: Vec<PathBuf>,
    /// The list's filter.
    pub filter: Filter,
}

impl Shelf {
    /// The recordings, as far as they are known.
    pub fn recordings(&self) -> &[Listed] {
        self.listed.as_ref().and_then(|listed| listed.as_deref().ok()).unwrap_or_default()
    }

    /// Which of them the filter lets through: by date, profile, name and figures.
    pub fn rows(&self, filter: &Filter) -> Vec<usize> {
        let all = self.recordings();
        let text = |row: usize| {
            let listed = &all[row];
            let (profile, length) = profile_and_length(listed);
            format!("{} {profile} {length} {} {}", date(listed), listed.name, figures(listed))
        };
        filter.rows(all.len(), &text)
    }

    /// The chosen recording.
    pub fn chosen(&self) -> Option<&Listed> {
        self.recordings().get(self.chosen)
    }

    /// The letter of a recording that is marked.
    pub fn letter(&self, listed: &Listed) -> Option<&'static str> {
        let at = self.marked.iter().position(|marked| *marked == listed.dir)?;
        ["A", "B"].get(at).copied()
    }

    /// Marks the chosen recording, or clears its mark; a third mark replaces the first.
    pub fn mark(&mut self) {
        let Some(dir) = self.chosen().map(|listed| listed.dir.clone()) else { return };
        match self.marked.iter().position(|marked| *marked == dir) {
            Some(at) => _ = self.marked.remove(at),
            None => self.marked.push(dir),
        }
        if self.marked.len() > 2 {
            self.marked.remove(0);
        }
    }
}

/// Lists the recordings of these folders, one folder after the other.
///
/// # Errors
/// If one of them can't be read.
pub fn listed(folders: &[PathBuf]) -> Result<Vec<Listed>> {
    let lists: Vec<_> = folders.iter().map(|folder| list(folder)).collect::<Result<_>>()?;
    Ok(lists.into_iter().flatten().collect())
}

/// The summary of a recording, or the comparison of several, as `show` and `compare` print them.
///
/// # Errors
/// If one of them can't be read.
pub fn read(dirs: &[PathBuf]) -> Result<String> {
    let recordings: Vec<_> = dirs.iter().map(|dir| Recording::open(dir)).collect::<Result<_>>()?;
    match &recordings[..] {
        [one] => Ok(report::show(one)),
        several => Ok(report::compare(several)?.to_string()),
    }
}
