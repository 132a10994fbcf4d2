//! `stacktune run --duel`: two values of a knob, turned while the program runs, or with a new start for each block.

use std::sync::Arc;
use std::time::Duration;

use super::steps::Programs;
use crate::app::duel::{Asked, Builds, build_and_fight, knob_and_values, margin_and_seed, of_spec};
use crate::app::output::eprint_line;
use crate::app::signals::Interrupts;
use crate::app::trace;
use crate::error::{Error, Result};
use crate::host::{Facts, User};
use crate::printable;
use crate::runs::duel::{DuelSpec, Figure};
use crate::runs::record::Summary;
use crate::runs::session::{Duel, ProgramOptions, Sides};
use crate::settings::Settings;
use crate::settings::values::program::{MEMORY_MAX, filled};
use crate::ui::cli::{ProgramArgs, ProgramDuelArgs};

/// By how many seconds a run may end early and still count as complete.
const SLACK_S: f64 = 5.0;

/// The duel that the command line asks for, if any; the run's settings then begin with its first value.
///
/// # Errors
/// Input if the values can't be compared, or the program reports nothing to compare them by.
pub(super) fn asked(args: &ProgramDuelArgs, settings: &mut Settings) -> Result<Option<Asked>> {
    let Some(asked) = &args.duel else { return Ok(None) };
    let (knob, values) = values_of(asked, settings)?;
    let figure = figure(args.duel_figure.as_deref(), settings)?;
    let (margin, seed) = margin_and_seed(&args.rules);
    let spec = DuelSpec { knob, values, figure, margin, seed };
    let found = of_spec(spec, asked, settings)?;
    if let Asked::Builds(builds) = &found {
        refuse_setup(&builds.0, &builds.1)?;
    }
    Ok(Some(found))
}

/// Refuses values with different results of `setup`, if the program's folder stays from one block to the next.
fn refuse_setup(spec: &DuelSpec, sides: &Sides) -> Result<()> {
    let [one, other] = &sides.settings;
    let Some(name) = spec.knob.strip_prefix("command.") else { return Ok(()) };
    let setup = one.program.iter().flat_map(|program| &program.setup);
    if one.stack.is_built() || other.stack.is_built() || !setup.clone().any(|word| names(word, name)) {
        return Ok(());
    }
    let what = format!(
        "command.setup names {{{name}}}, and runs once: on files the program's folder stays for all blocks of a duel"
    );
    Err(Error::input(what).hint("let a stack be built for each: stack.filesystem = \"ext4\", or another"))
}

/// Whether a word has that placeholder.
fn names(word: &str, name: &str) -> bool {
    filled(word, |of| (of != name).then(String::new)).is_err()
}

/// Fights a duel that builds the storage, sets the program up and starts it for each block.
pub(super) fn on_builds(
    args: &ProgramArgs,
    asked: (DuelSpec, Sides),
    facts: &Arc<Facts>,
    user: Option<User>,
) -> Result<()> {
    let builds = Builds {
        run: &args.run,
        out: args.out.as_deref(),
        warmup: args.warmup,
        keep: args.keep,
        dry_run: args.dry_run,
        json: args.output.json,
        verifies: false,
    };
    trace::look(args.trace && !args.dry_run)?;
    let options =
        ProgramOptions { user, time: Duration::ZERO, is_open_ended: false, stop_if: args.stop_if.clone() };
    let around = Box::new(Programs::new(options, args.trace));
    build_and_fight(&builds, asked, facts, &Interrupts::watch()?, Some(around))
}

/// The path and the two values of `KNOB=A,B`, which may be a knob of the program's own.
fn values_of(asked: &str, settings: &Settings) -> Result<(String, [String; 2])> {
    let parts = asked.split_once('=').and_then(|(path, values)| {
        let name = path.trim().strip_prefix("command.")?;
        Some((name, values.split_once(',')?))
    });
    let Some((name, (one, other))) = parts else { return knob_and_values(asked) };
    let wrong = |why: String| Error::input(format!("--duel {}: {why}", printable::line(asked)));
    if name == MEMORY_MAX {
        let why = "all blocks of a duel have the same memory limit".to_owned();
        return Err(wrong(why).hint("let a sweep repeat both: [sweep.product] command.memory_max = […]"));
    }
    let program = settings.program.clone().unwrap_or_default();
    for value in [one, other] {
        program.clone().turn(name, value).map_err(wrong)?;
    }
    Ok((format!("command.{name}"), [one, other].map(|value| value.trim().to_owned())))
}

/// The figure of that name, or the one that is most likely meant.
fn figure(asked: Option<&str>, settings: &Settings) -> Result<Figure> {
    let deciding = Figure::deciding(settings);
    let Some(first) = deciding.first() else {
        let what = "no figure that the program reports can decide a duel: none says which way is better";
        return Err(
            Error::input(what).hint("add `better = \"higher\"`, or \"lower\", to one of [command.metrics]")
        );
    };
    let Some(name) = asked else { return Ok(first.clone()) };
    deciding.iter().find(|figure| figure.name() == name).cloned().ok_or_else(|| {
        let names: Vec<_> = deciding.iter().map(Figure::name).collect();
        let name = printable::line(name);
        Error::input(format!("--duel-figure {name}: it is one of {}, which have `better`", names.join(", ")))
    })
}

/// Says that a duel was not decided because the program ended before; `s` is how many seconds it was to run.
pub(super) fn report_early(duel: &Duel, summary: &Summary, s: f64) {
    let ended_well = !summary.interrupted && summary.failure.is_none();
    if ended_well && !duel.course().is_over() && summary.warmup_s + summary.duration_s + SLACK_S < s {
        eprint_line(
            "stacktune: the program ended before the duel was decided: let it run for `{seconds}`, or repeat its work until then",
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::profile::parse;

    const PROGRAM: &str = r#"
[command]
run = ["bench"]
[command.metrics]
lat = { line = 'lat ([0-9]+)', better = "lower" }
tps = { line = 'tps ([0-9]+)', better = "higher" }
load = { line = 'load ([0-9]+)' }
[[command.knob]]
name = "sync"
values = ["on", "off"]
turn = ["set", "{value}"]
"#;

    fn of(text: &str, duel: &str, figure: Option<&str>) -> Result<Settings> {
        let mut settings = parse(text, "p.toml")?.settings;
        let args = ProgramDuelArgs {
            duel: Some(duel.to_owned()),
            duel_figure: figure.map(str::to_owned),
            ..ProgramDuelArgs::default()
        };
        let Some(Asked::InRun(duel)) = asked(&args, &mut settings)? else { panic!("{duel} builds") };
        assert_eq!(duel.report().figure.name(), figure.unwrap_or("tps"));
        Ok(settings)
    }

    #[test]
    fn the_run_begins_with_the_first_value_and_a_rate_decides() {
        let settings = of(PROGRAM, "command.sync= off ,on", None).unwrap();
        assert_eq!(settings.program.unwrap().value_of("sync"), Some("off"));
        of(PROGRAM, "command.sync=off,on", Some("lat")).unwrap();
    }

    #[test]
    fn what_can_not_be_asked_for_is_refused_by_its_name() {
        for (duel, figure, why) in [
            ("command.sync=on", None, "there is one value only"),
            ("command.sync=on,maybe", None, "`command.sync` is one of on, off, not \"maybe\""),
            ("command.sink=on,off", None, "there is no `command.sink`"),
            ("command.sync=on,on", None, "both values are the same"),
            ("command.memory_max=1GB,2GB", None, "all blocks of a duel have the same memory limit"),
            ("scan.depth=1,2", None, "no effect where a program is the load"),
            ("command.sync=on,off", Some("load"), "it is one of tps, lat, which have `better`"),
        ] {
            let error = of(PROGRAM, duel, figure).unwrap_err();
            assert!(error.what.contains("--duel") && error.what.contains(why), "{why}: {}", error.what);
        }
        let silent = PROGRAM.replace(", better = \"lower\"", "").replace(", better = \"higher\"", "");
        let error = of(&silent, "command.sync=on,off", None).unwrap_err();
        assert!(
            error.what.contains("no figure that the program reports can decide a duel"),
            "{}",
            error.what
        );
    }
}
