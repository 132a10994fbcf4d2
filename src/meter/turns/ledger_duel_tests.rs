//! Duels are one line of the ledger each.

use super::*;
use crate::meter::duel_outcome::DuelVerdict;

#[test]
fn a_duel_is_one_line_that_keeps_its_turns() {
    let mut run = Run::new();
    run.windows(&[100.0; 5]);
    run.turn_from("128", "64");
    let in_duel = |run: &mut Run, from: &str, to: &str| {
        let (knob, duel) = ("scan.depth".into(), Some(["2", "64"].map(str::to_owned)));
        let turn = Turn { knob, from: from.into(), to: to.into(), duel, ..Turn::default() };
        let changed = run.turn_of(turn);
        run.windows(&[200.0; 3]);
        changed
    };
    let changed = in_duel(&mut run, "64", "2");
    assert_eq!(
        changed.iter().map(|line| (line.number, line.open)).collect::<Vec<_>>(),
        [(1, false), (2, true)]
    );
    assert_eq!(changed[0].flags, [FlagKind::TooShort.text()]);
    for (from, to) in [("2", "64"), ("64", "2"), ("2", "64")] {
        let changed = in_duel(&mut run, from, to);
        assert_eq!(changed.iter().map(|line| line.number).collect::<Vec<_>>(), [2]);
    }
    let outcome = DuelOutcome {
        verdict: DuelVerdict::Second,
        figure: "scan MB/s".into(),
        pairs: 7,
        change: Some(0.25),
        interval: Some((0.21, 0.29)),
        is_clear: true,
        margin: 0.05,
        less_durable: None,
        why: None,
    };
    let closed = run.ledger.close_duel(Some(outcome.clone())).unwrap();
    assert_eq!(closed.duel_outcome, Some(outcome));
    let text = serde_json::to_string(&closed).unwrap();
    assert_eq!(serde_json::from_str::<LedgerLine>(&text).unwrap(), closed, "{text}");
    assert_eq!((closed.from.as_str(), closed.to.as_str(), closed.open), ("2", "64", false));
    assert_eq!(
        (&closed.flags[..], closed.values().as_str()),
        (&["duel of 4 turns".to_owned()][..], "2 against 64")
    );
    assert_eq!((closed.outcome(), closed.scan_mb_per_s.verdict), (TurnOutcome::Duel, Verdict::None));
    let turns: Vec<_> = closed.turns().map(|(at_ns, to)| (at_ns / SECOND_NS, to)).collect();
    assert_eq!(turns, [(8, "2"), (14, "64"), (20, "2"), (26, "64")]);
    assert!(run.ledger.close_duel(None).is_none() && run.ledger.close().is_none());
    // The next turn is compared with the windows after the duel's last.
    run.turn_from("64", "128");
    run.windows(&[50.0; 5]);
    let line = run.last();
    assert_eq!((line.number, line.windows, line.scan_mb_per_s.verdict), (3, (3, 5), Verdict::Lower));
    assert!(run.ledger.lines.iter().all(|line| line.from != line.to), "{:?}", run.ledger.lines);
    // A duel in progress is closed by a turn of the operator's, and at the end.
    in_duel(&mut run, "128", "2");
    assert_eq!(run.turn_from("2", "128")[0].number, 4);
    in_duel(&mut run, "128", "2");
    let last = run.ledger.close().unwrap();
    assert_eq!((last.number, last.open, last.duel_outcome), (6, false, None));
}

#[test]
fn a_duels_turn_that_comes_when_it_is_over_joins_its_line_and_nothing_is_compared_across_it() {
    let mut run = Run::new();
    let of_duel = |run: &Run, to: &str| Turn {
        at_ns: run.second * SECOND_NS,
        knob: "command.sync".into(),
        to: to.into(),
        duel: Some(["a", "b"].map(str::to_owned)),
        ..Turn::default()
    };
    run.windows(&[100.0; 5]);
    run.turn_of(of_duel(&run, "b"));
    let closed = run.ledger.close_duel(None).unwrap();
    run.windows(&[100.0; 5]);
    // The operator turns another knob before the command that turns this one back has ended.
    assert_eq!(run.turn()[0].number, 2);
    let changed = run.ledger.turn_after_duel(of_duel(&run, "a"));
    assert_eq!(
        changed.iter().map(|line| (line.number, line.open)).collect::<Vec<_>>(),
        [(2, false), (1, false)]
    );
    assert_eq!(changed[0].flags, [FlagKind::TooShort.text()]);
    assert_eq!(
        (closed.duel.len(), changed[1].duel.len(), changed[1].flags[0].as_str()),
        (1, 2, "duel of 2 turns")
    );
    run.windows(&[200.0; 5]);
    run.turn();
    run.windows(&[300.0; 5]);
    assert_eq!((run.last().number, run.last().scan_mb_per_s.before), (3, Some(200.0)));
    // A turn of another duel, which ended before it, gets a line of its own that waits for nothing.
    let other = Turn { knob: "command.pool".into(), ..of_duel(&run, "a") };
    let changed = run.ledger.turn_after_duel(other);
    let last = changed.last().unwrap();
    assert_eq!((last.number, last.open, last.duel.len()), (4, false, 1));
}
