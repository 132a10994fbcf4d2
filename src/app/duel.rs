//! `record --duel`: two values of a knob in one run.

use std::path::Path;

use rand::RngExt as _;

use super::output::{print, print_json};
use crate::error::{Error, Result};
use crate::runs::duel::Spec;
use crate::runs::session::Duel;
use crate::settings::Settings;
use crate::settings::knobs;
use crate::ui::cli::{DuelArgs, parse_set};
use crate::ui::report;

/// The duel that the command line asks for, if it does; the settings then begin with its first value.
pub(super) fn asked(args: &DuelArgs, settings: &mut Settings) -> Result<Option<Duel>> {
    let Some(asked) = &args.duel else { return Ok(None) };
    let wrong = |what: &str| {
        let error = Error::input(format!("--duel {asked}: {what}"));
        error.hint("write a knob and two values, such as io.interface=libaio,io_uring")
    };
    let (path, texts) = asked.split_once('=').ok_or_else(|| wrong("there are no values"))?;
    let (one, other) = texts.split_once(',').ok_or_else(|| wrong("there is one value only"))?;
    let value = |text: &str| parse_set(&format!("{path}={text}"));
    let ((index, first), (_, second)) = (value(one)?, value(other)?);
    let spec = Spec {
        knob: knobs::all()[index].path.clone(),
        values: [first, second].map(|value| value.to_string()),
        figure: args.duel_figure,
        margin: f64::from(args.duel_margin) / 100.0,
        seed: args.duel_seed.unwrap_or_else(|| rand::rng().random_range(0..1 << 32)),
    };
    let named = |error: Error| Error { what: format!("--duel {asked}: {}", error.what), ..error };
    let duel = Duel::new(spec, settings).map_err(named)?;
    let (knob, first) = duel.first();
    knob.set(settings, first.clone());
    Ok(Some(duel))
}

/// Writes a duel down beside its recording, and prints it.
pub(super) fn finish(duel: &Duel, out: &Path, json: bool) -> Result<()> {
    let found = duel.report();
    found.write(out)?;
    if json { print_json(&found) } else { print(&report::duel(&found)) }
}
