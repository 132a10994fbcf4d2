//! A condition of the host under which a run ends itself: `psi.io.some > 5%`.

use std::str::FromStr;
use std::time::{Duration, Instant};

use crate::meter::programs::program_probe::Pressure;

/// The shortest time over which a share is taken.
const SPAN: Duration = Duration::from_millis(450);

/// A total of time.
type Waited = fn(&Pressure) -> Option<u64>;

/// The possible conditions; each is a share of time in which the host's tasks waited.
const KINDS: [(&str, Waited); 4] = [
    ("psi.cpu.some", |of| of.cpu_some_ns),
    ("psi.io.some", |of| of.io_some_ns),
    ("psi.io.full", |of| of.io_full_ns),
    ("psi.memory.some", |of| of.memory_some_ns),
];

/// A condition.
#[derive(Debug, Clone, PartialEq)]
pub struct StopIf {
    kind: usize,
    percent: f64,
    last: Option<(Instant, u64)>,
}

impl Eq for StopIf {}

impl FromStr for StopIf {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            let kinds: Vec<_> = KINDS.iter().map(|(name, _)| *name).collect();
            format!("write it like `psi.io.some > 5%`; there are {}", kinds.join(", "))
        };
        let (name, share) = text.split_once('>').ok_or_else(wrong)?;
        let kind = KINDS.iter().position(|(known, _)| *known == name.trim()).ok_or_else(wrong)?;
        let percent = share.trim().strip_suffix('%').and_then(|share| share.trim().parse::<f64>().ok());
        let percent = percent.filter(|percent| (0.0..100.0).contains(percent)).ok_or_else(wrong)?;
        Ok(Self { kind, percent, last: None })
    }
}

impl StopIf {
    /// Whether this kernel counts it.
    pub fn is_known(&self) -> bool {
        (KINDS[self.kind].1)(&Pressure::read()).is_some()
    }

    /// Why the run is to end now; none if it goes on.
    pub fn look(&mut self) -> Option<String> {
        let now = Instant::now();
        if self.last.is_some_and(|(at, _)| now.duration_since(at) < SPAN) {
            return None;
        }
        let waited_ns = (KINDS[self.kind].1)(&Pressure::read())?;
        let (since, before_ns) = self.last.replace((now, waited_ns))?;
        let ns = now.duration_since(since).as_nanos() as f64;
        let percent = waited_ns.saturating_sub(before_ns) as f64 / ns * 100.0;
        let (name, limit) = (KINDS[self.kind].0, self.percent);
        (percent > limit).then(|| format!("stopped by --stop-if: {name} was {percent:.1}%, above {limit}%"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_is_a_kind_and_a_share() {
        let parsed: StopIf = "psi.io.some > 5%".parse().unwrap();
        assert_eq!((parsed.kind, parsed.percent), (1, 5.0));
        assert!("psi.cpu.some>0.5%".parse::<StopIf>().is_ok());
        for wrong in
            ["psi.io.some", "psi.io > 5%", "psi.io.some > 5", "psi.io.some > 100%", "psi.io.some > x%", ""]
        {
            assert!(wrong.parse::<StopIf>().unwrap_err().contains("psi.io.full"), "{wrong}");
        }
    }

    #[test]
    fn it_is_looked_at_over_a_span() {
        let mut of: StopIf = "psi.io.some > 0%".parse().unwrap();
        assert_eq!(of.look(), None, "not since when");
        if of.is_known() {
            of.last = Some((Instant::now().checked_sub(2 * SPAN).unwrap(), 0));
            assert!(of.look().unwrap().contains("psi.io.some was"), "since the host began it has waited");
            assert_eq!(of.look(), None, "too soon");
        }
    }
}
