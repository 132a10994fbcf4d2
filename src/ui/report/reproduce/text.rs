//! A reproduction as text of at most 80 columns.

use std::fmt::Write;

use super::shown::{ClaimShown, Figures, OverTime, Reproduction, RowShown, Share};
use crate::meter::spread::Spread;
use crate::runs::paper::{
    Change, Changes, Curve, Experiment, Figure, Published, REPEATS_MIN, Ruling, Says, Series, Setup, Shape,
};
use crate::ui::report::cells::{NONE, WIDTH, left, paragraph, right};
use crate::ui::report::chart::{self, Bar, Point};
use crate::units::{approx_span, three_digits};

/// Width of an experiment's name in the list.
const NAME_WIDTH: usize = 18;
const LABEL_WIDTH: usize = 14;
const COLUMN_WIDTH: usize = 11;
/// Formats a figure's spread.
type TextOf = dyn Fn(&Spread) -> f64;

/// What can be reproduced.
pub fn list(experiments: &[Experiment]) -> String {
    let mut out = String::new();
    for experiment in experiments {
        let text = paragraph(&format!("{}: {}", experiment.source, experiment.about), WIDTH - NAME_WIDTH, "");
        let lines = text.replace('\n', &format!("\n{}", " ".repeat(NAME_WIDTH)));
        let _ = writeln!(out, "{}{lines}", left(experiment.name, NAME_WIDTH));
    }
    out
}

/// The whole report.
pub fn reproduction(shown: &Reproduction) -> String {
    let mut out = format!("{}\n", paragraph(&format!("{}: {}", shown.source, shown.about), WIDTH, "  "));
    out += &setup(shown);
    out += &table(shown);
    out += &shares(&shown.shares);
    if let Shape::Curves(curves) = shown.shape {
        curves.iter().for_each(|curve| out += &curve_text(curve, shown));
    }
    if let Some(over_time) = &shown.over_time {
        out += &over_time_text(over_time);
    }
    out += &claims(shown);
    out
}

fn add(out: &mut String, text: &str) {
    let _ = writeln!(out, "{}", paragraph(text, WIDTH, "    "));
}

/// A reason that has a list below it, as one sentence.
fn one_line(text: &str) -> String {
    text.replace(":\n", ": ").replace('\n', ";")
}

fn setup(shown: &Reproduction) -> String {
    let mut out = String::new();
    add(&mut out, &format!("paper: {}", shown.paper_setup));
    if let Some(here) = &shown.here {
        add(&mut out, &format!("here:  {here}"));
    }
    for other in &shown.beside {
        add(&mut out, &format!("{}:     {}, {}", other.letter, other.name, other.host));
    }
    if !shown.deviations.is_empty() {
        out += "\nDeviations from the paper\n";
        shown.deviations.iter().for_each(|text| add(&mut out, &format!("  - {text}")));
    }
    if !shown.assumptions.is_empty() || !shown.remarks.is_empty() {
        out += "\nNotes on the paper\n";
        let all = shown.assumptions.iter().chain(shown.remarks);
        all.for_each(|text| add(&mut out, &format!("  - {text}")));
    }
    out
}

fn line(label: &str, cells: impl Iterator<Item = String>) -> String {
    let cells: String = cells.map(|cell| right(&cell, COLUMN_WIDTH)).collect();
    format!("{}\n", format!("{}{cells}", left(label, LABEL_WIDTH)).trim_end())
}

fn table(shown: &Reproduction) -> String {
    let columns = shown.columns;
    let mut out = String::from("\n");
    for at in 0..2 {
        out += &line("", columns.iter().map(|column| column.heading()[at].to_owned()));
    }
    for row in &shown.rows {
        let _ = writeln!(out, "{}", paragraph(&format!("{}  {}", row.label, row.words), WIDTH, "    "));
        out += &row_text(row, shown);
    }
    for other in &shown.beside {
        for (label, figures) in &other.own_rows {
            let _ = writeln!(out, "{}", paragraph(&format!("{}: {label}", other.letter), WIDTH, "    "));
            out += &spread_lines("median", figures, columns, other.cycles_estimated);
        }
    }
    out += "\nhere: median of the repeats; from, to: smallest and largest\n";
    out
}

fn row_text(row: &RowShown, shown: &Reproduction) -> String {
    let columns = shown.columns;
    let mut out = String::new();
    let published = |column: &Figure| row.published.iter().find(|number| number.figure == *column);
    if columns.iter().any(|column| published(column).is_some()) {
        let text = |column| published(column).map_or_else(|| NONE.into(), Published::text);
        out += &line("  paper", columns.iter().map(text));
    }
    if !row.here.is_empty() {
        out += &spread_lines("here", &row.here, columns, row.cycles_estimated);
    }
    for (other, figures) in shown.beside.iter().zip(&row.beside) {
        if !figures.is_empty() {
            out += &line(&format!("  {}", other.letter), medians(figures, columns, other.cycles_estimated));
        }
    }
    for number in row.published.iter().filter(|number| !columns.contains(&number.figure)) {
        let here = row.here.get(number.figure.key());
        let here = here.map_or_else(|| NONE.into(), |spread| three_digits(spread.median));
        let text = format!("  {}: paper {}, here {here}", number.figure.name(), number.text());
        let _ = writeln!(out, "{text}");
    }
    if let Some(why) = &row.reason {
        let what = if row.runs == 0 { "not here" } else { "not all runs" };
        add(&mut out, &format!("  {what}: {}", one_line(why)));
    }
    if !row.flags.is_empty() {
        add(&mut out, &format!("  ! {}", row.flags.join("; ")));
    }
    out
}

fn spread_lines(label: &str, figures: &Figures, columns: &[Figure], estimated: bool) -> String {
    let mut out = line(&format!("  {label}"), medians(figures, columns, estimated));
    if figures.values().any(|spread| spread.runs > 1) {
        let ends: [(&str, &TextOf); 2] = [("from", &|spread| spread.low), ("to", &|spread| spread.high)];
        for (label, end) in ends {
            let text = |column: &Figure| {
                figures.get(column.key()).map_or_else(String::new, |s| three_digits(end(s)))
            };
            out += &line(&format!("    {label}"), columns.iter().map(text));
        }
    }
    out
}

fn medians(figures: &Figures, columns: &[Figure], estimated: bool) -> impl Iterator<Item = String> {
    columns.iter().map(move |column| match figures.get(column.key()) {
        Some(spread) => {
            let sign = if estimated && column.is_cycles() { "≈" } else { "" };
            format!("{sign}{}", three_digits(spread.median))
        }
        None => NONE.into(),
    })
}

fn shares(shares: &[Share]) -> String {
    if shares.is_empty() {
        return String::new();
    }
    let mut out = format!(
        "\n% of solo\n{}",
        line("", ["alone", "mixed", "% of solo", ""].map(String::from).into_iter())
    );
    for share in shares {
        let mb_per_s =
            |spread: Option<Spread>| spread.map_or_else(|| NONE.into(), |s| three_digits(s.median));
        let percent = share.share.map_or_else(|| NONE.into(), |share| format!("{:.1}%", share * 100.0));
        let cells = [mb_per_s(share.alone), mb_per_s(share.mixed), percent];
        let range = share
            .range
            .map_or_else(String::new, |(low, high)| format!("  [{:.1}–{:.1}%]", low * 100.0, high * 100.0));
        let text = line(&format!("  {}", share.class), cells.into_iter());
        let _ = writeln!(out, "{}{range}", text.trim_end());
    }
    out += "MB/s; in brackets the smallest and the largest share between any two repeats\n";
    out
}

/// The number at the start of a label.
fn number(label: &str) -> Option<(f64, &str)> {
    let end = label.find(|c: char| !c.is_ascii_digit()).unwrap_or(label.len());
    Some((label[..end].parse().ok()?, &label[end..]))
}

fn curve_text(curve: &Curve, shown: &Reproduction) -> String {
    let of_curve = shown.rows.iter().filter_map(|row| {
        let (_, after) = number(&row.label)?;
        (after == curve.after_number).then_some(row)
    });
    let of_curve = of_curve.filter_map(|row| Some((number(&row.label)?.0, row)));
    if let Some(x) = curve.x {
        return plane_text(curve, x, of_curve, shown);
    }
    let bar = |label: String, figures: &Figures| {
        let value = figures.get(curve.y.key()).map(|spread| spread.median);
        Bar { label, value, text: value.map_or_else(String::new, three_digits) }
    };
    let mut bars = Vec::new();
    for (x, row) in of_curve {
        bars.push(bar(x.to_string(), &row.here));
        bars.extend(others(row, shown).map(|(letter, figures)| bar(letter.to_owned(), figures)));
    }
    if bars.iter().all(|bar| bar.value.is_none()) {
        return String::new();
    }
    format!("\n{}", chart::bars(&format!("{} (by {})", curve.title, curve.x_name), &bars))
}

/// The others' figures of a row, each with its recording's letter.
fn others<'a>(row: &'a RowShown, shown: &'a Reproduction) -> impl Iterator<Item = (&'a str, &'a Figures)> {
    let letters = shown.beside.iter().map(|other| other.letter.as_str());
    letters.zip(&row.beside).filter(|(_, figures)| !figures.is_empty())
}

/// One figure plotted over another.
fn plane_text<'a>(
    curve: &Curve,
    x: Figure,
    rows: impl Iterator<Item = (f64, &'a RowShown)>,
    shown: &Reproduction,
) -> String {
    let median = |figures: &Figures, figure: Figure| Some(figures.get(figure.key())?.median);
    let point = |label: String, figures: &Figures| {
        Some(Point { x: median(figures, x)?, y: median(figures, curve.y)?, label })
    };
    let mut points = Vec::new();
    for (label, row) in rows {
        points.extend(point(label.to_string(), &row.here));
        points.extend(others(row, shown).filter_map(|(letter, of)| point(format!("{letter}{label}"), of)));
    }
    if points.is_empty() {
        return String::new();
    }
    let title = format!("{}; next to each point its {}", curve.title, curve.x_name);
    format!("\n{}", chart::plane(&title, &x.name(), &points, &three_digits))
}

fn over_time_text(over_time: &OverTime) -> String {
    let mut out = String::new();
    for (number, series) in over_time.series.iter().enumerate() {
        out += &series_text("", series);
        for other in &over_time.beside {
            out += &series_text(&format!("{}: ", other.letter), &other.series[number]);
        }
    }
    out += "\nChanges\n";
    out += &changes_text("  ", &over_time.changes, &over_time.series);
    if !over_time.changes.too_short {
        out += &what_it_may_be(over_time);
    }
    for other in &over_time.beside {
        out += &changes_text(&format!("  {}: ", other.letter), &other.changes, &other.series);
    }
    out
}

fn series_text(whose: &str, series: &Series) -> String {
    let at = |bin: usize| bin as f64 * series.bin_s;
    let points = series.values.iter().enumerate().filter_map(|(bin, value)| Some((at(bin), (*value)?)));
    let points: Vec<_> = points.collect();
    if points.is_empty() {
        return String::new();
    }
    let title = format!("{whose}{}", series.figure.name());
    format!("\n{}", chart::over_time(&title, &points, &three_digits))
}

fn changes_text(begins: &str, changes: &Changes, series: &[Series]) -> String {
    let mut out = String::new();
    let written =
        format!("{} written in {}", gigabytes(changes.written_bytes), approx_span(changes.duration_s));
    if changes.too_short {
        let what = "The run is too short to detect one: half a minute is needed";
        add(&mut out, &format!("{begins}{what} ({written})."));
        return out;
    }
    for change in &changes.found {
        add(&mut out, &format!("{begins}{}", change_text(change)));
    }
    let steps = |figure: Figure| changes.found.iter().any(|change| change.figure == figure);
    for series in series.iter().filter(|series| !steps(series.figure)) {
        add(&mut out, &format!("{begins}{}: no change seen within {written}", series.figure.name()));
    }
    out
}

fn gigabytes(bytes: u64) -> String {
    format!("{} GB", three_digits(bytes as f64 / 1e9))
}

fn change_text(change: &Change) -> String {
    let percent = format!("{:+.0}", (change.after / change.before - 1.0) * 100.0).replace('-', "−");
    format!(
        "{}: {} → {} ({percent}%) at {}, with {} written until then",
        change.figure.name(),
        three_digits(change.before),
        three_digits(change.after),
        approx_span(change.at_s),
        gigabytes(change.written_bytes)
    )
}

/// What may explain the scan's drops, on drives that were trimmed and filled before.
fn what_it_may_be(over_time: &OverTime) -> String {
    let mut out = String::new();
    let falls: Vec<_> = over_time
        .changes
        .found
        .iter()
        .filter(|change| change.figure == Figure::ScanMbPerS && change.after < change.before)
        .collect();
    let Some(drives) = over_time.drives else {
        if !falls.is_empty() {
            out += "  On files, emulated or simulated drives this says nothing of a drive's cache.\n";
        }
        return out;
    };
    if let Some(first) = falls.first() {
        let each = gigabytes(first.written_bytes / drives.max(1) as u64);
        let text = format!(
            "  If the first fall of the scan is an SLC cache that is full, it holds less than {}, {each} a drive.",
            gigabytes(first.written_bytes)
        );
        add(&mut out, &text);
    }
    if let Some(second) = falls.get(1) {
        let text = format!(
            "  If the next is garbage collection, it set in with {} written after the fill.",
            gigabytes(second.written_bytes)
        );
        add(&mut out, &text);
    }
    out
}

fn claims(shown: &Reproduction) -> String {
    if shown.claims.is_empty() {
        return String::new();
    }
    let mut out = String::from("\nClaims of the paper\n");
    for claim in &shown.claims {
        out += &claim_text(claim);
    }
    let count = |ruling| shown.claims.iter().filter(|claim| claim.here.ruling == ruling).count();
    let rulings = [Ruling::Holds, Ruling::Reversed, Ruling::Unclear, Ruling::NotJudged];
    // The last one only occurs for drives that are not real, and for what this program does not have.
    let counts = rulings.into_iter().filter(|ruling| *ruling != Ruling::NotJudged || count(*ruling) > 0);
    let counts =
        counts.map(|ruling| format!("{} {}", count(ruling), ruling.name())).collect::<Vec<_>>().join(", ");
    let _ = writeln!(
        out,
        "\n{counts}\n\
         factors are of medians, in brackets the smallest and the largest between any two\n\
         repeats; a claim holds where all of that is on the paper's side of 1 (`about`:\n\
         within a tenth of its factor), and is reversed where all of it is on the other\n\
         side; it takes {REPEATS_MIN} repeats of each row, and no flag that forbids a verdict"
    );
    out
}

fn claim_text(claim: &ClaimShown) -> String {
    let mut out = String::new();
    let setup = if matches!(claim.setup, Setup::Consumer | Setup::Sata) {
        String::new()
    } else {
        format!(" ({})", claim.setup.name())
    };
    add(&mut out, &format!("  {:<4} {}{setup}", claim.source, claim.words));
    let sides = if claim.above.1 == claim.below.1 {
        format!("{}, {} / {}", claim.above.1.name(), claim.above.0, claim.below.0)
    } else {
        format!(
            "{} of {} / {} of {}",
            claim.above.1.name(),
            claim.above.0,
            claim.below.1.name(),
            claim.below.0
        )
    };
    let paper = match (claim.paper, claim.says) {
        (Some(factor), Says::About) => format!("about {}", factor_text(factor)),
        (Some(factor), _) => factor_text(factor),
        (None, Says::More) => "more".into(),
        (None, Says::Less) => "less".into(),
        (None, Says::About) => "alike".into(),
    };
    let here = claim.here.factor.map_or_else(|| NONE.into(), factor_text);
    let range = claim
        .here
        .range
        .map_or_else(String::new, |(low, high)| format!(" [{}–{}]", factor_text(low), factor_text(high)));
    let why = match (claim.here.ruling, claim.here.why.as_deref()) {
        (_, None) => String::new(),
        (Ruling::NotJudged, Some(unreal)) => format!(" ({unreal})"),
        (_, Some(why)) => format!(", {why}"),
    };
    let text =
        format!("       {sides}: paper {paper}, here {here}{range}: {}{why}", claim.here.ruling.name());
    let _ = writeln!(out, "{}", paragraph(&one_line(&text), WIDTH, "         "));
    out
}

/// A factor with at least three digits, even a small one.
fn factor_text(factor: f64) -> String {
    if factor.abs() < 0.0995 { format!("{factor:.3}") } else { three_digits(factor) }
}
