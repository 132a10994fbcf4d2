//! Duels on the screen: asked for, followed, and remembered.

use std::sync::Arc;

use crossterm::event::KeyCode;

use super::tests::{key, letter, said};
use crate::meter::window::LedgerLine;
use crate::runs::duel::Figure;
use crate::runs::duel::report::Verdict;
use crate::runs::session::message::DuelShown;
use crate::runs::session::{Command, DuelAsked, Event};
use crate::ui::tui::dialog::Dialog;
use crate::ui::tui::fixture::{duel, running, tell, turned};
use crate::ui::tui::layout::View;
use crate::ui::tui::message::Effect;
use crate::ui::tui::tests::shown;

#[test]
fn the_chosen_line_of_the_ledger_is_fought_over_by_the_chosen_figure() {
    let mut state = turned(160, 50);
    let line = state.live.ledger.back().unwrap().clone();
    assert_eq!(letter(&mut state, 'D'), []);
    let Some(Dialog::Duel { chosen, .. }) = state.dialog else { panic!("{:?}", state.dialog) };
    key(&mut state, KeyCode::Down);
    let begun = key(&mut state, KeyCode::Enter);
    let figure = Figure::ALL[chosen + 1].clone();
    let asked = DuelAsked { knob: line.knob.clone(), values: [line.from.clone(), line.to.clone()], figure };
    assert_eq!(begun, [Effect::Send(Command::Duel(Some(asked)))]);
    tell(&mut state, Event::Duel(Arc::new(duel(2))));
    assert_eq!(state.duel.as_ref().map(|(number, _)| *number), Some(line.number));

    // Another press ends it; its verdict stays with the line.
    assert_eq!(letter(&mut state, 'D'), [Effect::Send(Command::Duel(None))]);
    let mut over = DuelShown { is_over: true, ..duel(8) };
    over.report.verdict = Verdict::Second;
    tell(&mut state, Event::Duel(Arc::new(over)));
    assert!(state.duel.is_none());
    assert!(state.duels[&line.number].contains("B is better: total MB/s"), "{:?}", state.duels);
    assert!(said(&state).contains("B is better"), "{}", said(&state));
    // A new run has lines of its own.
    tell(&mut state, Event::Began);
    assert!(state.duels.is_empty());
}

#[test]
fn a_limit_on_a_rate_is_judged_by_what_it_does_to_the_others() {
    for (knob, [from, to], expected) in [
        ("scan.rate", ["none", "100MB/s"], Figure::PointP99),
        ("background.rate", ["25MB/s", "50MB/s"], Figure::PointP99),
        ("wal.rate", ["25MB/s", "50MB/s"], Figure::WalP99),
        ("scan.depth", ["64", "128"], Figure::Scan),
        ("background.depth", ["8", "16"], Figure::Background),
    ] {
        let mut state = running(160, 50);
        let (knob, from, to) = (knob.to_owned(), from.to_owned(), to.to_owned());
        let line = LedgerLine { number: 1, knob: knob.clone(), from, to, ..LedgerLine::default() };
        tell(&mut state, Event::Ledger(Arc::new(line)));
        assert_eq!(letter(&mut state, 'D'), []);
        let Some(Dialog::Duel { chosen, .. }) = state.dialog else { panic!("{knob}: {:?}", said(&state)) };
        assert_eq!(Figure::ALL[chosen], expected, "{knob}");
    }
}

#[test]
fn of_many_figures_the_chosen_one_is_always_on_the_screen() {
    let mut state = turned(80, 24);
    let status = state.status.as_mut().map(Arc::make_mut).unwrap();
    let metric = |at: usize| crate::settings::Metric {
        name: format!("rate of part {at}"),
        line: "([0-9]+)".into(),
        unit: String::new(),
        better: Some(crate::settings::Better::Higher),
    };
    let metrics = (0..30).map(metric).collect();
    status.settings.program = Some(crate::settings::Program { metrics, ..Default::default() });
    let values = ["64".into(), "128".into()];
    state.dialog = Some(Dialog::Duel { line: 1, knob: "scan.depth".into(), values, chosen: 0 });
    for at in 0..30 {
        let screen = shown(&state);
        assert!(
            screen.contains(&format!("▸ rate of part {at} ")) && screen.contains("Enter begins"),
            "{screen}"
        );
        key(&mut state, KeyCode::Down);
    }
    key(&mut state, KeyCode::Up);
    assert!(shown(&state).contains("▸ rate of part 28 "), "{}", shown(&state));
}

#[test]
fn a_limit_of_writes_is_not_fought_over_and_one_that_would_end_a_duel_is_said() {
    let mut state = turned(120, 40);
    let number = state.live.ledger.back().unwrap().number;
    let knob = "run.max_writes".to_owned();
    let line = LedgerLine {
        number: number + 1,
        knob,
        from: "20GiB".into(),
        to: "60GiB".into(),
        ..Default::default()
    };
    tell(&mut state, Event::Ledger(Arc::new(line)));
    letter(&mut state, 'D');
    let Some(Dialog::Duel { line, .. }) = state.dialog else { panic!("{:?}", state.dialog) };
    assert_eq!(line, number);
    let warning = "Writers stop in about";
    assert!(!shown(&state).contains(warning));
    let limit = state.status.as_ref().unwrap().settings.run.max_writes_bytes.unwrap();
    state.written_bytes = limit - 1;
    assert!(shown(&state).contains(warning), "{}", shown(&state));
}

#[test]
fn an_older_line_is_fought_over_where_it_is_chosen() {
    let mut state = turned(160, 50);
    let line = state.live.ledger.iter().rev().nth(1).unwrap().clone();
    key(&mut state, KeyCode::Tab);
    letter(&mut state, 'j');
    letter(&mut state, 'D');
    let Some(Dialog::Duel { line: number, .. }) = state.dialog else { panic!("{:?}", state.dialog) };
    assert_eq!(number, line.number);
    key(&mut state, KeyCode::Esc);
    assert!(state.dialog.is_none() && state.duel.is_none());
}

#[test]
fn what_can_not_be_fought_over_is_refused_at_once() {
    let mut state = running(80, 24);
    assert_eq!(letter(&mut state, 'D'), []);
    assert!(said(&state).contains("turn a knob first"), "{}", said(&state));
    let line = |knob: &str, from: &str, to: &str| LedgerLine {
        number: 1,
        knob: knob.into(),
        from: from.into(),
        to: to.into(),
        ..LedgerLine::default()
    };
    for (line, why) in [
        (line("stack.filesystem", "ext4", "xfs"), "build the storage anew"),
        (line("stack.raid, stack.chunk", "md0", "none"), "not a turn of one knob"),
    ] {
        tell(&mut state, Event::Began);
        tell(&mut state, Event::Ledger(Arc::new(line)));
        assert_eq!(letter(&mut state, 'D'), []);
        assert!(said(&state).contains(why) && state.dialog.is_none(), "{}", said(&state));
    }
}

#[test]
fn the_ledger_gets_room_when_a_duel_begins() {
    let mut state = turned(80, 24);
    assert_eq!(state.view, View::Tails);
    tell(&mut state, Event::Duel(Arc::new(duel(0))));
    assert_eq!(state.view, View::Ledger);
    letter(&mut state, 'v');
    tell(&mut state, Event::Duel(Arc::new(duel(1))));
    assert_ne!(state.view, View::Ledger, "where the operator has looked elsewhere since, it stays so");
    let mut large = turned(160, 50);
    tell(&mut large, Event::Duel(Arc::new(duel(0))));
    assert_eq!(large.view, View::Tails);
}
