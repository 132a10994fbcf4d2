//! A knob's value: as text, and which values a kind of knob accepts.

use std::fmt;
use std::time::Duration;

use crate::printable::is_line;
use crate::settings::Cpus;
use crate::units;

/// A value of a knob.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// On or off.
    Bool(bool),
    /// A whole number.
    Int(u64),
    /// A share in percent.
    Percent(u64),
    /// A number.
    Float(f64),
    /// Bytes; `None` means no limit.
    Size(Option<u64>),
    /// Bytes per second; `None` means as fast as possible.
    Rate(Option<u64>),
    /// A time.
    Time(Duration),
    /// One of a fixed set.
    Choice(&'static str),
    /// CPUs to run on.
    Cpus(Cpus),
    /// Free text; empty means none.
    Text(String),
    /// Several texts.
    List(Vec<String>),
    /// The `[io]` table's value.
    Inherit,
}

impl Value {
    /// The value as a number, if it is one: a quantity in its own unit. None for no limit.
    pub fn as_number(&self) -> Option<f64> {
        match self {
            Value::Int(n) | Value::Percent(n) | Value::Size(Some(n)) | Value::Rate(Some(n)) => {
                Some(*n as f64)
            }
            Value::Float(x) => Some(*x),
            Value::Time(time) => Some(time.as_secs_f64()),
            _ => None,
        }
    }
}

/// How no limit, no rate and no text are written.
pub const NONE: &str = "none";
/// How inheriting the `[io]` table's value is written.
pub const INHERIT: &str = "default";

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Bool(true) => f.write_str("on"),
            Value::Bool(false) => f.write_str("off"),
            Value::Int(n) => write!(f, "{n}"),
            Value::Percent(n) => write!(f, "{n}%"),
            Value::Float(x) => write!(f, "{x}"),
            Value::Size(Some(bytes)) => f.write_str(&units::format_size(*bytes)),
            Value::Rate(Some(rate)) => f.write_str(&units::format_rate(*rate)),
            Value::Size(None) | Value::Rate(None) => f.write_str(NONE),
            Value::Time(time) => f.write_str(&units::format_duration(*time)),
            Value::Choice(name) => f.write_str(name),
            Value::Cpus(cpus) => f.write_str(&format_cpus(cpus)),
            Value::Text(text) if text.is_empty() => f.write_str(NONE),
            Value::Text(text) => f.write_str(text),
            Value::List(items) => f.write_str(&items.join(",")),
            Value::Inherit => f.write_str(INHERIT),
        }
    }
}

/// What a knob accepts; `steps` are the preset values for the arrow keys.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// On or off.
    Bool,
    /// A whole number within bounds.
    Int {
        /// Smallest.
        min: u64,
        /// Largest.
        max: u64,
        /// Preset values.
        steps: &'static [u64],
    },
    /// A share in percent, written with its sign.
    Percent {
        /// Smallest.
        min: u64,
        /// Largest.
        max: u64,
        /// Preset values.
        steps: &'static [u64],
    },
    /// A number within bounds.
    Float {
        /// Smallest.
        min: f64,
        /// Largest.
        max: f64,
        /// Preset values.
        steps: &'static [f64],
    },
    /// Bytes within bounds.
    Size {
        /// Smallest.
        min: u64,
        /// Largest.
        max: u64,
        /// What it must be a multiple of.
        multiple: u64,
        /// Whether it must be a power of two.
        power_of_two: bool,
        /// Whether `none` is accepted.
        optional: bool,
        /// Preset values, without `none`.
        steps: &'static [u64],
    },
    /// Bytes per second, or `none`.
    Rate {
        /// Preset values, without `none`.
        steps: &'static [u64],
    },
    /// A time within bounds.
    Time {
        /// Smallest.
        min: Duration,
        /// Largest.
        max: Duration,
        /// Preset values.
        steps: &'static [Duration],
    },
    /// One of a fixed set, with names and meanings.
    Choice(&'static [(&'static str, &'static str)]),
    /// CPUs.
    Cpus,
    /// Free text.
    Text(&'static str),
    /// Several texts.
    List(&'static str),
}

impl Kind {
    /// Parses a text; an error says what was expected.
    pub fn parse(&self, text: &str) -> Result<Value, String> {
        let text = text.trim();
        let value = match self {
            Kind::Bool => match text {
                "on" | "true" | "yes" => Value::Bool(true),
                "off" | "false" | "no" => Value::Bool(false),
                _ => return Err(self.expected()),
            },
            Kind::Int { .. } => Value::Int(text.parse().map_err(|_| self.expected())?),
            Kind::Percent { .. } => {
                let number = text.strip_suffix('%').unwrap_or(text).trim_end();
                Value::Percent(number.parse().map_err(|_| self.expected())?)
            }
            Kind::Float { .. } => Value::Float(text.parse().map_err(|_| self.expected())?),
            Kind::Size { optional: true, .. } if text == NONE => Value::Size(None),
            Kind::Size { .. } => Value::Size(Some(units::parse_size(text)?)),
            Kind::Rate { .. } if text == NONE => Value::Rate(None),
            Kind::Rate { .. } => Value::Rate(Some(units::parse_rate(text)?)),
            Kind::Time { .. } => Value::Time(units::parse_duration(text)?),
            Kind::Choice(choices) => Value::Choice(choice(choices, text).ok_or_else(|| self.expected())?),
            Kind::Cpus => Value::Cpus(parse_cpus(text)?),
            Kind::Text(_) if text == NONE => Value::Text(String::new()),
            Kind::Text(_) => Value::Text(text.to_owned()),
            Kind::List(_) => Value::List(
                text.split(',').map(str::trim).filter(|t| !t.is_empty()).map(String::from).collect(),
            ),
        };
        self.bounds(&value)?;
        Ok(value)
    }

    /// Whether the value is within the kind's bounds.
    pub fn bounds(&self, value: &Value) -> Result<(), String> {
        let within = match (self, value) {
            (Kind::Int { min, max, .. }, Value::Int(n))
            | (Kind::Percent { min, max, .. }, Value::Percent(n)) => (min..=max).contains(&n),
            (Kind::Float { min, max, .. }, Value::Float(x)) => (min..=max).contains(&x),
            (Kind::Size { min, max, multiple, power_of_two, .. }, Value::Size(Some(n))) => {
                (min..=max).contains(&n)
                    && n.is_multiple_of(*multiple)
                    && (!power_of_two || n.is_power_of_two())
            }
            (Kind::Time { min, max, .. }, Value::Time(t)) => (min..=max).contains(&t),
            (Kind::Text(_), Value::Text(text)) => is_line(text),
            (Kind::List(_), Value::List(texts)) => texts.iter().all(|text| is_line(text)),
            _ => true,
        };
        if within { Ok(()) } else { Err(self.expected()) }
    }

    /// What is accepted, in words for errors and help texts.
    pub fn expected(&self) -> String {
        match self {
            Kind::Bool => "on or off".into(),
            Kind::Int { min, max, .. } => format!("a whole number from {min} to {max}"),
            Kind::Percent { min, max, .. } => format!("a share from {min}% to {max}%"),
            Kind::Float { min, max, .. } => format!("a number from {min} to {max}"),
            Kind::Size { min, max, multiple, power_of_two, optional, .. } => {
                let sort = if *power_of_two { "a power of two" } else { "a size" };
                let times = if *multiple > 1 {
                    format!(", a multiple of {}", units::format_size(*multiple))
                } else {
                    String::new()
                };
                let none = if *optional { ", or none" } else { "" };
                let (min, max) = (units::format_size(*min), units::format_size(*max));
                format!("{sort} from {min} to {max}{times}{none}")
            }
            Kind::Rate { .. } => "a rate like 250MB/s, or none".into(),
            Kind::Time { min, max, .. } => {
                format!("a time from {} to {}", units::format_duration(*min), units::format_duration(*max))
            }
            Kind::Choice(choices) => {
                let names: Vec<_> = choices.iter().map(|(name, _)| *name).collect();
                match names.split_last() {
                    Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
                    _ => names.concat(),
                }
            }
            Kind::Cpus => "any, node:N, or a list of CPUs like 0-3,8".into(),
            Kind::Text(what) | Kind::List(what) => (*what).into(),
        }
    }

    /// The preset values for the arrow keys, ascending; may be empty.
    pub fn steps(&self) -> Vec<Value> {
        match self {
            Kind::Bool => vec![Value::Bool(false), Value::Bool(true)],
            Kind::Int { steps, .. } => steps.iter().map(|&n| Value::Int(n)).collect(),
            Kind::Percent { steps, .. } => steps.iter().map(|&n| Value::Percent(n)).collect(),
            Kind::Float { steps, .. } => steps.iter().map(|&x| Value::Float(x)).collect(),
            Kind::Size { steps, optional, .. } => steps
                .iter()
                .map(|&n| Value::Size(Some(n)))
                .chain(optional.then_some(Value::Size(None)))
                .collect(),
            Kind::Rate { steps } => {
                steps.iter().map(|&n| Value::Rate(Some(n))).chain([Value::Rate(None)]).collect()
            }
            Kind::Time { steps, .. } => steps.iter().map(|&t| Value::Time(t)).collect(),
            Kind::Choice(choices) => choices.iter().map(|(name, _)| Value::Choice(name)).collect(),
            Kind::Cpus | Kind::Text(_) | Kind::List(_) => Vec::new(),
        }
    }
}

fn choice(choices: &[(&'static str, &'static str)], text: &str) -> Option<&'static str> {
    choices.iter().find(|(name, _)| *name == text).map(|(name, _)| *name)
}

fn parse_cpus(text: &str) -> Result<Cpus, String> {
    if text == "any" {
        return Ok(Cpus::Any);
    }
    if let Some(node) = text.strip_prefix("node:") {
        return node.parse().map(Cpus::Node).map_err(|_| Kind::Cpus.expected());
    }
    parse_cpu_list(text).map(Cpus::List).ok_or_else(|| Kind::Cpus.expected())
}

/// CPUs from the kernel's list form (`0-3,8`): ascending, without duplicates.
pub fn parse_cpu_list(text: &str) -> Option<Vec<u32>> {
    const CPUS_MAX: u32 = 8192; // the kernel's own limit
    let mut cpus = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.trim().split_once('-').unwrap_or((part.trim(), part.trim()));
        let (first, last) = (first.parse::<u32>().ok()?, last.parse::<u32>().ok()?);
        if first > last || last >= CPUS_MAX {
            return None;
        }
        cpus.extend(first..=last);
    }
    cpus.sort_unstable();
    cpus.dedup();
    Some(cpus)
}

fn format_cpus(cpus: &Cpus) -> String {
    match cpus {
        Cpus::Any => "any".into(),
        Cpus::Node(node) => format!("node:{node}"),
        Cpus::List(list) => {
            let mut parts: Vec<(u32, u32)> = Vec::new();
            for &cpu in list {
                match parts.last_mut() {
                    Some((_, last)) if *last + 1 == cpu => *last = cpu,
                    _ => parts.push((cpu, cpu)),
                }
            }
            let text = |&(a, b): &(u32, u32)| if a == b { a.to_string() } else { format!("{a}-{b}") };
            parts.iter().map(text).collect::<Vec<_>>().join(",")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_lists_round_trip() {
        for text in ["any", "node:1", "0-3,8", "5"] {
            assert_eq!(Kind::Cpus.parse(text).unwrap().to_string(), text);
        }
        assert_eq!(Kind::Cpus.parse("3,1,2,2").unwrap().to_string(), "1-3");
        for wrong in ["", "node:", "3-1", "x", "0-99999999"] {
            assert!(Kind::Cpus.parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn texts_are_lines_that_a_terminal_shows() {
        assert_eq!(Kind::Text("a path").parse("/mnt/größe 1"), Ok(Value::Text("/mnt/größe 1".into())));
        for wrong in ["/mnt/a\n  2. mkfs", "/mnt/\x1b[2J", "/mnt/\u{202e}a", "\u{9b}1m"] {
            assert!(
                Kind::Text("a path").parse(wrong).is_err() && Kind::List("paths").parse(wrong).is_err(),
                "{wrong:?}"
            );
        }
    }

    #[test]
    fn bounds_apply_to_text_too() {
        let page = Kind::Size {
            min: 512,
            max: 1 << 20,
            multiple: 512,
            power_of_two: true,
            optional: false,
            steps: &[],
        };
        assert_eq!(page.parse("16KiB"), Ok(Value::Size(Some(16 << 10))));
        for wrong in ["24KiB", "256B", "2MiB", "none"] {
            assert!(page.parse(wrong).is_err(), "{wrong}");
        }
    }
}
