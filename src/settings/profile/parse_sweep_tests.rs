//! The steps of a profile: what is accepted, how mistakes are reported, and that they round-trip.

use std::fmt::Write;

use super::*;
use crate::settings::profile::{parse, to_toml};

fn parsed(text: &str) -> Sweep {
    let profile = parse(text, "sweep.toml").unwrap();
    let again = parse(&to_toml(&profile), "again.toml");
    assert_eq!(again, Ok(profile.clone()), "{}", to_toml(&profile));
    profile.sweep.unwrap()
}

#[test]
fn a_profile_without_steps_has_none() {
    assert_eq!(parse("[scan]\ndepth = 4", "x.toml").unwrap().sweep, None);
}

#[test]
fn steps_turn_knobs_like_a_profile_and_may_have_their_own_times() {
    let sweep = parsed(
        "[sweep]\nfor = \"10s\"\nwarmup = \"500ms\"\nrepeat = 3\nseed = 7\n\n\
         [[step]]\nlabel = \"sync\"\nio.interface = \"sync\"\n[step.scan]\ndepth = 4\n\n\
         [[step]]\nfor = \"1m\"\nrepeat = 5\nwarmup = \"0s\"\nwal = { sync = \"none\" }\n",
    );
    assert_eq!((sweep.time, sweep.warmup), (Duration::from_secs(10), Duration::from_millis(500)));
    assert_eq!((sweep.repeat, sweep.seed, sweep.order), (3, 7, Order::Shuffled));
    let [first, second] = &sweep.steps[..] else { panic!("{sweep:?}") };
    let turns = [("io.interface", Value::Choice("sync")), ("scan.depth", Value::Int(4))];
    assert_eq!((&*first.label, &first.turns[..], first.time), ("sync", &turns[..], None));
    assert_eq!((&*second.label, second.repeat), ("wal.sync=none", Some(5)));
    assert_eq!((second.time, second.warmup), (Some(Duration::from_mins(1)), Some(Duration::ZERO)));
}

#[test]
fn a_product_takes_paths_in_quotes_or_not_and_keeps_their_order() {
    let sweep = parsed(
        "[sweep]\norder = \"as-written\"\nidle = \"2s\"\ncool_to = 45\ncool_within = \"3m\"\nrebuild = true\n\
         [sweep.product]\n\"wal.sync\" = [\"none\", \"dsync\"]\nio.page_size = [\"4KiB\", \"16KiB\"]\n\
         [[step]]\nlabel = \"a\"\n[[step]]\nlabel = \"b\"\nscan.enabled = false",
    );
    let knobs: Vec<_> = sweep.product.iter().map(|axis| axis.knob).collect();
    assert_eq!((knobs, sweep.count(), sweep.order), (vec!["wal.sync", "io.page_size"], 8, Order::AsWritten));
    let between = &sweep.between;
    assert_eq!((between.idle, between.cool_to_c), (Duration::from_secs(2), Some(45.0)));
    assert_eq!((between.cool_within, between.rebuild), (Duration::from_mins(3), true));
    assert_eq!(parsed("sweep.product.scan.depth = [1, 2]").count(), 2);
}

#[test]
fn steps_do_not_change_the_settings_before_them() {
    let with = parse("[scan]\ndepth = 4\n[[step]]\nscan.depth = 9", "x.toml").unwrap();
    let without = parse("[scan]\ndepth = 4", "x.toml").unwrap();
    assert_eq!(with.settings, without.settings);
}

#[test]
fn mistakes_are_reported_with_position_and_suggestion() {
    let mut texts = String::new();
    for wrong in [
        "sweep = 3",
        "[sweep]",
        "[sweep]\nfor = \"10s\"\n[sweep.product]",
        "[sweep]\nfor = \"0s\"",
        "[sweep]\nfor = 30",
        "[sweep]\nwarm_up = \"3s\"",
        "[sweep]\ncolour = \"red\"",
        "[sweep]\nrepeat = 0\n[[step]]",
        "[sweep]\nrepeat = 2.5\n[[step]]",
        "[sweep]\nseed = -1\n[[step]]",
        "[sweep]\norder = \"random\"\n[[step]]",
        "[sweep]\ncool_to = \"cold\"\n[[step]]",
        "[sweep]\ncool_to = 400\n[[step]]",
        "[sweep]\ncool_to = nan\n[[step]]",
        "[sweep]\nrebuild = \"yes\"\n[[step]]",
        "[sweep]\nproduct = [\"scan.depth\"]",
        "[sweep.product]\n\"scan.dept\" = [1]",
        "[sweep.product]\nscan = [1]",
        "[sweep.product]\n\"scan.depth\" = 4",
        "[sweep.product]\n\"scan.depth\" = []",
        "[sweep.product]\n\"scan.depth\" = [1, \"many\"]",
        "[sweep.product]\n\"scan.depth\" = [1, 2, 1]",
        "[sweep.product]\n\"scan.depth\" = [1]\nscan.depth = [2]",
        "[sweep.product]\n\"scan.depth\" = [1]\n[[step]]\nscan.depth = 2",
        "step = 3",
        "step = [3]",
        "[step]\nscan.depth = 2",
        "[[step]]\nscan.dept = 2",
        "[[step]]\nlable = \"x\"",
        "[[step]]\nname = \"x\"",
        "[[step]]\nlabel = \"\"",
        "[[step]]\nlabel = 3",
        "[[step]]\nlabel = \"x\"\n[[step]]\nlabel = \"x\"",
        "[[step]]\n[[step]]",
        "[[step]]\nfor = \"soon\"",
        "[[step]]\nio.interface = \"iouring\"",
        "[[stepp]]\nlabel = \"x\"",
        "label = \"x\"",
    ] {
        let _ = writeln!(texts, "{}", parse(wrong, "sweep.toml").unwrap_err().what);
    }
    let values: Vec<_> = (0..64).map(|n| (n + 1).to_string()).collect();
    let many = values.join(", ");
    let too_many = format!("[sweep.product]\nscan.depth = [{many}]\npoint.depth = [{many}]");
    let _ = writeln!(texts, "{}", parse(&too_many, "sweep.toml").unwrap_err().what);
    insta::assert_snapshot!(texts);
}
