//! How many drives two recorded stacks would take for a data set and a throughput (Didona et al. 2021, Figures 7c
//! and 9), drawn as a map.
//!
//! A recording is an *instance*: its stack on its drives. It holds `usable bytes / space amplification` of data (the
//! largest amplification seen) and delivers the MB/s that it reached: in its steady state if it had one, else over the
//! whole run, which the map says. For a data set of D bytes and a throughput of T it takes `drives × max(⌈D / data of
//! an instance⌉, ⌈T / MB/s of an instance⌉)` drives: as in the paper, instances add up, and each is assumed to perform
//! the same however full it is.

use std::fmt;

use serde::Serialize;

use super::cells::{WIDTH, left, paragraph, right};
use crate::error::{Error, Result};
use crate::json;
use crate::runs::pitfalls::Circumstances;
use crate::runs::record::Recording;
use crate::units::{approx_decimal, three_digits};

const LABEL_WIDTH: usize = 10;
const CELL_WIDTH: usize = 7;
/// Steps on each axis.
const STEPS: usize = 10;
/// By default, each axis ends at this multiple of the larger instance.
const INSTANCES: f64 = 10.0;

/// What matters here about a recorded stack.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Instance {
    /// Its letter: `A` or `B`.
    pub label: char,
    /// Its folder's name.
    pub name: String,
    /// Its drives.
    pub drives: u64,
    /// Bytes of data that it holds.
    pub data_bytes: u64,
    /// Maximum space amplification; none without a file system, and then nothing is lost to it.
    pub space_amplification: Option<f64>,
    /// Decimal MB per second of all classes.
    pub mb_per_s: f64,
    /// Whether that is its steady state's.
    pub steady: bool,
}

/// How many drives each of two stacks needs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CostMap {
    /// The two stacks.
    pub instances: [Instance; 2],
    /// The data sets, in bytes, from the left.
    pub data_bytes: Vec<u64>,
    /// The throughputs, in MB per second, from the bottom.
    pub mb_per_s: Vec<f64>,
    /// The drives that each of the two needs, by throughput and data set.
    pub drives: Vec<Vec<[u64; 2]>>,
}

impl Instance {
    fn of(label: char, recording: &Recording) -> Result<Self> {
        let summary = &recording.summary;
        let lacks = |what: &str| {
            Error::input(format!("{} {what}", recording.name()))
                .hint("name recordings of loads on dedicated drives, made by this version")
        };
        let circumstances: Circumstances = json::read_value(&recording.host["circumstances"])
            .map_err(|_| lacks("does not name its drives"))?;
        if circumstances.drives.is_empty() || !circumstances.own {
            return Err(lacks("has no dedicated drives"));
        }
        let capacity: u64 = circumstances.drives.iter().map(|drive| drive.size_bytes).sum();
        let usable_bytes = recording.host["usable_bytes"]
            .as_u64()
            .unwrap_or(capacity / 100 * circumstances.use_percent.min(100));
        let space = summary.space_amplification;
        let steady = summary.steady.steady.as_ref();
        let mb_per_s = steady.map_or(summary.total.mb_per_s, |steady| steady.mb_per_s);
        let data_bytes = (usable_bytes as f64 / space.unwrap_or(1.0).max(1.0)) as u64;
        if data_bytes == 0 || mb_per_s <= 0.0 {
            return Err(lacks("holds or moves nothing"));
        }
        Ok(Self {
            label,
            name: recording.name(),
            drives: circumstances.drives.len() as u64,
            data_bytes,
            space_amplification: space,
            mb_per_s,
            steady: steady.is_some(),
        })
    }

    /// The drives needed for that much data at that throughput.
    pub fn drives_for(&self, data_bytes: u64, mb_per_s: f64) -> u64 {
        let for_throughput = (mb_per_s / self.mb_per_s - 1e-9).ceil().max(1.0) as u64;
        self.drives * data_bytes.div_ceil(self.data_bytes).max(for_throughput)
    }
}

impl CostMap {
    /// The map of two recordings, up to the given data set and throughput.
    ///
    /// # Errors
    /// Of the kind `Input` if a recording has no dedicated drives, or moved nothing.
    pub fn of(recordings: [&Recording; 2], data_bytes: Option<u64>, mb_per_s: Option<f64>) -> Result<Self> {
        let [a, b] = recordings;
        let instances = [Instance::of('A', a)?, Instance::of('B', b)?];
        let most = |of: fn(&Instance) -> f64| instances.iter().map(of).fold(0.0, f64::max) * INSTANCES;
        let data_most = data_bytes.map_or_else(|| most(|i| i.data_bytes as f64), |bytes| bytes as f64);
        let rate_most = mb_per_s.unwrap_or_else(|| most(|i| i.mb_per_s));
        let step = |most: f64, at: usize| most * at as f64 / STEPS as f64;
        let data_bytes: Vec<u64> =
            (1..=STEPS).map(|at| step(data_most, at).round().max(1.0) as u64).collect();
        let mb_per_s: Vec<f64> = (1..=STEPS).map(|at| step(rate_most, at)).collect();
        let drives = |rate: f64, data: u64| instances.each_ref().map(|of| of.drives_for(data, rate));
        let drives = mb_per_s
            .iter()
            .map(|rate| data_bytes.iter().map(|data| drives(*rate, *data)).collect())
            .collect();
        Ok(Self { instances, data_bytes, mb_per_s, drives })
    }
}

impl fmt::Display for CostMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for of in &self.instances {
            let space = of.space_amplification.map_or_else(String::new, |x| format!(" at space × {x:.2}"));
            let steady = if of.steady { "steady" } else { "not steady" };
            let drives = if of.drives == 1 { "drive" } else { "drives" };
            let text = format!(
                "{}  {}: {} {drives}, {}{space}, {} MB/s ({steady})",
                of.label,
                of.name,
                of.drives,
                approx_decimal(of.data_bytes),
                three_digits(of.mb_per_s)
            );
            writeln!(f, "{}", paragraph(&text, WIDTH, "   "))?;
        }
        writeln!(f, "\n{}fewer drives", left("MB/s", LABEL_WIDTH))?;
        for (rate, row) in self.mb_per_s.iter().zip(&self.drives).rev() {
            let cells: String = row.iter().map(|cell| right(&fewer(*cell), CELL_WIDTH)).collect();
            writeln!(f, "{}{cells}", left(&three_digits(*rate), LABEL_WIDTH))?;
        }
        // Every other one, as a size takes more than one cell.
        let sizes = self.data_bytes.iter().skip(1).step_by(2);
        let sizes: String = sizes.map(|bytes| right(&approx_decimal(*bytes), 2 * CELL_WIDTH)).collect();
        writeln!(f, "{}{sizes}", left("data", LABEL_WIDTH))?;
        let text = "A or B with its number of drives where it needs fewer, = where both need as many. A \
                    back-of-the-envelope estimate: instances add up, and each performs the same however full it is.";
        writeln!(f, "\n{}", paragraph(text, WIDTH, ""))
    }
}

/// Which one needs fewer, and how many.
fn fewer([a, b]: [u64; 2]) -> String {
    match a.cmp(&b) {
        std::cmp::Ordering::Less => format!("A{a}"),
        std::cmp::Ordering::Greater => format!("B{b}"),
        std::cmp::Ordering::Equal => format!("={a}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn instance(label: char, drives: u64, data_bytes: u64, mb_per_s: f64) -> Instance {
        Instance {
            label,
            name: label.into(),
            drives,
            data_bytes,
            space_amplification: None,
            mb_per_s,
            steady: true,
        }
    }

    #[test]
    fn drives_are_bought_for_the_data_or_for_the_throughput() {
        // About as in Figure 7: RocksDB does 3 kops/s and holds less, WiredTiger does 1.3 and holds more.
        let (fast, roomy) = (instance('A', 1, 215, 3.0), instance('B', 1, 350, 1.3));
        assert_eq!((fast.drives_for(1000, 1.0), roomy.drives_for(1000, 1.0)), (5, 3), "much data");
        assert_eq!((fast.drives_for(300, 13.0), roomy.drives_for(300, 13.0)), (5, 10), "much work");
        assert_eq!((fast.drives_for(1, 3.0), fast.drives_for(1, 3.001)), (1, 2));
        assert_eq!(instance('A', 4, 215, 3.0).drives_for(216, 0.1), 8, "whole arrays");
        assert_eq!([fewer([2, 3]), fewer([3, 2]), fewer([3, 3])], ["A2", "B2", "=3"]);
    }
}
