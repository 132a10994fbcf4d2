//! Duels: asked for on a line of the ledger, shown while they go on, and kept with the line.

use std::sync::Arc;

use crate::class::Class;
use crate::meter::window::LedgerLine;
use crate::runs::duel::Figure;
use crate::runs::session::message::DuelShown;
use crate::runs::session::{Command, DuelAsked};
use crate::settings::Settings;
use crate::settings::knobs::{Knob, Scope, Value, find_of};
use crate::ui::report::duel::verdict;
use crate::ui::tui::dialog::Dialog;
use crate::ui::tui::keys::Action;
use crate::ui::tui::layout::{self, Tier, View};
use crate::ui::tui::message::Effect;
use crate::ui::tui::state::{Focus, State};
use crate::ui::tui::update::input::blocked;
use crate::ui::tui::update::mark;

const MAX_WRITES: &str = "run.max_writes";

/// Ends a running duel; else asks which figure is to decide one: of the marked and the present setting, or of a turn.
pub fn ask(state: &mut State) -> Vec<Effect> {
    if state.duel.is_some() {
        return vec![Effect::Send(Command::Duel(None))];
    }
    if blocked(state) {
        return Vec::new();
    }
    if figures(state).is_empty() {
        state.say("no duel: none of the program's figures has `better` in the profile ([command.metrics])");
        return Vec::new();
    }
    // With the focus on the ledger, its chosen line is meant.
    let marked = mark::to_compare(state).filter(|_| state.focus != Focus::Ledger);
    match marked {
        None => of_line(state),
        Some(Err(why)) => state.say(why),
        Some(Ok(one)) => {
            let of_knob = |line: &&Arc<LedgerLine>| line.knob == one.knob.path;
            let line = state.live.ledger.iter().rev().find(of_knob).map_or(0, |line| line.number);
            begin(state, line, one.knob, [one.marked, one.now]);
        }
    }
    Vec::new()
}

/// Asks which figure is to decide between the two values of the ledger's chosen turn; with the focus on the knobs,
/// those of the chosen knob's last turn, else of the last one.
fn of_line(state: &mut State) {
    let ledger = &state.figures().ledger;
    let line = if state.focus == Focus::Ledger {
        ledger.iter().rev().nth(state.ledger_chosen.min(ledger.len().saturating_sub(1)))
    } else {
        let of_knob = ledger.iter().rev().find(|line| line.knob == state.knob().path);
        // Raising the write limit changes nothing that a duel could compare.
        of_knob.or_else(|| ledger.iter().rev().find(|line| line.knob != MAX_WRITES))
    };
    let Some(line) = line.cloned() else {
        state.say("a duel compares the two values of a turn: turn a knob first");
        return;
    };
    let knob = state.status.as_ref().and_then(|status| find_of(&status.settings, &line.knob));
    let value = |text: &String| knob.and_then(|knob| knob.parse(text).ok());
    // The ledger also has turns of several knobs, and of none.
    match (knob, value(&line.from), value(&line.to)) {
        (Some(knob), Some(from), Some(to)) => begin(state, line.number, knob, [from, to]),
        _ => state.say(format!("line {} is not a turn of one knob between two values", line.number)),
    }
}

/// Asks which figure is to decide between two values of a knob; the outcome goes to a line of the ledger.
fn begin(state: &mut State, line: u64, knob: &Knob, values: [Value; 2]) {
    let rebuilds = values.iter().any(|value| state.scope_of(knob, value) == Scope::Rebuild);
    let values = values.map(|value| value.to_string());
    if rebuilds && state.is_of_program() {
        let (knob, [a, b]) = (&knob.path, &values);
        state.say(format!("each turn would start the program anew: `stacktune run … --duel {knob}={a},{b}`"));
        return;
    }
    if rebuilds {
        let (knob, [a, b]) = (&knob.path, &values);
        state.say(format!(
            "each turn would build the storage anew: `stacktune record … --duel {knob}={a},{b}`"
        ));
        return;
    }
    let figure = figure_of(&knob.path, state.status.as_ref().map(|status| &status.settings));
    let chosen = figures(state).iter().position(|other| *other == figure).unwrap_or(0);
    state.dialog = Some(Dialog::Duel { line, knob: knob.path.clone(), values, chosen });
}

/// The figures that can decide a duel of the run: of its classes, or what its program reports.
pub fn figures(state: &State) -> Vec<Figure> {
    state.status.as_ref().map(|status| Figure::deciding(&status.settings)).unwrap_or_default()
}

/// The figure that a knob is most likely turned for. A limit on a class's rate is meant for the other classes: its
/// effect on that rate is known.
fn figure_of(knob: &str, settings: Option<&Settings>) -> Figure {
    let runs = |class: Class| settings.is_none_or(|settings| settings.classes[class.index()].enabled);
    if matches!(knob, "scan.rate" | "background.rate") {
        return match () {
            () if runs(Class::Point) => Figure::PointP99,
            () if runs(Class::Wal) => Figure::WalP99,
            () => Figure::Total,
        };
    }
    match knob.split('.').next() {
        Some("scan") => Figure::Scan,
        Some("point") => Figure::PointP99,
        Some("wal") => Figure::WalP99,
        Some("background") => Figure::Background,
        _ => Figure::Total,
    }
}

/// A key while the figures are listed.
pub fn pressed(
    state: &mut State,
    (line, knob, values): (u64, String, [String; 2]),
    chosen: usize,
    action: Option<Action>,
) -> Vec<Effect> {
    let figures = figures(state);
    let last = figures.len().saturating_sub(1);
    let chosen = match action {
        Some(Action::Close) => return Vec::new(),
        Some(Action::Accept) => {
            let Some(figure) = figures.get(chosen.min(last)).cloned() else { return Vec::new() };
            state.duel_asked = line;
            return vec![Effect::Send(Command::Duel(Some(DuelAsked { knob, values, figure })))];
        }
        Some(Action::Up) => chosen.saturating_sub(1),
        Some(Action::Down) => (chosen + 1).min(last),
        _ => chosen,
    };
    state.dialog = Some(Dialog::Duel { line, knob, values, chosen });
    Vec::new()
}

/// Takes the state of a duel.
pub fn shown(state: &mut State, shown: Arc<DuelShown>) {
    let line = state.duel.as_ref().map_or(state.duel_asked, |(line, _)| *line);
    if !shown.is_over {
        // Its lanes need more room than the ledger has on a small screen.
        if state.duel.is_none() && layout::tier(state.screen) == Some(Tier::Small) {
            state.view = View::Ledger;
        }
        state.duel = Some((line, shown));
        return;
    }
    state.duel = None;
    let report = &shown.report;
    let said = format!("duel (A {}, B {}): {}", report.values[0], report.values[1], verdict(report));
    state.notice(format!("{} {said}", report.knob));
    state.say(format!("{} {said}", report.knob));
    state.duels.insert(line, said);
}
