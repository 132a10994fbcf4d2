//! Distributions as box plots, as in R's `boxplot.stats`.

/// A distribution in five numbers, with its whiskers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Five {
    /// How many values there are.
    pub count: u64,
    /// Their sum.
    pub sum: u128,
    /// Minimum, lower hinge, median, upper hinge and maximum: Tukey's five numbers (R's `fivenum`).
    pub numbers: [f64; 5],
    /// The most extreme values within 1.5 times the distance between the hinges, measured from them.
    pub whiskers: [u64; 2],
}

/// How far whiskers reach, in distances between the hinges.
const REACH: f64 = 1.5;

impl Five {
    /// Of values in any order; `None` if there are none.
    pub fn of(mut values: Vec<u64>) -> Option<Self> {
        values.sort_unstable();
        let (&least, &most) = (values.first()?, values.last()?);
        let count = values.len();
        // Positions count from 1, and may be halfway between two values.
        let at = |twice: usize| {
            let [low, high] = [twice / 2, twice.div_ceil(2)].map(|place| values[place - 1] as f64);
            f64::midpoint(low, high)
        };
        let hinge = count.div_ceil(2) + 1;
        let numbers = [least as f64, at(hinge), at(count + 1), at(2 * (count + 1) - hinge), most as f64];
        let reach = REACH * (numbers[3] - numbers[1]);
        let is_near = |value: &&u64| (numbers[1] - reach..=numbers[3] + reach).contains(&(**value as f64));
        let whiskers = [values.iter().find(is_near), values.iter().rev().find(is_near)];
        Some(Self {
            count: count as u64,
            sum: values.iter().map(|value| u128::from(*value)).sum(),
            numbers,
            whiskers: whiskers.map(|value| value.copied().unwrap_or(least)),
        })
    }

    /// The median.
    pub fn median(&self) -> f64 {
        self.numbers[2]
    }
}
