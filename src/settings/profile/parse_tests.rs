//! The parser: what it accepts, how it reports mistakes, and that nothing makes it panic.

use std::fmt::Write;

use proptest::prelude::*;

use super::*;
use crate::settings::profile::builtin::BUILTIN;
use crate::settings::{Cpus, Interface};
use crate::units::GIB;

fn parsed(text: &str) -> Settings {
    parse(text, "demo.toml").unwrap().settings
}

#[test]
fn an_empty_profile_is_the_defaults_named_after_the_file() {
    assert_eq!(parsed(""), Settings { name: "demo".into(), ..Settings::default() });
    assert_eq!(parse("", "/a/b/mine.toml").unwrap().settings.name, "mine");
}

#[test]
fn inline_tables_headers_and_dotted_keys_are_equivalent() {
    let expected = parsed("[target]\nfiles = { dir = \"/x\", count = 2, size = \"2GiB\" }");
    assert_eq!(expected.target.size_bytes, 2 * GIB);
    assert_eq!(parsed("[target.files]\ndir = \"/x\"\ncount = 2\nsize = \"2GiB\""), expected);
    assert_eq!(
        parsed("target.files.dir = '/x'\ntarget.files.count = 0x2\ntarget.files.size = 2_147_483_648"),
        expected
    );
}

#[test]
fn every_kind_of_value_is_accepted_as_toml_writes_it() {
    let settings = parsed(
        "[scan]\nenabled = false\ncpus = [2, 0, 1]\nzipf_theta = 1\njump_share = 5e-1\nrate = \"none\"\n\
         [point]\ncpus = 3\nenabled = \"off\"\ninterface = \"default\"\n\
         [wal]\nrate = \"none\"\ntarget = \"none\"\ninterface = \"libaio\"\n\
         [stack]\nraid = \"none\"\n[run]\nwindow = \"100ms\"\nmax_writes = \"none\"",
    );
    let [scan, point, wal, _] = &settings.classes;
    assert!(!scan.enabled && !point.enabled);
    assert_eq!((&scan.cpus, &point.cpus), (&Cpus::List(vec![0, 1, 2]), &Cpus::List(vec![3])));
    assert!((scan.zipf_theta - 1.0).abs() < f64::EPSILON && (scan.jump_share - 0.5).abs() < f64::EPSILON);
    assert_eq!((scan.rate_bytes_per_s, wal.rate_bytes_per_s), (None, None));
    assert_eq!((point.interface, wal.interface), (None, Some(Interface::Libaio)));
    assert_eq!((settings.wal.target, settings.stack.raid), (None, crate::settings::Raid::None));
}

#[test]
fn devices_may_stand_after_their_serials() {
    let settings = parsed("[target]\nserials = [\"A\", \"\"]\ndevices = [\"/dev/x\", \"/dev/y\"]");
    assert_eq!(settings.target.devices, ["/dev/x", "/dev/y"]);
    assert_eq!(settings.target.serials, ["A", ""]);
}

#[test]
fn no_text_makes_lines_or_moves_the_cursor() {
    for text in ["/mnt/a\\n  2. nothing", "\\u001b[2J", "\\u202ea", "\\u009b1m"] {
        for key in ["name", "about", "target.files.dir", "stack.mkfs_options", "wal.target", "wal.acks"] {
            let error = parse(&format!("{key} = \"{text}\""), "demo.toml").unwrap_err().to_string();
            assert!(error.contains(&format!("`{key}` must be")), "{error}");
        }
        let error = parse(&format!("target.devices = [\"/dev/x\", \"{text}\"]"), "demo.toml").unwrap_err();
        assert!(error.what.contains("`target.devices` must be a list of devices"), "{error}");
    }
    let error = parse("x = 1", "a\n\x1b[2J.toml").unwrap_err();
    assert!(error.what.starts_with("a␊␛[2J.toml:1:1: "), "{error}");
    assert_eq!(parse("", "a\x1b.toml").unwrap().settings.name, "a␛");
}

#[test]
fn columns_count_characters() {
    assert_eq!(position("a\näö x", "a\näö ".len()), (2, 4));
    assert_eq!(position("\u{feff}x = 1", 3), (1, 1));
    assert_eq!(position("ab\r\ncd", 5), (2, 2));
    assert_eq!(position("ä", 1), (1, 1));
    assert_eq!(position("ab", 99), (1, 3));
}

#[test]
fn mistakes_are_reported_with_position_and_suggestion() {
    let mut texts = String::new();
    for wrong in [
        "[scan]\ndept = 4",
        "[scan]\ndepth = \"many\"",
        "[scan]\ndepth = 0",
        "[scna]\ndepth = 4",
        "depth = 4",
        "[scan]\nsync = \"none\"",
        "[scan]\ncolour = \"red\"",
        "colour = \"red\"",
        "\"scan.depth\" = 4",
        "scan = 3",
        "[[scan]]\ndepth = 4",
        "[scan.depth]\nx = 1",
        "name = \"ä\"; about = 3",
        "about = \"\"\"two\nlines\"\"\"",
        "name = 3",
        "[io]\ninterface = \"iouring\"",
        "[wal]\nbuffering = true",
        "[io]\npage_size = \"24KiB\"",
        "[wal]\nrate = 250",
        "[wal]\nrate = \"250MB\"",
        "[run]\nwindow = 1979-05-27",
        "[target]\ndevices = \"/dev/x\"",
        "[target]\ndevices = [\"/dev/x\", 3]",
        "[target]\nfiles = { dir = \"/x\", cuont = 3 }",
        "[target]\nfiles = { dir = \"/x\" }\ndevices = [\"/dev/x\"]",
        "[target]\ndevices = [\"/dev/x\"]\nserials = [\"A\", \"B\"]",
        "[point]\nzipf_theta = nan",
        "[run]\nseed = 99999999999999999999",
        "[scan]\ncpus = \"node:x\"",
        "[scan]\ndepth = 4\ndepth = 5",
        "[scan",
        "[io]\npage_size = \"16KiB",
        "[background]\nrate = \"none\"\nofsets = 1\n[scan]\ndept = 3",
        "[scan]\ndepth = \"a very long text that nobody would want to read again in full, would they\"",
    ] {
        let _ = writeln!(texts, "{}", parse(wrong, "demo.toml").unwrap_err().what);
    }
    insta::assert_snapshot!(texts);
}

#[test]
fn mistakes_without_number_take_no_time() {
    let began = std::time::Instant::now();
    // In descending order, so that each key sorts before all that came before it.
    let keys =
        (0..80_000).rev().map(|number| format!("scan.k{number:05} = 1\n")).collect::<Vec<_>>().concat();
    assert!(parse(&keys, "f").unwrap_err().what.starts_with("f:1:6: there is no `scan.k79999`"));
    let long = format!("{} = 1", "k".repeat(900_000));
    assert!(parse(&long, "f").unwrap_err().what.starts_with("f:1:1: there is no `kkk"));
    assert!(began.elapsed() < std::time::Duration::from_secs(10), "{:?}", began.elapsed());
}

/// Whether an error begins with the file and a position in it.
fn has_position(what: &str, text: &str) -> bool {
    let place = || {
        let rest = what.strip_prefix("fuzz.toml:")?;
        let mut parts = rest.splitn(3, ':');
        let line: usize = parts.next()?.parse().ok()?;
        let column: usize = parts.next()?.parse().ok()?;
        let message = parts.next()?.trim();
        let line_chars = text.split('\n').nth(line.checked_sub(1)?)?.chars().count();
        Some((1..=line_chars + 1).contains(&column) && !message.is_empty() && !message.contains('\n'))
    };
    place() == Some(true)
}

fn assert_settings_or_place(bytes: &[u8]) -> std::result::Result<(), TestCaseError> {
    match parse_bytes(bytes, "fuzz.toml") {
        Ok(profile) => {
            let again = parse(&crate::settings::profile::to_toml(&profile), "again.toml");
            prop_assert_eq!(again, Ok(profile));
        }
        Err(error) => {
            let text = String::from_utf8_lossy(bytes);
            prop_assert!(has_position(&error.what, &text), "{:?} of {text:?}", error.what);
            prop_assert_eq!(error.exit_status(), 2);
        }
    }
    Ok(())
}

/// Pieces that get deeper into the parser than random characters.
const PIECES: [&str; 34] = [
    "[",
    "]",
    "{",
    "}",
    "=",
    ".",
    ",",
    "\"",
    "'",
    "\"\"\"",
    "\n",
    "#",
    "-",
    "_",
    "ä",
    "\0",
    "\r",
    "0x",
    "1e999",
    "scan",
    "target",
    "files",
    "devices",
    "[[scan]]",
    "[sweep]",
    "[sweep.product]",
    "[[step]]",
    "\nlabel = \"x\"\n",
    "\nscan.depth = 4\n",
    "\nscan.depth = [4, 8]\n",
    "inf",
    "1979-05-27",
    "18446744073709551616",
    "\\u0000",
];

/// An edit of a text: where, how much is removed, what is inserted.
fn change() -> impl Strategy<Value = (prop::sample::Index, usize, Vec<u8>)> {
    let piece = prop_oneof![
        prop::sample::select(&PIECES[..]).prop_map(|piece| piece.as_bytes().to_vec()),
        prop::collection::vec(any::<u8>(), 0..8),
        prop::sample::select(&BUILTIN[..]).prop_flat_map(|(_, text)| {
            (0..text.len(), 0..40_usize)
                .prop_map(move |(at, length)| text.as_bytes()[at..text.len().min(at + length)].to_vec())
        }),
    ];
    (any::<prop::sample::Index>(), 0..24_usize, piece)
}

proptest! {
    #[test]
    fn any_bytes_give_settings_or_a_place(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        assert_settings_or_place(&bytes)?;
    }

    #[test]
    fn any_pieces_give_settings_or_a_place(pieces in prop::collection::vec(prop::sample::select(&PIECES[..]), 0..30)) {
        assert_settings_or_place(pieces.concat().as_bytes())?;
    }

    #[test]
    fn any_damage_to_a_profile_gives_settings_or_a_place(
        (_, text) in prop::sample::select(&BUILTIN[..]),
        changes in prop::collection::vec(change(), 1..5),
    ) {
        let mut bytes = text.as_bytes().to_vec();
        for (at, length, piece) in changes {
            let at = at.index(bytes.len() + 1);
            let end = bytes.len().min(at + length);
            bytes.splice(at..end, piece);
        }
        assert_settings_or_place(&bytes)?;
    }
}
