//! How often equal settings differ clearly on the windows of a real run.

use super::estimate::{RECORDING_CHANGE_MIN, Side, TURN_CHANGE_MIN, Together, estimate};
use crate::class::Class;
use crate::meter::window::Window;

/// A real run: background writes to a loop device that the block layer limited to 40 MB/s, and from its 60th second on to
/// 20 MB/s.
pub(crate) fn limit_halved() -> Vec<Window> {
    let packed: &[u8] = include_bytes!("../../../tests/recordings/limit-halved.jsonl.gz");
    let text = std::io::read_to_string(flate2::read::GzDecoder::new(packed)).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Its windows under one limit, and under the other.
pub(crate) fn quiet() -> [Vec<Window>; 2] {
    let windows = limit_halved();
    [windows[2..60].to_vec(), windows[62..].to_vec()]
}

/// Rate, cycles, median and p99 of these windows.
fn figures(windows: &[Window]) -> [Vec<f64>; 4] {
    let latency = |window: &Window| window.class(Class::Background).latencies.service_ns.clone().unwrap();
    let of = |figure: &dyn Fn(&Window) -> f64| windows.iter().map(figure).collect();
    [
        of(&|window| window.total.mb_per_s),
        of(&|window| window.total.cycles_per_byte.unwrap()),
        of(&|window| latency(window).p50.unwrap() as f64),
        of(&|window| latency(window).p99.unwrap() as f64),
    ]
}

/// At how many of all places for a change between neighbouring windows a figure changed clearly, and of how many.
fn clear(
    figures: &[Vec<f64>; 4],
    (before, gap, after): (usize, usize, usize),
    together: Together,
) -> (usize, usize) {
    let span = before + gap + after;
    let places = (figures[0].len() + 1).saturating_sub(span);
    let is_clear = |from: &usize| {
        figures.iter().any(|values| {
            let of = &values[*from..from + span];
            let counted = if gap == together.gap { before.min(10) } else { before };
            let first = Side { windows: &of[..before], counted };
            estimate(first, Side::of(&of[before + gap..]), together).unwrap().is_clear
        })
    };
    ((0..places).filter(is_clear).count(), places)
}

#[test]
fn recorded_windows_under_one_limit_differ_clearly_in_one_line_of_twenty_at_most() {
    let turns = Together { figures: 11, gap: 3, change_min: TURN_CHANGE_MIN };
    let compares = Together { figures: 20, gap: 60, change_min: RECORDING_CHANGE_MIN };
    let lines = [((5, 3, 3), turns), ((10, 3, 5), turns), ((30, 3, 5), turns)];
    let pairs = [((15, 10, 15), compares), ((20, 0, 20), compares)];
    for (what, places) in [("turns", &lines[..]), ("compares", &pairs[..])] {
        let mut all = (0, 0);
        for windows in quiet() {
            let figures = figures(&windows);
            let found: Vec<_> =
                places.iter().map(|(sides, together)| clear(&figures, *sides, *together)).collect();
            println!("{what}: {found:?}");
            all = found.iter().fold(all, |all, of| (all.0 + of.0, all.1 + of.1));
        }
        assert!(all.1 > 50 && all.0 * 20 <= all.1, "{what}: {all:?}");
    }
    // Where the limit was halved, each of these sides is on one side of it.
    let whole = figures(&limit_halved()[40..80]);
    assert_eq!(clear(&whole, (20, 3, 17), turns), (1, 1));
}
