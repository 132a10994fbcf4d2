//! How often `compare` calls recordings of equal settings different, on a loop device: a part of the soak.
//!
//! `RECORDINGS=40`: that many comparisons, each of two runs of its own.

use std::fs;

use serde_json::Value;

use crate::common::devices::Loops;
use crate::common::program::Home;
use crate::common::{LEFT_TO_SOAK, remark, skip};
use crate::turns::{ALLOWED, Share, called_most};

/// After that, nothing settles any more.
const WARMUP: &str = "3s";
const TIME: &str = "10s";

#[test]
fn equal_recordings_are_seldom_called_different() {
    let name = "equal_recordings_are_seldom_called_different";
    let Ok(amount) = std::env::var("RECORDINGS") else { return skip(name, LEFT_TO_SOAK) };
    let Some(loops) = Loops::alone(name) else { return };
    let (home, device) = (Home::new(), loops.blank(256));
    let (profile, path) = (home.path("equal.toml"), device.path.clone());
    let text = format!(
        "[target]\ndevices = [\"{path}\"]\n[run]\nwindow = \"250ms\"\n[scan]\ndepth = 4\n[point]\ndepth = 4\nrate = \"2MB/s\"\n\
         [wal]\nrate = \"1MB/s\"\n[background]\ndepth = 4\nrate = \"1MB/s\"\n"
    );
    fs::write(&profile, text).unwrap();
    let record = |number: u64| {
        let out = home.path(&number.to_string());
        let words = [
            "record",
            profile.to_str().unwrap(),
            "--warmup",
            WARMUP,
            "--for",
            TIME,
            "--destroy",
            &path,
            "--out",
        ];
        home.run(words.into_iter().chain([out.to_str().unwrap()])).expect(0);
        out
    };
    let (mut share, amount) = (Share::default(), amount.parse::<u64>().unwrap());
    for number in 0..amount {
        let [before, after] = [2 * number, 2 * number + 1].map(record);
        let compared = home.run(["compare", "--json", before.to_str().unwrap(), after.to_str().unwrap()]);
        let compared = compared.expect(0).json();
        let rows =
            || compared["rows"].as_array().unwrap().iter().map(|row| (&row["figure"], &row["cells"][1]));
        let is_clear = |cell: &Value| ["higher", "lower"].iter().any(|verdict| cell["verdict"] == *verdict);
        rows().filter(|(_, cell)| is_clear(cell)).for_each(|(figure, cell)| println!("{figure}: {cell}"));
        let judged = rows().any(|(_, cell)| !cell["change_range"].is_null());
        if !judged {
            println!("not judged: {}", compared["recordings"]);
        }
        share.add(judged, rows().any(|(_, cell)| is_clear(cell)));
        [before, after].iter().for_each(|out| fs::remove_dir_all(out).unwrap());
    }
    remark(&format!("equal recordings called different by compare: {share}"));
    if share.is_above(ALLOWED) {
        remark(&format!("more equal recordings than one in twenty were called different: {share}"));
    }
    assert!(4 * share.judged >= amount, "{share}: that says little");
    let most = called_most(share.judged);
    assert!(share.called <= most, "{share}: {most} may be");
}
