//! `--set KNOB=VALUE`.

use crate::error::{Error, Result};
use crate::printable::line;
use crate::settings::Settings;
use crate::settings::knobs::{self, Value};
use crate::short_list;

/// The prefix of a program's own knobs.
const OF_PROGRAM: &str = "command.";

/// Turns the knobs that `--set` gives. Nothing is turned if any of them is wrong.
///
/// # Errors
/// Of the kind `Input`, naming the knob, what it accepts, and the nearest right name.
pub fn apply_sets(settings: &mut Settings, sets: &[String]) -> Result<()> {
    let (of_program, sets): (Vec<&String>, Vec<&String>) =
        sets.iter().partition(|set| set.trim_start().starts_with(OF_PROGRAM));
    let mut values: Vec<(usize, Value)> = sets.iter().map(|set| parse_set(set)).collect::<Result<_>>()?;
    let mut program = settings.program.clone();
    for set in of_program {
        let wrong = |why: String| Error::input(format!("--set {}: {why}", line(set)));
        let Some((path, text)) = set.split_once('=') else {
            return Err(wrong(format!("write {OF_PROGRAM}NAME=VALUE")));
        };
        let Some(program) = &mut program else {
            return Err(wrong("the profile has no program whose knobs could be turned".to_owned()));
        };
        program.turn(path.trim().trim_start_matches(OF_PROGRAM), text).map_err(wrong)?;
    }
    settings.program = program;
    // In the table's order, as in a file; if a knob is given twice, the later value wins.
    short_list::sort_by_key(&mut values, |(index, _)| *index);
    for (index, value) in values {
        knobs::all()[index].set(settings, value);
    }
    Ok(())
}

/// The knob's index in the table and its value, from `KNOB=VALUE`.
pub fn parse_set(set: &str) -> Result<(usize, Value)> {
    let Some((path, text)) = set.split_once('=') else {
        return Err(Error::input(format!("--set {}: write KNOB=VALUE, such as scan.depth=64", line(set))));
    };
    let path = path.trim();
    let Some(index) = knobs::all().iter().position(|knob| knob.path == path) else {
        let meant = knobs::nearest(path).map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
        let error = Error::input(format!("--set {}: there is no `{}`{meant}", line(set), line(path)));
        return Err(error.hint("`stacktune knobs` lists them"));
    };
    let knob = &knobs::all()[index];
    let wrong = |_| {
        let refusal = knob.refusal(&format!("\"{}\"", line(text.trim())));
        Error::input(format!("--set {}: {refusal}", line(set)))
    };
    Ok((index, knob.parse(text).map_err(wrong)?))
}
