//! The steps of a profile from TOML: `[sweep]`, `[sweep.product]` and `[[step]]`.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::time::Duration;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::parse::{GivenIn, Mistake, Walk, keys_of, list, value_of, whole_number};
use super::parse_layers::value_at;
use super::sweep::{Axis, LABEL_CHARS_MAX, Order, REPEAT_MAX, STEPS_MAX, Sweep, SweepStep, label_of};
use crate::settings::Program;
use crate::settings::knobs::{self, Knob, Value};
use crate::short_list;
use crate::units::parse_duration;

/// The keys of `[sweep]`.
const KEYS: [&str; 10] =
    ["for", "warmup", "repeat", "order", "seed", "idle", "cool_to", "cool_within", "rebuild", "product"];
/// Temperatures to which a drive can be asked to cool down, in degrees Celsius.
const COOL_TO_C: RangeInclusive<f64> = 0.0..=120.0;
/// A knob with values in the product, and its position.
type AxisAt = (usize, Axis);

impl Walk<'_> {
    /// The steps in the document, if it has any.
    pub fn sweep(&mut self, root: &DeTable, program: Option<&Program>) -> Option<Sweep> {
        let of = |wanted: &str| root.iter().find(|(key, _)| key.get_ref() == wanted);
        let (table, steps) = (of("sweep"), of("step"));
        let at = [table, steps].into_iter().flatten().map(|(key, _)| key.span().start).min()?;
        let mut sweep = Sweep::default();
        let mut axes = Vec::new();
        if let Some((_, value)) = table {
            if let DeValue::Table(table) = value.get_ref() {
                self.sweep_table(table, &mut sweep, &mut axes, program);
            } else {
                self.wants("sweep", &format!("a table of {}", list(&KEYS)), value);
            }
        }
        if let Some((_, value)) = steps {
            self.steps(value, &mut sweep, &axes, program);
        }
        sweep.product = axes.into_iter().map(|(_, axis)| axis).collect();
        match sweep.count() {
            0 if self.is_right() => {
                self.refuse(at, "`sweep` has no steps: add a `[sweep.product]`, or `[[step]]`s");
            }
            count if count > STEPS_MAX => {
                self.refuse(at, format!("the sweep has {count} steps, more than the maximum of {STEPS_MAX}"));
            }
            _ => {}
        }
        Some(sweep)
    }

    fn sweep_table(
        &mut self,
        table: &DeTable,
        sweep: &mut Sweep,
        axes: &mut Vec<AxisAt>,
        program: Option<&Program>,
    ) {
        for (key, value) in table {
            let path = format!("sweep.{}", key.get_ref());
            let between = &mut sweep.between;
            match &**key.get_ref() {
                "for" => put(&mut sweep.time, self.time(&path, value, true)),
                "warmup" => put(&mut sweep.warmup, self.time(&path, value, false)),
                "idle" => put(&mut between.idle, self.time(&path, value, false)),
                "cool_within" => put(&mut between.cool_within, self.time(&path, value, false)),
                "cool_to" => between.cool_to_c = self.degrees(&path, value),
                "repeat" => put(&mut sweep.repeat, self.repeat(&path, value)),
                "seed" => put(&mut sweep.seed, self.whole(&path, value, 0..=i64::MAX.unsigned_abs())),
                "order" => put(&mut sweep.order, self.order(&path, value)),
                "rebuild" => match value.get_ref() {
                    DeValue::Boolean(on) => between.rebuild = *on,
                    _ => self.wants(&path, "true or false", value),
                },
                "product" => {
                    self.product(value, axes);
                    self.product_of_program(value, &mut sweep.program, program);
                }
                other => {
                    let meant = knobs::nearest_of(other, KEYS.into_iter());
                    let meant = meant.map_or_else(
                        || format!("`sweep` has {}", list(&KEYS)),
                        |near| format!("did you mean `sweep.{near}`?"),
                    );
                    let path = path.escape_debug();
                    self.refuse(key.span().start, format!("there is no `{path}`; {meant}"));
                }
            }
        }
    }

    fn wants(&mut self, path: &str, wanted: &str, value: &Spanned<DeValue>) {
        let what = format!("`{path}` must be {wanted}, not {}", self.source(value));
        self.refuse(value.span().start, what);
    }

    fn time(&mut self, path: &str, value: &Spanned<DeValue>, positive: bool) -> Option<Duration> {
        let time = value.get_ref().as_str().and_then(|text| parse_duration(text).ok());
        let time = time.filter(|time| !positive || !time.is_zero());
        if time.is_none() {
            let longer = if positive { ", above 0" } else { "" };
            self.wants(path, &format!("a time like 30s or 1m30s{longer}"), value);
        }
        time
    }

    fn degrees(&mut self, path: &str, value: &Spanned<DeValue>) -> Option<f64> {
        let degrees = match value.get_ref() {
            DeValue::Float(x) => x.as_str().parse().ok(),
            whole => whole_number(whole).map(|n| n as f64),
        };
        let degrees = degrees.filter(|degrees| COOL_TO_C.contains(degrees));
        if degrees.is_none() {
            let (min, max) = (COOL_TO_C.start(), COOL_TO_C.end());
            self.wants(path, &format!("degrees Celsius from {min} to {max}"), value);
        }
        degrees
    }

    fn repeat(&mut self, path: &str, value: &Spanned<DeValue>) -> Option<u32> {
        self.whole(path, value, 1..=u64::from(REPEAT_MAX)).map(|n| n as u32)
    }

    fn whole(&mut self, path: &str, value: &Spanned<DeValue>, range: RangeInclusive<u64>) -> Option<u64> {
        let number = whole_number(value.get_ref()).and_then(|n| u64::try_from(n).ok());
        let number = number.filter(|n| range.contains(n));
        if number.is_none() {
            let wanted = format!("a whole number from {} to {}", range.start(), range.end());
            self.wants(path, &wanted, value);
        }
        number
    }

    fn order(&mut self, path: &str, value: &Spanned<DeValue>) -> Option<Order> {
        let name = value.get_ref().as_str();
        let order = Order::NAMES.into_iter().find(|(_, known)| Some(*known) == name).map(|(order, _)| order);
        if order.is_none() {
            self.wants(path, &Order::NAMES.map(|(_, name)| name).join(" or "), value);
        }
        order
    }

    fn product(&mut self, value: &Spanned<DeValue>, axes: &mut Vec<AxisAt>) {
        let DeValue::Table(table) = value.get_ref() else {
            return self.wants("sweep.product", "a table of knobs, each with a list of values", value);
        };
        self.axes(table, "", axes);
        short_list::sort_by_key(axes, |(at, _)| *at);
    }

    /// The knobs of a table; a key is a knob's path, in quotes or not.
    fn axes(&mut self, table: &DeTable, prefix: &str, axes: &mut Vec<AxisAt>) {
        for (key, value) in table {
            let (at, path) = (key.span().start, format!("{prefix}{}", key.get_ref()));
            if path == "command" || path.starts_with("command.") {
                continue;
            }
            match (knobs::find(&path), value.get_ref()) {
                (Some(knob), _) if axes.iter().any(|(_, axis)| axis.knob == knob.path) => {
                    self.refuse(at, format!("`{path}` is already in the product"));
                }
                (Some(knob), _) => {
                    if let Some(values) = self.values(knob, value) {
                        axes.push((at, Axis { knob: &knob.path, values }));
                    }
                }
                (None, DeValue::Table(inner)) if !keys_of(&path).is_empty() => {
                    self.axes(inner, &format!("{path}."), axes);
                }
                (None, _) if keys_of(&path).is_empty() => {
                    self.refuse(at, Mistake::Unknown(path.clone(), &[]));
                }
                (None, _) => {
                    let keys = list(&keys_of(&path));
                    self.wants(&format!("sweep.product.{path}"), &format!("a table of {keys}"), value);
                }
            }
        }
    }

    /// The knobs of the program in the product.
    fn product_of_program(
        &mut self,
        product: &Spanned<DeValue>,
        axes: &mut Vec<(String, Vec<String>)>,
        program: Option<&Program>,
    ) {
        let DeValue::Table(table) = product.get_ref() else { return };
        let quoted = table.iter().filter_map(|(key, value)| {
            Some((key.span().start, key.get_ref().strip_prefix("command.")?.to_owned(), value))
        });
        let below = value_at(table, "command").and_then(|below| below.get_ref().as_table());
        let below = below.into_iter().flatten();
        let below = below.map(|(key, value)| (key.span().start, key.get_ref().to_string(), value));
        let mut all: Vec<_> = quoted.chain(below).collect();
        short_list::sort_by_key(&mut all, |(at, ..)| *at);
        for (at, name, value) in all {
            if axes.iter().any(|(known, _)| *known == name) {
                self.refuse(at, format!("`command.{name}` is already in the product"));
            }
            let Some(items) = value.get_ref().as_array().filter(|items| !items.is_empty()) else {
                self.wants(
                    &format!("sweep.product.command.{}", name.escape_debug()),
                    "a list of values",
                    value,
                );
                continue;
            };
            let mut values = Vec::new();
            for item in items {
                values.extend(self.turn_of_program(&name, item, program));
            }
            axes.push((name, values));
        }
    }

    /// A value that a knob of the program can have.
    fn turn_of_program(
        &mut self,
        name: &str,
        value: &Spanned<DeValue>,
        program: Option<&Program>,
    ) -> Option<String> {
        let text = self.knob_value(value)?;
        let wrong = match program {
            None => Some("there is no `[command]` whose knobs could be turned".to_owned()),
            Some(program) => program.clone().turn(name, &text).err(),
        };
        if let Some(wrong) = wrong {
            self.refuse(value.span().start, wrong);
        }
        Some(text)
    }

    /// The values of a knob, without duplicates.
    fn values(&mut self, knob: &'static Knob, value: &Spanned<DeValue>) -> Option<Vec<Value>> {
        let items = value.get_ref().as_array().filter(|items| !items.is_empty());
        let Some(items) = items else {
            self.wants(&format!("sweep.product.{}", knob.path), "a list of values", value);
            return None;
        };
        let mut values: Vec<Value> = Vec::new();
        for item in items {
            match value_of(knob, item.get_ref()) {
                Some(value) if values.contains(&value) => {
                    self.refuse(item.span().start, format!("`{}` has the value {value} twice", knob.path));
                }
                Some(value) => values.push(value),
                None => {
                    let what = knob.refusal(&self.source(item));
                    self.refuse(item.span().start, what);
                }
            }
        }
        Some(values)
    }

    fn steps(
        &mut self,
        value: &Spanned<DeValue>,
        sweep: &mut Sweep,
        axes: &[AxisAt],
        program: Option<&Program>,
    ) {
        let Some(items) = value.get_ref().as_array() else {
            return self.wants("step", "one or more tables: write [[step]]", value);
        };
        let mut labels = BTreeSet::new();
        for item in items {
            let DeValue::Table(table) = item.get_ref() else {
                self.wants("step", "one or more tables: write [[step]]", item);
                continue;
            };
            let of_program = self.step_of_program(table, &sweep.program, program);
            let (at, step) = self.step(table, item.span().start, axes, of_program);
            if !labels.insert(step.label.clone()) {
                let what =
                    format!("there is already a step `{}`: give each step a different `label`", step.label);
                self.refuse(at, what);
            }
            sweep.steps.push(step);
        }
    }

    /// The knobs of the program that a step turns.
    fn step_of_program(
        &mut self,
        table: &DeTable,
        axes: &[(String, Vec<String>)],
        program: Option<&Program>,
    ) -> Vec<(String, String)> {
        let Some(command) = value_at(table, "command") else { return Vec::new() };
        let Some(knobs) = command.get_ref().as_table() else {
            self.wants("step.command", "a table of the program's knobs", command);
            return Vec::new();
        };
        let mut turns = Vec::new();
        for (key, value) in knobs {
            let name = key.get_ref().to_string();
            if axes.iter().any(|(known, _)| *known == name) {
                self.refuse(key.span().start, format!("`command.{name}` is already turned by the product"));
            }
            let value = self.turn_of_program(&name, value, program);
            turns.extend(value.map(|value| (name, value)));
        }
        turns
    }

    /// A step, and where it is named.
    fn step(
        &mut self,
        table: &DeTable,
        at: usize,
        axes: &[AxisAt],
        program: Vec<(String, String)>,
    ) -> (usize, SweepStep) {
        let before = std::mem::take(&mut self.found);
        self.table(table, "", GivenIn::Step);
        let mut found = std::mem::replace(&mut self.found, before);
        short_list::sort_by_key(&mut found, |found| found.index);
        for twice in &found {
            let path = &knobs::all()[twice.index].path;
            if axes.iter().any(|(_, axis)| axis.knob == path) {
                self.refuse(twice.key_at, format!("`{path}` is already turned by the product"));
            }
        }
        let turn = |found: super::parse::Found| (knobs::all()[found.index].path.as_str(), found.value);
        let turns: Vec<_> = found.into_iter().map(turn).collect();
        let label = label_of(&turns, &program);
        let mut step = SweepStep { label, turns, program, time: None, warmup: None, repeat: None };
        let mut named_at = at;
        for (key, value) in table {
            let path = format!("step.{}", key.get_ref());
            match &**key.get_ref() {
                "label" => {
                    named_at = value.span().start;
                    put(&mut step.label, self.label(&path, value));
                }
                "for" => step.time = self.time(&path, value, true),
                "warmup" => step.warmup = self.time(&path, value, false),
                "repeat" => step.repeat = self.repeat(&path, value),
                _ => {}
            }
        }
        (named_at, step)
    }

    fn label(&mut self, path: &str, value: &Spanned<DeValue>) -> Option<String> {
        let label = self.line(path, value)?;
        if label.trim().is_empty() || label.chars().count() > LABEL_CHARS_MAX {
            self.wants(path, &format!("text of 1 to {LABEL_CHARS_MAX} characters"), value);
            return None;
        }
        Some(label)
    }
}

/// Stores a valid value.
fn put<T>(place: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *place = value;
    }
}

#[cfg(test)]
#[path = "parse_sweep_tests.rs"]
mod tests;
