//! How much of its drives' life a plan takes.

use std::collections::BTreeMap;

use super::model::Destroyed;
use crate::host::{Device, Health};
use crate::settings::Settings;
use crate::units::{approx_decimal, approx_size, three_digits};

/// Below so many percent a share is told as less than that.
const PERCENT_MIN: f64 = 0.001;

/// What is known of a drive's endurance.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Wear {
    /// Bytes that may be written to it over its life.
    pub rated: Option<Rated>,
    /// The share that is used so far by its own count, in percent.
    pub used_percent: Option<u8>,
}

/// Bytes that may be written to a drive over its life, and who says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rated {
    /// The operator, from the data sheet.
    Told(u64),
    /// The drive.
    Estimated(u64),
}

impl Rated {
    pub(super) fn bytes(self) -> u64 {
        match self {
            Self::Told(bytes) | Self::Estimated(bytes) => bytes,
        }
    }
}

/// What is known of a drive's endurance by the settings, and else by the drive.
pub(super) fn wear(settings: &Settings, device: &Device) -> Wear {
    wear_by(settings, crate::host::health(device).as_ref())
}

fn wear_by(settings: &Settings, health: Option<&Health>) -> Wear {
    let told_bytes = (settings.stack.endurance_tb * 1e12) as u64;
    let told = (told_bytes > 0).then_some(Rated::Told(told_bytes));
    let estimated = || health.and_then(|health| health.endurance_bytes).map(Rated::Estimated);
    Wear { rated: told.or_else(estimated), used_percent: health.map(|health| health.used_percent) }
}

/// What the plan's writes take of each drive's life; drives of which the same is told share a sentence.
pub(super) fn sentences(drives: &[(Destroyed, Wear)]) -> Vec<String> {
    let mut told: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (destroyed, wear) in drives {
        told.entry(sentence(destroyed.writes_bytes, *wear)).or_default().push(&destroyed.drive.name);
    }
    let line = |(text, names): (String, Vec<&str>)| {
        let each = if names.len() > 1 { " each" } else { "" };
        format!("{}{each}: {text}", names.join(", "))
    };
    told.into_iter().map(line).collect()
}

fn sentence(writes_bytes: u64, Wear { rated, used_percent }: Wear) -> String {
    let written = approx_size(writes_bytes);
    let share = rated.map(|rated| (share(writes_bytes, rated.bytes()), approx_decimal(rated.bytes())));
    let text = match (rated, share) {
        (Some(Rated::Told(_)), Some((share, of))) => {
            format!("{written} written, {share} of the rated endurance of {of} (stack.endurance_tb)")
        }
        (_, Some((share, of))) => {
            format!("{written} written, {share} of the {of} that it estimates for its life")
        }
        (_, None) => {
            format!("{written} written; its rated endurance is not known (stack.endurance_tb tells it)")
        }
    };
    match used_percent {
        Some(percent) => format!("{text}; {percent}% used so far by its own count"),
        None => format!("{text}; what is used so far is not told"),
    }
}

fn share(bytes: u64, of_bytes: u64) -> String {
    match bytes as f64 / of_bytes as f64 * 100.0 {
        percent if percent >= 0.1 => format!("{}%", three_digits(percent)),
        percent if percent >= PERCENT_MIN => format!("{percent:.3}%"),
        _ => format!("less than {PERCENT_MIN}%"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stack::devices::Drive;

    fn destroyed(name: &str, writes_bytes: u64) -> Destroyed {
        let drive = Drive {
            name: name.into(),
            path: format!("/dev/{name}").into(),
            number: "259:0".into(),
            model: None,
            serial: None,
            size_bytes: 1 << 40,
        };
        Destroyed { drive, content: Vec::new(), writes_bytes, rated_bytes: None }
    }

    #[test]
    fn the_share_of_a_drives_life_is_told_where_it_is_known_and_never_guessed() {
        let known = Wear { rated: Some(Rated::Told(1_200_000_000_000_000)), used_percent: Some(4) };
        let drives = [
            (destroyed("nvme0n1", 12_000_000_000_000), known),
            (destroyed("nvme1n1", 12_000_000_000_000), known),
            (destroyed("nvme2n1", 1 << 30), Wear::default()),
        ];
        assert_eq!(
            sentences(&drives),
            [
                "nvme2n1: 1.00 GiB written; its rated endurance is not known (stack.endurance_tb tells it); \
                 what is used so far is not told",
                "nvme0n1, nvme1n1 each: 10.9 TiB written, 1.00% of the rated endurance of 1.20 PB \
                 (stack.endurance_tb); 4% used so far by its own count",
            ]
        );
        assert!(sentences(&[]).is_empty(), "files have no drives of their own");
    }

    #[test]
    fn the_data_sheet_counts_before_the_drives_own_estimate() {
        let mut settings = Settings::default();
        assert_eq!(wear_by(&settings, None), Wear::default());
        let mut health = crate::host::health_tests::calm(None);
        assert_eq!(wear_by(&settings, Some(&health)), Wear { rated: None, used_percent: Some(0) });
        health.endurance_bytes = Some(7_000_000_000_000);
        assert_eq!(wear_by(&settings, Some(&health)).rated, Some(Rated::Estimated(7_000_000_000_000)));
        settings.stack.endurance_tb = 600.0;
        assert_eq!(wear_by(&settings, Some(&health)).rated, Some(Rated::Told(600_000_000_000_000)));
    }

    #[test]
    fn a_small_share_is_not_none() {
        assert_eq!(share(1, 1_000_000_000_000), "less than 0.001%");
        assert_eq!(share(50, 1_000_000), "0.005%");
        assert_eq!(share(2_500, 1_000_000), "0.25%");
        assert_eq!(share(3, 2), "150%");
    }
}
