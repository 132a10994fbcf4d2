//! The processor: cores, cycles a byte, and what an array of drives would need.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::{panel, put, span};
use crate::meter::window::{CpuFigures, CyclesSource};
use crate::tui::state::State;
use crate::tui::text::percent;
use crate::units::three_digits;

/// Drives of the array that the paper asks for, and what one of them reads (paper 001, section 4.3).
const ARRAY_DRIVES: u32 = 8;
/// GB/s of each.
const ARRAY_GB_PER_S: f64 = 3.0;
const NAME_CELLS: u16 = 9;

/// Draws it.
pub fn render(state: &State, buf: &mut Buffer, area: Rect) {
    let figures = state.figures();
    let (cpu, cycles_per_byte, duration_s) = match (&figures.window, &figures.totals) {
        (_, Some(totals)) if state.cumulative => {
            (&totals.cpu, totals.total.cycles_per_byte, totals.duration_s)
        }
        (Some(window), _) if !state.cumulative => {
            (&window.cpu, window.total.cycles_per_byte, window.duration_ns as f64 / 1e9)
        }
        _ => {
            panel(state, buf, area, "cpu", "", false);
            return;
        }
    };
    let remark = if cpu.coarse { "whole system, coarse: the window is short" } else { "whole system" };
    let inner = panel(state, buf, area, "cpu", remark, false);
    let hz = frequency_hz(cpu, duration_s);
    let theme = &state.theme;
    if cpu.cpus == 0 {
        // A simulated run has a clock of its own, and no processor.
        put(buf, inner.x, inner.y, inner.width, &Line::from(span("not measured", theme.dim)));
        return;
    }
    let used = cpu.busy * f64::from(cpu.cpus);
    let free = f64::from(cpu.cpus) - used;
    let cells = usize::from(inner.width.saturating_sub(NAME_CELLS));
    let rows: [(&str, Vec<Span>); 7] = [
        (
            "cores",
            vec![
                span(three_digits(used), theme.strong),
                span(format!(" used, {} left of {}", three_digits(free), cpu.cpus), theme.plain),
            ],
        ),
        (
            "",
            vec![
                span(gauge(cpu.busy, cells.min(28)), theme.accent),
                span(format!(" {}", percent(cpu.busy)), theme.plain),
            ],
        ),
        ("shares", vec![span(shares(cpu), if cpu.steal >= 0.01 { theme.warn } else { theme.plain })]),
        ("cycles", cycles(state, cpu, cycles_per_byte)),
        ("", vec![span(source(cpu, hz), theme.dim)]),
        ("needs", vec![span(needs(cpu, cycles_per_byte, hz), theme.plain)]),
        (
            "own",
            vec![span(
                format!(
                    "{} cores (screen and meters: {})",
                    three_digits(cpu.own_cores),
                    three_digits(cpu.overhead_cores)
                ),
                theme.plain,
            )],
        ),
    ];
    for (y, (name, spans)) in (inner.y..inner.bottom()).zip(rows) {
        put(buf, inner.x, y, NAME_CELLS, &Line::from(span(name, theme.dim)));
        put(buf, inner.x + NAME_CELLS, y, inner.width.saturating_sub(NAME_CELLS), &Line::from(spans));
    }
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

/// `≈` where it is an estimate: of that no sign may be lost.
fn about(cpu: &CpuFigures) -> &'static str {
    if cpu.cycles_source == CyclesSource::Estimate { "≈ " } else { "" }
}

fn cycles(state: &State, cpu: &CpuFigures, cycles_per_byte: Option<f64>) -> Vec<Span<'static>> {
    match cycles_per_byte {
        Some(cycles) => vec![
            span(format!("{}{}", about(cpu), three_digits(cycles)), state.theme.strong),
            span(" per byte of the classes", state.theme.plain),
        ],
        None => vec![span("– per byte: nothing moved, or cycles not known", state.theme.dim)],
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

/// The frequency told; of counted cycles the mean over busy time.
fn frequency_hz(cpu: &CpuFigures, duration_s: f64) -> Option<f64> {
    let busy_s = cpu.busy * f64::from(cpu.cpus) * duration_s;
    let counted = (cpu.cycles_source == CyclesSource::Pmu && busy_s > 0.0).then(|| cpu.cycles / busy_s);
    cpu.frequency_hz.or(counted).filter(|hz| *hz > 0.0)
}

/// The cores that an array needs at these cycles a byte, in words.
fn needs(cpu: &CpuFigures, cycles_per_byte: Option<f64>, hz: Option<f64>) -> String {
    let (Some(cycles), Some(hz)) = (cycles_per_byte, hz) else {
        return "– (cycles or frequency not known)".into();
    };
    let cores = f64::from(ARRAY_DRIVES) * ARRAY_GB_PER_S * 1e9 * cycles / hz;
    format!("{}{} cores for {ARRAY_DRIVES} drives at {ARRAY_GB_PER_S} GB/s", about(cpu), three_digits(cores))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_cycles_a_byte_need_what_the_paper_says() {
        let cpu = CpuFigures { frequency_hz: Some(2.8e9), ..CpuFigures::default() };
        // 8 × 3 GB/s × 10 cycles ÷ 2.8 GHz
        assert_eq!(needs(&cpu, Some(10.0), frequency_hz(&cpu, 1.0)), "≈ 85.7 cores for 8 drives at 3 GB/s");
    }

    #[test]
    fn counted_cycles_tell_their_own_frequency() {
        let cpu = CpuFigures {
            cpus: 2,
            busy: 0.5,
            cycles: 3e9,
            cycles_source: CyclesSource::Pmu,
            ..CpuFigures::default()
        };
        assert_eq!(frequency_hz(&cpu, 1.0), Some(3e9));
        let idle = CpuFigures { busy: 0.0, ..cpu };
        assert_eq!(frequency_hz(&idle, 1.0), None);
        assert!(!needs(&idle, Some(1.0), None).contains("NaN"));
    }
}
