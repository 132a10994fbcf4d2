//! Which knobs are listed: those of the chosen layer, or those that a search finds.

use std::sync::OnceLock;

use super::layout;
use super::state::{FIRST_KNOB, FIRST_OF_PAIRS, ListRow, Listing, State};
use crate::settings::Settings;
use crate::settings::knobs::{self, Kind, Knob, Scope, StackLayer};
use crate::short_list;

/// The tables in the order of the screen.
const TABLES: [&str; 15] = [
    "command",
    "scan",
    "point",
    "wal",
    "background",
    "load",
    "kv",
    "run",
    "io",
    "rocksdb",
    "stack",
    "md",
    "target",
    "queue",
    "sim",
];

impl State {
    /// Rebuilds the list; the chosen knob stays chosen if it is still listed.
    pub fn list_knobs(&mut self) {
        let mut chosen = self.knob();
        if self.search().is_none() && !self.has(chosen) {
            chosen = self.first_knob();
            self.layer = chosen.layer();
        }
        self.listing = match self.search() {
            Some(words) => self.found(&words.to_lowercase()),
            None => self.of_layer(chosen),
        };
        let is_chosen = |row: &ListRow| matches!(row, ListRow::Knob(knob) if knob.path == chosen.path);
        let rows = &self.listing.rows;
        let first = || rows.iter().position(|row| matches!(row, ListRow::Knob(_)));
        self.chosen = rows.iter().position(is_chosen).or_else(first).unwrap_or(0);
        self.scroll_to_chosen();
    }

    /// The knobs of the layer; those without effect only if asked for, chosen or collected.
    fn of_layer(&self, chosen: &Knob) -> Listing {
        let settings = self.settings_asked();
        let of_layer: Vec<_> =
            self.knobs(settings.as_ref()).filter(|knob| knob.layer() == self.layer).collect();
        let has_effect =
            |knob: &Knob| settings.as_ref().is_none_or(|settings| knob.inactive(settings).is_none());
        let stays = |knob: &Knob| {
            knob.path == chosen.path || self.collected.contains_key(knob.path.as_str()) || has_effect(knob)
        };
        let inactive = of_layer.iter().filter(|knob| !has_effect(knob)).count();
        let listed = of_layer.iter().filter(|knob| self.show_inactive || stays(knob));
        let headed = of_layer.iter().any(|knob| table_of(knob) != table_of(of_layer[0]));
        let mut rows = Vec::new();
        let mut last = "";
        for knob in listed {
            if headed && table_of(knob) != last {
                last = table_of(knob);
                rows.push(ListRow::Heading(last));
            }
            rows.push(ListRow::Knob(knob));
        }
        Listing { rows, inactive }
    }

    /// The knobs of any layer with all these words in their name, help or values; those that match by name come
    /// first, with their layers.
    fn found(&self, words: &str) -> Listing {
        let settings = self.settings_asked();
        let has = |knob: &&Knob| {
            let text = text_of(knob);
            words.split_whitespace().all(|word| text.contains(word))
        };
        let mut found: Vec<_> = self.knobs(settings.as_ref()).filter(has).collect();
        let place = |layer: StackLayer| StackLayer::ALL.iter().position(|other| *other == layer);
        // Stable, so that equals keep the tables' order.
        short_list::sort_by_key(&mut found, |knob| (place(knob.layer()), distance(&knob.path, words)));
        let mut layers: Vec<Vec<&'static Knob>> = Vec::new();
        for knob in found {
            match layers.last_mut().filter(|layer| layer[0].layer() == knob.layer()) {
                Some(layer) => layer.push(knob),
                None => layers.push(vec![knob]),
            }
        }
        short_list::sort_by_key(&mut layers, |layer| distance(&layer[0].path, words));
        let mut rows = Vec::new();
        for layer in layers {
            rows.push(ListRow::Heading(layer[0].layer().name()));
            rows.extend(layer.into_iter().map(ListRow::Knob));
        }
        Listing { rows, inactive: 0 }
    }

    /// The knobs that the load has, in the order of the tables.
    fn knobs(&self, settings: Option<&Settings>) -> impl Iterator<Item = &'static Knob> {
        let settings = settings.cloned().unwrap_or_default();
        let listed = self.listed;
        let all = knobs::of_program(&settings).into_iter().chain(by_table().iter().copied());
        let is_program = settings.program.is_some();
        let is_of_load = move |knob: &Knob| {
            if is_program { knob.is_of_programs() } else { !knob.is_of_another_engine(&settings) }
        };
        all.filter(move |knob| listed(knob) && is_of_load(knob))
    }

    /// Whether a layer has knobs, even ones without effect.
    pub fn has_knobs(&self, layer: StackLayer) -> bool {
        self.knobs(self.settings_asked().as_ref()).any(|knob| knob.layer() == layer)
    }

    /// Whether the run has this knob: a program has its own, and none of the classes'.
    fn has(&self, knob: &Knob) -> bool {
        let Some(status) = &self.status else { return true };
        let known = self.find(&knob.path).is_some_and(|known| std::ptr::eq(known, knob));
        known && (status.settings.program.is_none() || knob.is_of_programs())
    }

    /// The knob with that path, of the table or of the program that runs.
    pub fn find(&self, path: &str) -> Option<&'static Knob> {
        let of_run = self.status.as_ref().map(|status| knobs::find_of(&status.settings, path));
        of_run.unwrap_or_else(|| knobs::find(path))
    }

    /// The knob chosen first: for a program, its own that can be turned while it runs; for an engine that does its
    /// own I/O, its cache.
    pub fn first_knob(&self) -> &'static Knob {
        let settings = self.status.as_ref().map(|status| &status.settings);
        let path = match settings {
            Some(settings) if settings.is_keyed() => FIRST_OF_PAIRS,
            None => FIRST_KNOB,
            Some(settings) if settings.program.is_none() => FIRST_KNOB,
            Some(settings) => {
                let own = knobs::of_program(settings);
                let live = own.iter().copied().find(|knob| knob.spec.scope == Scope::Live);
                match live.or(own.first().copied()) {
                    Some(knob) => return knob,
                    None => "queue.scheduler",
                }
            }
        };
        knobs::find(path).unwrap_or(&knobs::all()[0])
    }

    /// Scrolls the list of knobs to the chosen row.
    pub fn scroll_to_chosen(&mut self) {
        let Some(areas) = layout::areas(self.screen, self.view) else { return };
        let height = layout::knobs_shown(areas.knobs);
        let rows = &self.listing.rows;
        // The table's heading comes into view with its first knob.
        let headed = self.chosen > 0 && matches!(rows.get(self.chosen - 1), Some(ListRow::Heading(_)));
        let first = if headed && height > 1 { self.chosen - 1 } else { self.chosen };
        self.top = self.top.min(first).max((self.chosen + 1).saturating_sub(height));
        self.top = self.top.min(rows.len().saturating_sub(height));
    }
}

/// All knobs in the order of their tables.
fn by_table() -> &'static [&'static Knob] {
    static ALL: OnceLock<Vec<&'static Knob>> = OnceLock::new();
    ALL.get_or_init(|| {
        let of_table = |table| knobs::all().iter().filter(move |knob| table_of(knob) == table);
        TABLES.into_iter().flat_map(of_table).collect()
    })
}

fn table_of(knob: &Knob) -> &'static str {
    let table = knob.path.split('.').next().unwrap_or_default();
    TABLES.into_iter().find(|known| *known == table).unwrap_or_default()
}

/// How well a path matches the words, best first: it equals them, begins with them, contains them in this order, has
/// all of them, or none of this. Its dots and underscores count as blanks.
fn distance(path: &str, words: &str) -> u8 {
    let plain = |text: &str| {
        let blank = text.replace(['.', '_'], " ");
        blank.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let (path, words) = (plain(path), plain(words));
    match () {
        () if path == words => 0,
        () if path.starts_with(&words) => 1,
        () if path.contains(&words) => 2,
        () if words.split(' ').all(|word| path.contains(word)) => 3,
        () => 4,
    }
}

/// Everything that a search looks at, in lower case.
fn text_of(knob: &Knob) -> String {
    let mut text = format!("{} {} {}", knob.path, knob.spec.help, knob.layer().name());
    if let Kind::Choice(choices) = knob.spec.kind {
        for (name, meaning) in choices {
            text.extend([" ", name, " ", meaning]);
        }
    }
    text.to_lowercase()
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::runs::session::message::Phase;
    use crate::settings::LoadEngine;
    use crate::ui::tui::fixture;
    use crate::ui::tui::theme::Theme;

    /// The paths of the knobs that are listed.
    pub fn listed(state: &State) -> Vec<&'static str> {
        let path = |row: &ListRow| match row {
            ListRow::Knob(knob) => Some(knob.path.as_str()),
            ListRow::Heading(_) => None,
        };
        state.listing.rows.iter().filter_map(path).collect()
    }

    #[test]
    fn every_knob_is_listed_in_its_layer() {
        let mut state = State::new(Theme::mono(), 80, 24);
        let mut seen = Vec::new();
        for layer in StackLayer::ALL {
            state.layer = layer;
            state.list_knobs();
            assert!(matches!(state.listing.rows[state.chosen], ListRow::Knob(_)), "{}", layer.name());
            seen.extend(listed(&state));
        }
        for knob in knobs::all() {
            let of_pages = !knob.is_of_another_engine(&Settings::default());
            assert_eq!(seen.contains(&knob.path.as_str()), of_pages, "{}", knob.path);
        }
    }

    #[test]
    fn what_is_chosen_first_can_be_turned_for_pages_and_for_pairs() {
        let mut state = fixture::running(160, 50);
        for (engine, expected) in
            [(LoadEngine::Pages, "io.buffering"), (LoadEngine::Rocksdb, "rocksdb.block_cache")]
        {
            let mut status = fixture::status(Phase::Running);
            status.settings.kv.engine = engine;
            let settings = status.settings.clone();
            state.status = Some(Arc::new(status));
            let knob = state.first_knob();
            assert_eq!(knob.path, expected);
            assert!(!knob.is_of_another_engine(&settings) && knob.inactive(&settings).is_none());
            assert_eq!(knob.spec.scope, Scope::Live);
        }
    }

    #[test]
    fn words_that_match_a_path_are_found_first() {
        let state = State::new(Theme::mono(), 80, 24);
        let first = |words: &str| {
            let rows = state.found(words).rows;
            let path = |row: &ListRow| match row {
                ListRow::Knob(knob) => Some(knob.path.as_str()),
                ListRow::Heading(_) => None,
            };
            rows.iter().find_map(path).unwrap()
        };
        for (words, path) in [
            ("scan rate", "scan.rate"),
            ("scan.rate", "scan.rate"),
            ("rate scan", "scan.rate"),
            ("io page", "io.page_size"),
            ("scheduler", "queue.scheduler"),
        ] {
            let found = first(words);
            assert_eq!(found, path, "{words}");
        }
        assert!(state.found("rate").rows.len() > 4, "and the others after it");
    }

    #[test]
    fn the_chosen_row_is_always_on_the_screen() {
        let mut state = State::new(Theme::mono(), 80, 24);
        state.layer = StackLayer::Application;
        state.list_knobs();
        let rows = state.listing.rows.len();
        for chosen in (1..rows).chain((1..rows).rev()) {
            state.chosen = chosen;
            state.scroll_to_chosen();
            let height = layout::areas(state.screen, state.view).unwrap().knobs.height as usize - 1;
            assert!((state.top..state.top + height).contains(&chosen), "{chosen} {}", state.top);
        }
    }
}
