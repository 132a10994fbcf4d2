//! What a run amplified, whether it is steady and how much it varied, in sentences.

use crate::class::Class;
use crate::host::FlashSource;
use crate::meter::whole_run::steady_state::{Mean, Steadiness};
use crate::meter::whole_run::variability::Variability;
use crate::meter::written::Written;
use crate::units::{approx_span, three_digits};

/// Write and space amplification, one line each; omitted if nothing was written or counted.
pub fn amplification(written: &Written) -> Vec<String> {
    let mut lines = Vec::new();
    if written.application_bytes > 0 {
        lines.push(wa_a(written));
        lines.push(wa_d(written));
    }
    if let Some(most) = written.space_amplification() {
        let now = written.used_bytes.map_or_else(String::new, |bytes| {
            format!(", {:.2} × at the end", bytes as f64 / written.data_set_bytes.max(1) as f64)
        });
        lines.push(format!("space {most:.2} × the data set at most{now}"));
    }
    lines
}

fn wa_a(written: &Written) -> String {
    let Some(wa_a) = written.wa_a() else {
        return "WA-A unknown: the block layer did not count all writes".into();
    };
    let parts = written.parts();
    let parts = [("engine", parts.engine), ("file system", parts.file_system), ("RAID", parts.raid)];
    let parts: Vec<String> = parts
        .into_iter()
        .filter_map(|(name, part)| Some(format!("{name} {}", three_digits(part?))))
        .collect();
    format!("WA-A {} = {}", three_digits(wa_a), parts.join(" × "))
}

fn wa_d(written: &Written) -> String {
    match (written.wa_d(), written.wa_total(), written.host_bytes) {
        (Some(wa_d), total, _) => {
            let source = written.flash_source.map_or_else(String::new, |source| {
                let of = match source {
                    FlashSource::Ocp => "OCP's log page",
                    FlashSource::Intel => "Intel's log page",
                    FlashSource::Samsung => "Samsung's log page",
                    FlashSource::Micron => "Micron's log page",
                    FlashSource::Wdc => "WDC's log page",
                    FlashSource::Model => "by model",
                };
                format!(" ({of})")
            });
            let others = |share: f64| {
                format!("; includes others' writes: {:.0}% of what the drives took", share * 100.0)
            };
            let total = match (total, written.others()) {
                (Some(total), _) => format!("; end to end {}", three_digits(total)),
                (None, Some(share)) => others(share),
                (None, None) => String::new(),
            };
            format!("WA-D {}{source}{total}", three_digits(wa_d))
        }
        (None, _, Some(_)) => "WA-D unknown: too little written yet".into(),
        (None, _, None) => "WA-D not reported by this drive".into(),
    }
}

/// Whether it is steady, what it still waits for, and its first figures beside its last; none before anything was
/// measured.
pub fn steadiness(of: &Steadiness) -> Vec<String> {
    if !of.is_known() {
        return Vec::new();
    }
    let waits = of.waits_for().map_or_else(String::new, |waits| format!(": {waits}"));
    let mut lines = vec![format!("{of}{waits}")];
    if let (Some(burst), Some(steady)) = (&of.burst, &of.steady) {
        let figure = of.figures.first().map_or("", String::as_str);
        lines.push(format!("burst {}; steady {}", mean(burst, figure), mean(steady, figure)));
    }
    lines
}

/// The means over a span; `figure` names a program's.
fn mean(of: &Mean, figure: &str) -> String {
    let (from, to) = (approx_span(of.from_s), approx_span(of.to_s));
    let ratio =
        |name: &str, x: Option<f64>| x.map_or_else(String::new, |x| format!(", {name} {}", three_digits(x)));
    let (wa_a, wa_d) = (ratio("WA-A", of.wa_a), ratio("WA-D", of.wa_d));
    let rate = match of.reported {
        Some(reported) => format!("{figure} {}", three_digits(reported)),
        None => format!("{} MB/s, {} IOPS", three_digits(of.mb_per_s), three_digits(of.iops)),
    };
    format!("{rate}{wa_a}{wa_d} ({from} to {to})")
}

/// How much the throughput varied; none if the run is too short.
pub fn variability(of: &Variability) -> Option<String> {
    let (swing, deviation) = (of.swing?, of.deviation?);
    let stalled = Class::ALL.into_iter().filter_map(|class| {
        let s = of.classes_stalled_s[class.index()];
        (s > 0.0).then(|| format!("{class} {}", approx_span(s)))
    });
    let stalled: Vec<String> = stalled.collect();
    let progress = match stalled.as_slice() {
        [] => "; always some progress".to_owned(),
        some => format!("; without progress: {}", some.join(", ")),
    };
    let [swing, deviation] = [swing, deviation].map(|share| share * 100.0);
    Some(format!("means of {} s swing by {swing:.0}%, deviation {deviation:.0}%{progress}", of.of_s))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meter::whole_run::steady_state::SteadyState;

    #[test]
    fn amplification_is_shown_with_its_parts_and_what_is_unknown() {
        let written = Written {
            application_bytes: 100,
            engine_bytes: 100,
            top_bytes: Some(102),
            drives_bytes: Some(204),
            data_set_bytes: 100,
            used_bytes: Some(110),
            used_bytes_max: Some(139),
            ..Written::default()
        };
        assert_eq!(
            amplification(&written),
            [
                "WA-A 2.04 = engine 1.00 × file system 1.02 × RAID 2.00",
                "WA-D not reported by this drive",
                "space 1.39 × the data set at most, 1.10 × at the end",
            ]
        );
        let reported = Written {
            host_bytes: Some(210),
            flash_bytes: Some(420),
            drives_of_host_bytes: Some(204),
            flash_unit_bytes: Some(1),
            flash_source: Some(FlashSource::Ocp),
            ..written.clone()
        };
        assert_eq!(amplification(&reported)[1], "WA-D 2.00 (OCP's log page); end to end 4.08");
        let shared = Written { host_bytes: Some(408), flash_bytes: Some(816), ..reported };
        let words = "WA-D 2.00 (OCP's log page); includes others' writes: 50% of what the drives took";
        assert_eq!(amplification(&shared)[1], words);
        let unseen = Written { drives_bytes: None, used_bytes_max: None, ..written };
        assert_eq!(amplification(&unseen)[0], "WA-A unknown: the block layer did not count all writes");
        assert!(amplification(&Written::default()).is_empty());
    }

    #[test]
    fn burst_and_steady_figures_are_shown_side_by_side() {
        let mean = |from_s: f64, mb_per_s: f64| {
            Some(Mean {
                from_s,
                to_s: from_s + 600.0,
                mb_per_s,
                iops: 50.0,
                wa_a: Some(3.0),
                wa_d: None,
                reported: None,
            })
        };
        let of = Steadiness {
            state: SteadyState::Steady,
            at_s: Some(900.0),
            figures: vec!["wal MB/s".into()],
            burst: mean(0.0, 300.0),
            steady: mean(1200.0, 100.0),
            ..Steadiness::default()
        };
        assert_eq!(
            steadiness(&of),
            [
                "steady since 15m 00s",
                "burst 300 MB/s, 50.0 IOPS, WA-A 3.00 (0s to 10m 00s); steady 100 MB/s, 50.0 IOPS, WA-A 3.00 (20m 00s to 30m 00s)",
            ]
        );
        assert!(steadiness(&Steadiness::default()).is_empty());
    }

    #[test]
    fn variability_names_the_classes_that_stood_still() {
        let mut of = Variability {
            of_s: 60,
            spans: 9,
            swing: Some(1.04),
            deviation: Some(0.3),
            ..Variability::default()
        };
        assert_eq!(
            variability(&of).unwrap(),
            "means of 60 s swing by 104%, deviation 30%; always some progress"
        );
        of.classes_stalled_s[2] = 12.0;
        assert!(variability(&of).unwrap().ends_with("; without progress: wal 12s"));
        assert_eq!(variability(&Variability::default()), None);
    }
}
