//! The recordings of an evening's duels in `assets/evening`.

use std::fs;
use std::path::Path;

use crate::common::recorded::{Home, json};

/// The recordings open, and the text gives the duels' outcomes.
#[test]
fn the_evenings_recordings_open_and_their_verdicts_are_those_of_the_text() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/evening");
    let text = fs::read_to_string(folder.join("README.md")).unwrap();
    let home = Home::new();
    let folders = |of: &Path| -> Vec<_> {
        let paths = fs::read_dir(of).unwrap().map(|entry| entry.unwrap().path());
        paths.filter(|path| path.is_dir()).collect()
    };
    let duels = folders(&folder);
    assert!(duels.len() >= 3, "{duels:?}");
    for duel in duels {
        let printed = fs::read_to_string(duel.join("duel.txt")).unwrap();
        let verdict = printed.lines().nth(1).unwrap();
        assert!(text.contains(verdict), "{}: {verdict}", duel.display());
        let kept = json(&duel.join("duel.json"));
        let clear = verdict.starts_with("A is better") || verdict.starts_with("B is better");
        let word = kept["verdict"].as_str().unwrap();
        assert_eq!(clear, ["first", "second"].contains(&word), "{word}: {verdict}");
        let recordings = folders(&duel);
        assert_eq!(recordings.len(), 2, "{recordings:?}");
        for recording in recordings {
            let shown = home.run(&["show", recording.to_str().unwrap()]);
            shown.ended(0, &[]);
            assert!(shown.out.contains("tps ") && shown.out.contains("by process: "), "{}", shown.out);
        }
    }
}
