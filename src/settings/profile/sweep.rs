//! The steps of a profile: the same load under different settings, run one after the other. Plain data.

use std::time::Duration;

use crate::settings::knobs::{self, Value};
use crate::settings::values::Settings;
use crate::short_list;

/// The maximum number of steps of a profile, with the product expanded.
pub const STEPS_MAX: usize = 1000;
/// The maximum number of repeats of a step.
pub const REPEAT_MAX: u32 = 1000;
/// The longest label, in characters; longer ones made from a step's turns are cut.
pub const LABEL_CHARS_MAX: usize = 60;

/// The steps of a profile.
#[derive(Debug, Clone, PartialEq)]
pub struct Sweep {
    /// The steps as written; see [`Self::all_steps`].
    pub steps: Vec<SweepStep>,
    /// Knobs whose values are combined with each other and with every step.
    pub product: Vec<Axis>,
    /// Knobs of the program, likewise, with their values; they vary fastest.
    pub program: Vec<(String, Vec<String>)>,
    /// How long each run is measured, after its warm-up.
    pub time: Duration,
    /// The warm-up of each run.
    pub warmup: Duration,
    /// How often each step is run.
    pub repeat: u32,
    /// The order of the runs.
    pub order: Order,
    /// The seed that shuffles them.
    pub seed: u64,
    /// What is done so that the runs are comparable.
    pub between: Between,
}

/// A knob and its values.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    /// The knob's path.
    pub knob: &'static str,
    /// Its values, as written.
    pub values: Vec<Value>,
}

/// Settings to be measured.
#[derive(Debug, Clone, PartialEq)]
pub struct SweepStep {
    /// Its name in tables and folders; unique.
    pub label: String,
    /// The knobs that it turns, by path, in the order of [`knobs::all`].
    pub turns: Vec<(&'static str, Value)>,
    /// The knobs of the program that it turns.
    pub program: Vec<(String, String)>,
    /// Its own measuring time.
    pub time: Option<Duration>,
    /// Its own warm-up.
    pub warmup: Option<Duration>,
    /// Its own number of repeats.
    pub repeat: Option<u32>,
}

/// The order of the runs of a sweep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// At random, by the seed.
    Shuffled,
    /// In the profile's order.
    AsWritten,
}

impl Order {
    /// Every order with its name in profiles.
    pub const NAMES: [(Self, &'static str); 2] =
        [(Self::Shuffled, "shuffled"), (Self::AsWritten, "as-written")];

    /// The name in profiles.
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(order, _)| *order == self).map_or("?", |(_, name)| name)
    }
}

/// What is done before each run so that all begin under the same conditions.
#[derive(Debug, Clone, PartialEq)]
pub struct Between {
    /// Idle time before each run.
    pub idle: Duration,
    /// The run waits until no drive is warmer than this, in degrees Celsius.
    pub cool_to_c: Option<f64>,
    /// The longest time that it waits for that.
    pub cool_within: Duration,
    /// Rebuild the stack, including the drives' state, before each run instead of once for all runs on it.
    pub rebuild: bool,
}

impl Default for Sweep {
    /// No steps yet.
    fn default() -> Self {
        Self {
            steps: Vec::new(),
            product: Vec::new(),
            program: Vec::new(),
            time: Duration::from_secs(30),
            warmup: Duration::ZERO,
            repeat: 1,
            order: Order::Shuffled,
            seed: 1,
            between: Between {
                idle: Duration::ZERO,
                cool_to_c: None,
                cool_within: Duration::from_mins(10),
                rebuild: false,
            },
        }
    }
}

impl Sweep {
    /// The number of steps, with the product expanded; `usize::MAX` on overflow.
    pub fn count(&self) -> usize {
        let axes = self.product.iter().map(|axis| axis.values.len());
        let axes = axes.chain(self.program.iter().map(|(_, values)| values.len()));
        let of_axes = axes.fold(1_usize, usize::saturating_mul);
        let multiplied = !(self.product.is_empty() && self.program.is_empty());
        let of_steps = if multiplied { self.steps.len().max(1) } else { self.steps.len() };
        of_steps.saturating_mul(of_axes)
    }

    /// Every step to run, in the order of tables: each written one with every combination of the product's
    /// values, the last axis varying fastest. Times and repeats that a step does not set are the sweep's.
    pub fn all_steps(&self) -> Vec<SweepStep> {
        let base = SweepStep {
            label: String::new(),
            turns: Vec::new(),
            program: Vec::new(),
            time: None,
            warmup: None,
            repeat: None,
        };
        let mut steps = if self.steps.is_empty() { vec![base] } else { self.steps.clone() };
        for axis in &self.product {
            steps =
                steps.iter().flat_map(|step| axis.values.iter().map(|v| step.and(axis.knob, v))).collect();
        }
        for (name, values) in &self.program {
            steps = steps
                .iter()
                .flat_map(|step| values.iter().map(|value| step.and_of_program(name, value)))
                .collect();
        }
        for step in &mut steps {
            short_list::sort_by_key(&mut step.turns, |(path, _)| place(path));
            step.time = step.time.or(Some(self.time));
            step.warmup = step.warmup.or(Some(self.warmup));
            step.repeat = step.repeat.or(Some(self.repeat));
        }
        steps
    }
}

/// A knob's index in the table of all.
fn place(path: &str) -> usize {
    knobs::all().iter().position(|knob| knob.path == path).unwrap_or(usize::MAX)
}

impl SweepStep {
    /// The settings under which it runs: the profile's with its turns applied.
    pub fn settings(&self, base: &Settings) -> Settings {
        let mut settings = base.clone();
        settings.name = format!("{}: {}", base.name, self.label);
        for (path, value) in &self.turns {
            if let Some(knob) = knobs::find(path) {
                knob.set(&mut settings, value.clone());
            }
        }
        for (name, value) in &self.program {
            // They were checked against its knobs when they were read.
            let _ = settings.program.as_mut().map(|program| program.turn(name, value));
        }
        settings
    }

    /// The knobs that it turns, by path, with their values as profiles write them.
    pub fn turned(&self) -> Vec<(String, String)> {
        let of_program = self.program.iter().map(|(name, value)| (format!("command.{name}"), value.clone()));
        self.turns
            .iter()
            .map(|(knob, value)| ((*knob).to_owned(), value.to_string()))
            .chain(of_program)
            .collect()
    }

    /// The step with one more knob of the program turned.
    fn and_of_program(&self, name: &str, value: &str) -> Self {
        let mut step = self.clone();
        step.label = joined(&self.label, &format!("{name}={value}"));
        step.program.push((name.to_owned(), value.to_owned()));
        step
    }

    /// The step with one more knob turned.
    fn and(&self, knob: &'static str, value: &Value) -> Self {
        let mut step = self.clone();
        step.label = joined(&self.label, &turn_label(knob, value));
        step.turns.push((knob, value.clone()));
        step
    }
}

fn joined(label: &str, turn: &str) -> String {
    if label.is_empty() { turn.to_owned() } else { format!("{label} {turn}") }
}

/// The name of a step without a label.
pub fn label_of(turns: &[(&'static str, Value)], program: &[(String, String)]) -> String {
    let of_program = program.iter().map(|(name, value)| format!("{name}={value}"));
    let parts: Vec<_> = turns.iter().map(|(knob, value)| turn_label(knob, value)).chain(of_program).collect();
    let label = if parts.is_empty() { "base".to_owned() } else { parts.join(" ") };
    if label.chars().count() <= LABEL_CHARS_MAX {
        return label;
    }
    label.chars().take(LABEL_CHARS_MAX - 1).chain(['…']).collect()
}

/// `page_size=4KiB`, or for a class's knob `scan.depth=8`.
fn turn_label(path: &str, value: &Value) -> String {
    let of_class = knobs::find(path).is_some_and(|knob| knob.class.is_some());
    let key = path.split_once('.').map_or(path, |(_, key)| key);
    // A knob's text may contain characters that a line must not.
    format!("{}={value}", if of_class { path } else { key }).replace(crate::printable::is_obeyed, " ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Interface;

    fn step(label: &str, turns: &[(&'static str, Value)]) -> SweepStep {
        SweepStep {
            label: label.into(),
            turns: turns.to_vec(),
            program: Vec::new(),
            time: None,
            warmup: None,
            repeat: None,
        }
    }

    fn axis(knob: &'static str, values: &[u64]) -> Axis {
        let value = |&n: &u64| if knob == "io.page_size" { Value::Size(Some(n)) } else { Value::Int(n) };
        Axis { knob, values: values.iter().map(value).collect() }
    }

    #[test]
    fn a_product_multiplies_the_steps_and_its_last_axis_varies_fastest() {
        let mut sweep = Sweep {
            product: vec![axis("io.page_size", &[4096, 16384]), axis("scan.depth", &[1, 8])],
            ..Sweep::default()
        };
        let labels = |sweep: &Sweep| sweep.all_steps().into_iter().map(|s| s.label).collect::<Vec<_>>();
        assert_eq!(
            labels(&sweep),
            [
                "page_size=4KiB scan.depth=1",
                "page_size=4KiB scan.depth=8",
                "page_size=16KiB scan.depth=1",
                "page_size=16KiB scan.depth=8"
            ]
        );
        assert_eq!(sweep.count(), 4);
        sweep.product.truncate(1);
        sweep.steps = vec![step("a", &[]), step("b", &[("wal.sync", Value::Choice("none"))])];
        assert_eq!(
            labels(&sweep),
            ["a page_size=4KiB", "a page_size=16KiB", "b page_size=4KiB", "b page_size=16KiB"]
        );
        assert_eq!(sweep.count(), 4);
    }

    #[test]
    fn a_step_has_the_sweeps_times_unless_it_has_its_own() {
        let own = SweepStep { time: Some(Duration::from_secs(5)), repeat: Some(7), ..step("own", &[]) };
        let sweep = Sweep { steps: vec![own, step("other", &[])], repeat: 3, ..Sweep::default() };
        let steps = sweep.all_steps();
        assert_eq!((steps[0].time, steps[0].repeat), (Some(Duration::from_secs(5)), Some(7)));
        assert_eq!((steps[1].time, steps[1].repeat), (Some(Duration::from_secs(30)), Some(3)));
    }

    #[test]
    fn a_steps_settings_are_the_profiles_with_its_turns() {
        let base = Settings { name: "p".into(), ..Settings::default() };
        let settings = step("sync", &[("io.interface", Value::Choice("sync"))]).settings(&base);
        assert_eq!((settings.io.interface, &*settings.name), (Interface::Sync, "p: sync"));
    }

    #[test]
    fn a_label_made_of_turns_is_one_line_and_not_too_long() {
        assert_eq!(label_of(&[], &[]), "base");
        let turns = [("stack.mkfs_options", Value::Text(format!("a\nb{}", "x".repeat(80))))];
        let label = label_of(&turns, &[]);
        assert!(label.starts_with("mkfs_options=a b") && label.ends_with('…'), "{label}");
        assert_eq!(label.chars().count(), LABEL_CHARS_MAX);
    }
}
