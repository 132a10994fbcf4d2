//! What `record` prints while it runs: a line that is overwritten on a terminal, a line every ten seconds
//! elsewhere.

use std::fmt::Write as _;
use std::io::Write;
use std::time::{Duration, Instant};

use crate::class::Class;
use crate::meter::whole_run::totals::Totals;
use crate::meter::window::Window;
use crate::printable;
use crate::runs::session;
use crate::ui::text::NONE;
use crate::units::{approx_size, approx_span, three_digits};

const LINE_EACH: Duration = Duration::from_secs(10);
const BAR_WIDTH: usize = 16;
/// Narrower than 80, so that a terminal never wraps the line.
const WIDTH: usize = 79;

/// The progress of a recording.
pub struct Progress<W> {
    out: W,
    terminal: bool,
    all: Option<Duration>,
    /// The run's time at which the first window began.
    began_ns: Option<u64>,
    /// When the next plain line of the run is due, after its beginning.
    next_line: Duration,
    fill_line: Option<Instant>,
    /// The step shown last, and whether it was being undone.
    step: Option<(usize, bool)>,
    /// The longest window so far, and the rates of the last full one.
    window_ns: u64,
    rates: String,
    /// Whether the terminal shows a line that the next one overwrites.
    drawn: bool,
}

impl<W: Write> Progress<W> {
    /// Writes the progress of a run of `all`, warm-up included, to `out`; none means until it is ended.
    pub fn new(out: W, terminal: bool, all: Option<Duration>) -> Self {
        Self {
            out,
            terminal,
            all,
            began_ns: None,
            next_line: LINE_EACH,
            fill_line: None,
            step: None,
            window_ns: 0,
            rates: String::new(),
            drawn: false,
        }
    }

    /// Shows the progress of a fill.
    pub fn fill(&mut self, fill: &session::Progress) {
        self.fill_at(fill, Instant::now());
    }

    fn fill_at(&mut self, fill: &session::Progress, now: Instant) {
        let due = self.fill_line.is_none_or(|last| now.duration_since(last) >= LINE_EACH);
        if !self.terminal && !due {
            return;
        }
        self.fill_line = Some(now);
        let share = if fill.all_bytes == 0 { 1.0 } else { fill.done_bytes as f64 / fill.all_bytes as f64 };
        let left_bytes = fill.all_bytes.saturating_sub(fill.done_bytes);
        let left = match fill.rate_bytes_per_s {
            rate if rate > 0.0 => format!(", {} left", approx_span(left_bytes as f64 / rate)),
            _ => String::new(),
        };
        self.say(&format!(
            "{}{}: {} of {}, {} MB/s{left}",
            self.bar(share),
            fill.what,
            approx_size(fill.done_bytes),
            approx_size(fill.all_bytes),
            three_digits(fill.rate_bytes_per_s / 1e6),
        ));
    }

    /// Shows the progress of a step of building or tearing down.
    pub fn step(&mut self, advance: &session::Advance) {
        let now = Instant::now();
        let due = self.fill_line.is_none_or(|last| now.duration_since(last) >= LINE_EACH);
        let begins = self.step != Some((advance.step, advance.undoing));
        if !self.terminal && !due && !begins {
            return;
        }
        self.fill_line = Some(now);
        self.step = Some((advance.step, advance.undoing));
        let bytes = advance.bytes.map_or_else(String::new, |(done, all)| {
            let left = advance.left_s.map_or_else(String::new, |s| format!(", {} left", approx_span(s)));
            format!(": {} of {}{left}", approx_size(done), approx_size(all))
        });
        let doing = if advance.undoing { "undo " } else { "" };
        self.say(&format!("{doing}{}/{} {}{bytes}", advance.step + 1, advance.steps, advance.command));
    }

    /// Shows what else is being waited for; without a terminal, a line every ten seconds.
    pub fn waits(&mut self, what: &str) {
        let now = Instant::now();
        let due = self.fill_line.is_none_or(|last| now.duration_since(last) >= LINE_EACH);
        if self.terminal || due {
            self.fill_line = Some(now);
            self.say(what);
        }
    }

    /// Shows a window that has ended.
    pub fn window(&mut self, window: &Window, totals: &Totals) {
        let began_ns = *self.began_ns.get_or_insert(window.start_ns);
        let end_ns = window.start_ns + window.duration_ns;
        let elapsed = Duration::from_nanos(end_ns.saturating_sub(began_ns));
        self.window_ns = self.window_ns.max(window.duration_ns);
        // The remainder at the end, less than half a window, gives no rate.
        if window.duration_ns >= self.window_ns / 2 {
            self.rates = rates(window);
        }
        if !self.terminal {
            if elapsed < self.next_line {
                return;
            }
            while self.next_line <= elapsed {
                self.next_line += LINE_EACH;
            }
        }
        let of = self.all.map_or_else(String::new, |all| format!("/{}", approx_span(all.as_secs_f64())));
        let share = self.all.map(|all| elapsed.as_secs_f64() / all.as_secs_f64().max(f64::MIN_POSITIVE));
        let errors: u64 = totals.classes.iter().map(|class| class.errors).sum();
        let mut text = share.map_or_else(String::new, |share| self.bar(share));
        let _ = write!(text, "{}{of}", approx_span(elapsed.as_secs_f64()));
        if window.warmup {
            text += " warm-up";
        }
        text += &self.rates;
        if errors > 0 {
            let _ = write!(text, ", {errors} errors");
        }
        if totals.steadiness.is_known() {
            let _ = write!(text, ", {}", totals.steadiness);
        }
        self.say(&text);
    }

    /// Ends the line on the terminal.
    pub fn done(&mut self) {
        if self.drawn {
            let _ = writeln!(self.out);
            self.drawn = false;
        }
    }

    /// The progress bar on a terminal, followed by a space.
    fn bar(&self, share: f64) -> String {
        if !self.terminal {
            return String::new();
        }
        let full = ((share.clamp(0.0, 1.0) * BAR_WIDTH as f64) as usize).min(BAR_WIDTH);
        format!("[{}{}] ", "#".repeat(full), "-".repeat(BAR_WIDTH - full))
    }

    /// A recording goes on even if its progress can't be written.
    fn say(&mut self, text: &str) {
        let text = printable::line(text);
        if self.terminal {
            let text = fitted(&text);
            let _ = write!(self.out, "\r{text}\x1b[K");
            self.drawn = true;
        } else {
            let _ = writeln!(self.out, "{text}");
        }
        let _ = self.out.flush();
    }
}

/// As much as fits on a terminal's line, cut between words.
fn fitted(text: &str) -> String {
    if text.chars().count() <= WIDTH {
        return text.to_owned();
    }
    // One more character, so that a word that just fits stays whole.
    let cut: String = text.chars().take(WIDTH).collect();
    let end = cut.char_indices().next_back().map_or(0, |(at, _)| at);
    // A word that fills half of the line is cut.
    let end = cut.rfind(' ').filter(|at| *at > end / 2).unwrap_or(end);
    format!("{}…", cut[..end].trim_end_matches([',', ':', ' ']))
}

/// ` 131 MB/s: scan 25.0 point …`, or ` tps 1200, top reads 25.0 MB/s, writes …` of a program.
fn rates(window: &Window) -> String {
    if let Some(program) = &window.program {
        let s = window.duration_ns as f64 / 1e9;
        let rate =
            |bytes: Option<u64>| bytes.map_or(NONE.to_owned(), |bytes| three_digits(bytes as f64 / 1e6 / s));
        let metric =
            program.metrics.iter().next().map(|(name, of)| format!(" {name} {},", three_digits(of.mean)));
        let (read, written) = (rate(program.top_read_bytes), rate(program.top_written_bytes));
        return format!("{} reads {read} MB/s, writes {written}", metric.unwrap_or_default());
    }
    let mut text = format!(" {} MB/s:", three_digits(window.total.mb_per_s));
    for class in Class::ALL {
        let short = if class == Class::Background { "bg" } else { class.name() };
        let _ = write!(text, " {short} {}", three_digits(window.class(class).mb_per_s));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runs::record::fixture::{self, Like};

    fn run(terminal: bool, windows: u64) -> String {
        let mut out = Vec::new();
        let mut progress = Progress::new(&mut out, terminal, Some(Duration::from_secs(30)));
        for index in 7..7 + windows {
            let window = fixture::window(index, Like { warmup: 9, ..Like::default() });
            progress.window(&window, &Totals::default());
        }
        progress.done();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn without_a_terminal_a_line_is_printed_every_ten_seconds() {
        assert_eq!(run(false, 9), "");
        let text = run(false, 25);
        assert_eq!(text.lines().count(), 2, "{text}");
        assert!(text.starts_with("10s/30s "), "{text}");
        assert!(!text.contains(['\r', '\x1b']));
    }

    #[test]
    fn a_line_that_is_too_long_ends_at_a_word() {
        let long = format!("{} steady since 4m 32s", "x".repeat(62));
        assert_eq!(fitted(&long), format!("{} steady since 4m…", "x".repeat(62)));
        assert_eq!(fitted(&"x".repeat(90)).chars().count(), WIDTH);
        assert_eq!(fitted(&long[..WIDTH]), long[..WIDTH]);
    }

    #[test]
    fn on_a_terminal_one_line_is_overwritten() {
        let text = run(true, 15);
        assert_eq!(text.matches('\r').count(), 15);
        assert_eq!(text.matches('\n').count(), 1);
        assert!(text.contains("\r[########--------] 15s/30s "), "{text}");
        assert!(text.contains("2s/30s warm-up "), "{text}");
        assert!(
            text.split('\r').all(|line| line.trim_end().trim_end_matches("\x1b[K").chars().count() <= WIDTH)
        );
    }

    #[test]
    fn a_window_that_was_cut_short_moves_the_time_and_leaves_the_rates() {
        let mut out = Vec::new();
        let mut progress = Progress::new(&mut out, true, Some(Duration::from_secs(30)));
        let whole = fixture::window(0, Like::default());
        progress.window(&whole, &Totals::default());
        let mut stub = fixture::window(1, Like::default());
        (stub.start_ns, stub.duration_ns) = (whole.start_ns + 29_974_000_000, 26_000_000);
        stub.total.mb_per_s = 7777.0;
        progress.window(&stub, &Totals::default());
        let text = String::from_utf8(out).unwrap();
        let lines: Vec<&str> = text.split('\r').collect();
        let rates = |line: &str| {
            line.split_once(" MB/s").map(|(head, _)| head.rsplit(' ').next().unwrap().to_owned())
        };
        assert!(lines[2].contains("] 30s/30s "), "{text}");
        assert_eq!(rates(lines[1]), rates(lines[2]), "{text}");
    }

    #[test]
    fn a_fill_shows_bytes_rate_and_time_left() {
        let mut out = Vec::new();
        let mut progress = Progress::new(&mut out, false, None);
        let start = Instant::now();
        let fill = |done_bytes| session::Progress {
            what: "filling data-0".into(),
            done_bytes,
            all_bytes: 4 << 30,
            rate_bytes_per_s: f64::from(1 << 28),
        };
        for second in 0..12 {
            progress.fill_at(&fill(second << 28), start + Duration::from_secs(second));
        }
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text.lines().count(), 2, "{text}");
        assert_eq!(text.lines().nth(1).unwrap(), "filling data-0: 2.50 GiB of 4.00 GiB, 268 MB/s, 6s left");
    }
}
