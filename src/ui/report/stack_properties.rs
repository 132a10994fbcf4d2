//! What a stack survives, holds and costs, and how much endurance it uses, as sentences.

use std::collections::BTreeMap;

use crate::meter::price::price_per_tb;
use crate::stack::plan::{
    DriveWear, Endurance, FewerDrives, PowerCut, PowerCutReason, Properties, Rated, Resilience,
};
use crate::units::{approx_decimal, approx_size, three_digits};

/// A smaller percentage is shown as less than this.
const PERCENT_MIN: f64 = 0.001;

/// What a stack survives, holds and costs.
pub fn properties(stack: &Properties) -> Vec<String> {
    let Resilience { power_cut, drives_lost, fewer } = &stack.resilience;
    let source = " (what the command layers leave is read from their device once it is there)";
    let (at_most, source) = if stack.at_most { ("at most ", source) } else { ("", "") };
    let mut sentences = vec![
        format!("survives a power cut: {} ({})", verdict(power_cut.verdict()), reason(power_cut)),
        match fewer {
            Some(why) => format!("survives the loss of drives: {drives_lost} ({})", fewer_drives(*why)),
            None => format!("survives the loss of drives: {drives_lost}"),
        },
        format!("usable: {at_most}{}{source}", approx_size(stack.usable_bytes)),
    ];
    if let Some(price) = stack.price {
        let per_tb = price_per_tb(price, stack.usable_bytes);
        let per_tb = per_tb.map_or_else(String::new, |per_tb| format!(", ${per_tb:.0} per usable TB"));
        sentences.push(format!("price: ${price:.0}{per_tb}"));
    }
    sentences.extend(stack.price_missing.map(str::to_owned));
    sentences
}

/// What a stack survives, without the reasons.
pub fn resilience(stack: &Resilience) -> String {
    let power_cut = verdict(stack.power_cut.verdict());
    format!("survives a power cut: {power_cut}, the loss of drives: {}", stack.drives_lost)
}

fn verdict(power_cut: PowerCut) -> &'static str {
    match power_cut {
        PowerCut::Yes => "yes",
        PowerCut::No => "no",
        PowerCut::Unknown => "unknown",
    }
}

fn reason(reason: &PowerCutReason) -> String {
    match reason {
        PowerCutReason::NotFlushed => "commits are not flushed (wal.sync is none)".into(),
        PowerCutReason::NoBarriers { option, volatile } => {
            format!("{option} keeps flushes from the volatile write caches of {volatile} drives")
        }
        PowerCutReason::LoopDevices => "loop devices: it depends on the file system below the files".into(),
        PowerCutReason::NoDrive => {
            "the WAL lies in a file or a folder of its own, not on a drive itself".into()
        }
        PowerCutReason::UnknownCache => "a drive does not report whether its write cache is volatile".into(),
        PowerCutReason::UnknownLayers => "what the command layers do with a flush is unknown".into(),
        PowerCutReason::Flushed { volatile: 0, .. } => {
            "commits are flushed, and no drive has a volatile write cache".into()
        }
        PowerCutReason::Flushed { volatile, drives } => format!(
            "commits are flushed, which empties the volatile write caches of {volatile} of {drives} drives"
        ),
    }
}

fn fewer_drives(why: FewerDrives) -> String {
    match why {
        FewerDrives::ParityUnknown => "with stack.assume_clean the parity was never computed".into(),
        FewerDrives::LayersUnknown => "at least: what the command layers survive is unknown".into(),
        FewerDrives::LostAlready(lost) => format!("{lost} already lost"),
    }
}

/// How much endurance a plan's writes use; drives with the same figures share a sentence.
pub fn wear(drives: &[DriveWear]) -> Vec<String> {
    let mut alike: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for DriveWear { drive, writes_bytes, endurance } in drives {
        alike.entry(wear_of(*writes_bytes, *endurance)).or_default().push(drive);
    }
    let line = |(text, names): (String, Vec<&str>)| {
        let each = if names.len() > 1 { " each" } else { "" };
        format!("{}{each}: {text}", names.join(", "))
    };
    alike.into_iter().map(line).collect()
}

fn wear_of(writes_bytes: u64, Endurance { rated, used_percent }: Endurance) -> String {
    let written = approx_size(writes_bytes);
    let share = rated.map(|rated| (share(writes_bytes, rated.bytes()), approx_decimal(rated.bytes())));
    let text = match (rated, share) {
        (Some(Rated::DataSheet(_)), Some((share, of))) => {
            format!("{written} written, {share} of the rated endurance of {of} (stack.endurance_tb)")
        }
        (_, Some((share, of))) => {
            format!("{written} written, {share} of the endurance of {of} that it estimates itself")
        }
        (_, None) => {
            format!("{written} written; its rated endurance is unknown (set stack.endurance_tb)")
        }
    };
    match used_percent {
        Some(percent) => format!("{text}; {percent}% used so far by its own count"),
        None => format!("{text}; how much is used so far is unknown"),
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

    #[test]
    fn the_share_of_endurance_is_shown_only_where_it_is_known() {
        let known = Endurance { rated: Some(Rated::DataSheet(1_200_000_000_000_000)), used_percent: Some(4) };
        let drive =
            |name: &str, writes_bytes, endurance| DriveWear { drive: name.into(), writes_bytes, endurance };
        let drives = [
            drive("nvme0n1", 12_000_000_000_000, known),
            drive("nvme1n1", 12_000_000_000_000, known),
            drive("nvme2n1", 1 << 30, Endurance::default()),
        ];
        assert_eq!(
            wear(&drives),
            [
                "nvme2n1: 1.00 GiB written; its rated endurance is unknown (set stack.endurance_tb); \
                 how much is used so far is unknown",
                "nvme0n1, nvme1n1 each: 10.9 TiB written, 1.00% of the rated endurance of 1.20 PB \
                 (stack.endurance_tb); 4% used so far by its own count",
            ]
        );
        assert!(wear(&[]).is_empty(), "files have no drives of their own");
    }

    #[test]
    fn a_small_share_is_not_none() {
        assert_eq!(share(1, 1_000_000_000_000), "less than 0.001%");
        assert_eq!(share(50, 1_000_000), "0.005%");
        assert_eq!(share(2_500, 1_000_000), "0.25%");
        assert_eq!(share(3, 2), "150%");
    }

    #[test]
    fn what_is_survived_is_shown_with_the_reason() {
        let resilience = Resilience {
            power_cut: PowerCutReason::NoBarriers { option: "nobarrier".into(), volatile: 2 },
            drives_lost: 0,
            fewer: Some(FewerDrives::LostAlready(1)),
        };
        let stack = Properties {
            resilience,
            usable_bytes: 1 << 40,
            at_most: false,
            price: Some(500.0),
            price_missing: None,
        };
        assert_eq!(
            properties(&stack),
            [
                "survives a power cut: no (nobarrier keeps flushes from the volatile write caches of 2 drives)",
                "survives the loss of drives: 0 (1 already lost)",
                "usable: 1.00 TiB",
                "price: $500, $455 per usable TB",
            ]
        );
    }
}
