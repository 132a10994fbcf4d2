//! The processor: cores, cycles per byte, and what an array of drives would need.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::frame::{panel, put, span};
use crate::meter::window::{CpuFigures, CyclesSource, TotalFigures};
use crate::settings::Run;
use crate::ui::report::sentences;
use crate::ui::text::{fit, percent};
use crate::ui::tui::state::State;
use crate::units::three_digits;

const NAME_CELLS: u16 = 9;

/// Draws the panel.
pub fn render(state: &State, buf: &mut Buffer, area: Rect) {
    let figures = state.figures();
    let (cpu, classes, total, duration_s) = match (&figures.window, &figures.totals) {
        (_, Some(totals)) if state.cumulative => {
            (&totals.cpu, &totals.classes, &totals.total, totals.duration_s)
        }
        (Some(window), _) if !state.cumulative => {
            (&window.cpu, &window.classes, &window.total, window.duration_ns as f64 / 1e9)
        }
        _ => {
            panel(state, buf, area, "cpu", "", false);
            return;
        }
    };
    let remark = if cpu.coarse { "whole system, coarse: the window is short" } else { "whole system" };
    let inner = panel(state, buf, area, "cpu", remark, false);
    let hz = cpu.busy_frequency_hz(duration_s);
    let theme = &state.theme;
    if cpu.cpus == 0 {
        // A simulated run has its own clock, and no processor.
        put(buf, inner.x, inner.y, inner.width, &Line::from(span("not measured", theme.dim)));
        return;
    }
    let cores = sentences::cores(cpu);
    let (used, rest) = cores.split_at(cores.find(' ').unwrap_or(cores.len()));
    let needs = state.settings_asked().map(|settings| needs(cpu, total, duration_s, &settings.run));
    let cells = usize::from(inner.width.saturating_sub(NAME_CELLS));
    let polls = sentences::polls(classes, duration_s);
    let polls = polls.map(|text| ("polls", vec![span(text, theme.plain)]));
    let rows: [(&str, Vec<Span>); 7] = [
        ("cores", vec![span(used.to_owned(), theme.strong), span(rest.to_owned(), theme.plain)]),
        (
            "",
            vec![
                span(gauge(cpu.busy, cells.saturating_sub(5).min(28)), theme.accent),
                span(format!(" {}", percent(cpu.busy)), theme.plain),
            ],
        ),
        ("shares", vec![span(shares(cpu), if cpu.steal >= 0.01 { theme.warn } else { theme.plain })]),
        ("cycles", cycles(state, cpu, total)),
        ("", vec![span(source(cpu, hz), theme.dim)]),
        ("needs", vec![span(needs.unwrap_or_default(), theme.plain)]),
        ("own", own(state, cpu)),
    ];
    for (y, (name, spans)) in (inner.y..inner.bottom()).zip(rows.into_iter().chain(polls)) {
        put(buf, inner.x, y, NAME_CELLS, &Line::from(span(name, theme.dim)));
        put(
            buf,
            inner.x + NAME_CELLS,
            y,
            inner.width.saturating_sub(NAME_CELLS),
            &Line::from(fitted(spans, cells)),
        );
    }
}

/// The spans, cut after a word, with `…` where something is missing: half a figure would be another figure.
fn fitted(spans: Vec<Span<'static>>, cells: usize) -> Vec<Span<'static>> {
    if spans.iter().map(Span::width).sum::<usize>() <= cells {
        return spans;
    }
    let mut room = cells.saturating_sub(1);
    let mut out = Vec::new();
    for part in spans {
        if part.width() <= room {
            room -= part.width();
            out.push(part);
            continue;
        }
        let cut = fit(&part.content, room + 1);
        let mut kept = cut.trim_end_matches('…');
        if !part.content[kept.len()..].starts_with([' ', ',']) {
            kept = kept.rfind(' ').map_or("", |end| &kept[..end]);
        }
        out.push(span(format!("{}…", kept.trim_end_matches([' ', ',', '('])), part.style));
        break;
    }
    out
}

fn gauge(share: f64, cells: usize) -> String {
    let full = (share.clamp(0.0, 1.0) * cells as f64).round() as usize;
    "█".repeat(full) + &"░".repeat(cells - full)
}

fn shares(cpu: &CpuFigures) -> String {
    format!(
        "user {} sys {} irq {} steal {}",
        percent(cpu.user),
        percent(cpu.system),
        percent(cpu.interrupt),
        percent(cpu.steal)
    )
}

/// What this program used, and what others did.
fn own(state: &State, cpu: &CpuFigures) -> Vec<Span<'static>> {
    let theme = &state.theme;
    let (own, overhead) = (three_digits(cpu.own_cores), three_digits(cpu.overhead_cores));
    let Some(others) = cpu.others_cores else {
        return vec![span(format!("{own} cores (screen and meters: {overhead})"), theme.plain)];
    };
    let style = if cpu.others_that_matter().is_some() { theme.warn } else { theme.plain };
    vec![
        span(format!("{own} (screen {overhead}), "), theme.plain),
        span(format!("others {}", three_digits(others)), style),
    ]
}

fn cycles(state: &State, cpu: &CpuFigures, total: &TotalFigures) -> Vec<Span<'static>> {
    let about = sentences::about(cpu.cycles_source);
    let own = total.attributable_cycles_per_byte;
    let own = own.map(|cycles| format!("/byte, {about}{} without others", three_digits(cycles)));
    match total.cycles_per_byte {
        Some(cycles) => vec![
            span(format!("{about}{}", three_digits(cycles)), state.theme.strong),
            span(own.unwrap_or_else(|| " per byte of the classes".into()), state.theme.plain),
        ],
        None if state.is_of_program() => vec![span("– per byte: a program is the load", state.theme.dim)],
        None => vec![span("– per byte: nothing moved, or cycles unknown", state.theme.dim)],
    }
}

/// Where the cycles come from, and the frequency.
fn source(cpu: &CpuFigures, hz: Option<f64>) -> String {
    let ghz = hz.map_or_else(String::new, |hz| format!(" {} GHz", three_digits(hz / 1e9)));
    match (cpu.cycles_source, &cpu.frequency_source) {
        (CyclesSource::Pmu, _) => format!("counted by the PMU, mean{ghz}"),
        (CyclesSource::Estimate, Some(source)) => format!("busy time ×{ghz} ({source})"),
        (CyclesSource::Estimate, None) => format!("busy time ×{ghz}"),
    }
}

/// The cores that the array needs at these cycles per byte, or why that is unknown.
fn needs(cpu: &CpuFigures, total: &TotalFigures, duration_s: f64, array: &Run) -> String {
    let own = total.attributable_cycles_per_byte.or(total.cycles_per_byte);
    match sentences::cores_needed(cpu, own, duration_s, array) {
        Some(needed) => needed,
        None if array.drive_rate_bytes_per_s.is_none() => "– (run.drive_rate is none)".into(),
        None => "– (cycles or frequency unknown)".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_cut_behind_a_word() {
        let cut = |cells: usize| {
            let spans =
                ["2.00", " used, 0.05 idle of 2"].map(|text| span(text, ratatui::style::Style::new()));
            fitted(spans.to_vec(), cells).iter().map(|part| part.content.as_ref()).collect::<String>()
        };
        assert_eq!(cut(25), "2.00 used, 0.05 idle of 2");
        assert_eq!(cut(16), "2.00 used, 0.05…");
        assert_eq!(cut(14), "2.00 used…");
        assert_eq!(cut(11), "2.00 used…");
        assert_eq!((cut(10), cut(9), cut(5)), ("2.00 used…".into(), "2.00…".into(), "2.00…".into()));
    }
}
