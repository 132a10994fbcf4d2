//! What a row of an option list allows, and whether a value is allowed.

/// An option, and what it takes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Allowed {
    /// Its name; a second one means the same.
    pub names: &'static [&'static str],
    /// What it takes.
    pub takes: Takes,
}

/// What an option takes.
#[derive(Debug, Clone, Copy)]
pub(super) enum Takes {
    /// No value.
    Nothing,
    /// A whole number, up to this.
    Number(u64),
    /// A whole number, from the first up to the second.
    From(u64, u64),
    /// A share in percent up to this, also with decimals.
    Percent(u32),
    /// A whole number, possibly with the letter of a unit.
    Size,
    /// One of these words.
    Word(&'static [&'static str]),
    /// Some of these words, separated by commas; each may follow `^`, which switches it off.
    Words(&'static [&'static str]),
    /// One of these words, possibly with a level: `zstd:3`.
    Leveled(&'static [&'static str]),
    /// Settings of its own, separated by commas.
    Settings(&'static [Allowed]),
}

/// A row of an option with one name.
pub(super) const fn row(names: &'static [&'static str], takes: Takes) -> Allowed {
    Allowed { names, takes }
}

/// The units of mkfs and mount: bytes to EiB, sectors, and blocks of the file system.
const UNITS: &str = "bBsSkKmMgGtTpPeE";
/// More than any level of compression.
const LEVEL_MAX: u64 = 22;

impl Takes {
    /// Why the value is not allowed, or none if it is.
    pub(super) fn refuses(self, value: &str) -> Option<String> {
        let is_among = |words: &[&str], word: &str| words.contains(&word);
        let fits = match self {
            Self::Nothing => false,
            Self::Number(max) => whole(value).is_some_and(|number| number <= max),
            Self::From(min, max) => whole(value).is_some_and(|number| (min..=max).contains(&number)),
            Self::Percent(max) => percent(value).is_some_and(|share| share <= f64::from(max)),
            Self::Size => whole(value.strip_suffix(|unit| UNITS.contains(unit)).unwrap_or(value)).is_some(),
            Self::Word(words) => is_among(words, value),
            Self::Words(words) => {
                value.split(',').all(|word| is_among(words, word.strip_prefix('^').unwrap_or(word)))
            }
            Self::Leveled(words) => match value.split_once(':') {
                Some((word, level)) => {
                    is_among(words, word) && whole(level).is_some_and(|level| level <= LEVEL_MAX)
                }
                None => is_among(words, value),
            },
            Self::Settings(rows) => {
                return value.split(',').find_map(|setting| refuses_setting(rows, setting));
            }
        };
        (!fits).then(|| format!("`{value}` is not {}", self.expected()))
    }

    /// What it takes, in words.
    pub(super) fn expected(self) -> String {
        match self {
            Self::Nothing => "possible: it takes no value".to_owned(),
            Self::Number(max) => format!("a whole number up to {max}"),
            Self::From(min, max) => format!("a whole number from {min} to {max}"),
            Self::Percent(max) => format!("a number up to {max}"),
            Self::Size => "a number with or without a unit, such as 65536 or 64k".to_owned(),
            Self::Word(words) => format!("one of {}", words.join(", ")),
            Self::Words(words) => format!("made of {} (a ^ before one turns it off)", words.join(", ")),
            Self::Leveled(words) => format!("one of {}, or one with a level, as in zstd:3", words.join(", ")),
            Self::Settings(rows) => format!("made of {}", names(rows)),
        }
    }
}

/// Why a setting (`NAME` or `NAME=VALUE`) is not allowed by these rows, or none if it is.
pub(super) fn refuses_setting(rows: &[Allowed], setting: &str) -> Option<String> {
    let (name, value) = setting.split_once('=').map_or((setting, None), |(name, value)| (name, Some(value)));
    let mut refusals = Vec::new();
    for allowed in rows.iter().filter(|allowed| allowed.names.contains(&name)) {
        refusals.push(match (allowed.takes, value) {
            (Takes::Nothing, None) => return None,
            (takes, Some(value)) => takes.refuses(value)?,
            (takes, None) => format!("it needs a value, {}", takes.expected()),
        });
    }
    Some(match refusals.pop() {
        Some(why) => format!("`{name}`: {why}"),
        None => format!("`{name}` is not allowed; these are: {}", names(rows)),
    })
}

/// The names of the rows, for a refusal.
pub(super) fn names<'a>(rows: impl IntoIterator<Item = &'a Allowed>) -> String {
    let mut names: Vec<&str> = Vec::new();
    for allowed in rows {
        // An option with and without a value has two rows.
        if !names.contains(&allowed.names[0]) {
            names.push(allowed.names[0]);
        }
    }
    names.join(", ")
}

/// A number made only of digits: `parse` would accept a sign, too.
fn whole(text: &str) -> Option<u64> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok())?
}

fn percent(text: &str) -> Option<f64> {
    let (whole_part, decimals) = text.split_once('.').unwrap_or((text, "0"));
    whole(whole_part)?;
    whole(decimals)?;
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_a_number_a_size_or_a_known_word_and_nothing_else() {
        let words = Takes::Words(&["a", "b"]);
        for (takes, value) in [
            (Takes::Number(8), "8"),
            (Takes::Percent(50), "0.5"),
            (Takes::Size, "64k"),
            (Takes::Size, "4096"),
            (Takes::Word(&["a", "b"]), "a"),
            (words, "a,^b"),
            (Takes::Leveled(&["zstd"]), "zstd:3"),
        ] {
            assert_eq!(takes.refuses(value), None, "{takes:?} {value}");
        }
        for (takes, value) in [
            (Takes::Nothing, "1"),
            (Takes::Number(8), "9"),
            (Takes::Number(8), "+1"),
            (Takes::Number(u64::MAX), "18446744073709551616"),
            (Takes::Percent(50), "nan"),
            (Takes::Percent(50), "51"),
            (Takes::Percent(50), ".5"),
            (Takes::Size, "k"),
            (Takes::Size, "64kk"),
            (Takes::Size, "-1"),
            (Takes::Size, "64µ"),
            (Takes::Word(&["a", "b"]), "a,b"),
            (words, ""),
            (words, "a,"),
            (words, "^^a"),
            (words, "/dev/sda"),
            (Takes::Leveled(&["zstd"]), "zstd:99"),
            (Takes::Leveled(&["zstd"]), "zstd:"),
        ] {
            assert!(takes.refuses(value).is_some(), "{takes:?} {value}");
        }
    }
}
