//! What a sweep would run, build, write and destroy, shown in advance.

use std::fmt::Write as _;

use serde::Serialize;

use super::output::{print, print_json};
use crate::error::Result;
use crate::host::Facts;
use crate::runs::session::plan_shown;
use crate::runs::session::{Options, PlanShown};
use crate::runs::sweep::{Schedule, planned_writes, run_settings};
use crate::settings::Profile;
use crate::settings::knobs::Conditions;
use crate::settings::profile::{by_identity, check};
use crate::ui::report::{self, PlanFile};
use crate::units::{approx_size, approx_span};

/// What is known about a sweep before it runs.
struct Outlook {
    schedule: Schedule,
    targets: Vec<Target>,
    /// Seconds of warm-up, measuring and idle time.
    load_s: f64,
    load_writes_bytes: u64,
    /// Whether a class has neither rate nor limit, and so writes more.
    unlimited: bool,
    /// What this host can't do: the step and why.
    problems: Vec<(String, String)>,
    /// Rows without a step: label and reason.
    left_out: Vec<(String, String)>,
}

/// What opening a target takes, or why it can't be opened.
struct Target {
    openings: usize,
    plan: std::result::Result<PlanShown, String>,
}

/// What `--dry-run --json` prints of a sweep.
#[derive(Debug, Serialize)]
struct OutlookFile<'a> {
    schedule: &'a Schedule,
    targets: Vec<TargetFile<'a>>,
    load_s: f64,
    load_writes_bytes: u64,
    load_writes_unlimited: bool,
    opening_writes_bytes: Option<u64>,
    problems: Vec<WhyFile<'a>>,
    left_out: Vec<WhyFile<'a>>,
}

#[derive(Debug, Serialize)]
struct TargetFile<'a> {
    openings: usize,
    plan: Option<PlanFile<'a>>,
    why_not: Option<&'a str>,
}

#[derive(Debug, Serialize)]
struct WhyFile<'a> {
    step: &'a str,
    why: &'a str,
}

/// Prints what would be run and built, and does nothing. The rows without a step are listed with the reason.
pub(super) fn dry_run(
    (profile, left_out): (&Profile, &[(String, String)]),
    options: &Options,
    facts: &Facts,
    json: bool,
) -> Result<()> {
    let outlook = Outlook::of((profile, left_out), options, facts)?;
    if json { print_json(&outlook.file()) } else { print(&outlook.text()) }
}

impl Outlook {
    fn of(
        (profile, left_out): (&Profile, &[(String, String)]),
        options: &Options,
        facts: &Facts,
    ) -> Result<Self> {
        let schedule = Schedule::of(profile, options.read_only, 0)?;
        let sweep = profile.sweep.clone().unwrap_or_default();
        let steps = run_settings(&profile.settings, &sweep.all_steps());
        let steps: Vec<_> = steps.iter().map(|step| by_identity(step, facts)).collect();
        let count = schedule.runs.iter().map(|run| run.target).max().map_or(0, |last| last + 1);
        let target = |target| {
            let run = schedule.runs.iter().find(|run| run.target == target)?;
            let plan = plan_shown(&steps[run.step], facts).map_err(|error| error.to_string());
            Some(Target { openings: schedule.openings(target, sweep.between.rebuild), plan })
        };
        let problems = schedule.steps.iter().zip(&steps).flat_map(|(step, settings)| {
            let problems = check(settings, Conditions { facts, target: None });
            problems.into_iter().map(|problem| (step.label.clone(), problem.to_string()))
        });
        let writes = planned_writes(&schedule, &steps);
        Ok(Self {
            targets: (0..count).filter_map(target).collect(),
            problems: problems.collect(),
            load_s: schedule.seconds(sweep.between.idle.as_secs_f64()),
            load_writes_bytes: writes.bytes,
            unlimited: writes.unlimited,
            left_out: left_out.to_vec(),
            schedule,
        })
    }

    /// Bytes that building and filling all targets writes, at most; none if unknown.
    fn opening_writes_bytes(&self) -> Option<u64> {
        let of = |target: &Target| {
            let Ok(plan) = &target.plan else { return Some(0) };
            // A stack that is built is filled each time; plain files and devices stay filled.
            let fills = if plan.properties.is_some() { target.openings as u64 } else { 1 };
            Some(plan.writes_bytes? * fills)
        };
        self.targets.iter().map(of).sum()
    }

    fn text(&self) -> String {
        let mut text = report::schedule(&self.schedule);
        for (number, target) in self.targets.iter().enumerate() {
            let openings = target.openings;
            let times = if openings == 1 { "once".to_owned() } else { format!("{openings} times") };
            let _ = writeln!(text, "\ntarget {}, opened {times}", number + 1);
            match &target.plan {
                Ok(plan) => text += &report::plan(plan),
                Err(why) => _ = writeln!(text, "  not possible: {why}"),
            }
        }
        let unlimited =
            if self.unlimited { ", and more where a class has neither rate nor limit" } else { "" };
        let written = approx_size(self.load_writes_bytes);
        let filled = self.opening_writes_bytes();
        let filled =
            filled.map_or("an unknown amount".to_owned(), |bytes| format!("up to {}", approx_size(bytes)));
        let _ = write!(
            text,
            "\n{} runs: {} of warm-up, measuring and idle time;\n\
             building, filling and cooling are extra\n\
             the load writes up to {written}{unlimited};\n\
             building and filling writes {filled} (run.max_writes holds for each run)\n",
            self.schedule.runs.len(),
            approx_span(self.load_s),
        );
        for (step, problem) in &self.problems {
            let _ = writeln!(text, "! {step}: {problem}");
        }
        for (row, why) in &self.left_out {
            let _ = writeln!(text, "row {row} is left out: {why}");
        }
        text
    }

    fn file(&self) -> OutlookFile<'_> {
        let targets = self.targets.iter().map(|target| TargetFile {
            openings: target.openings,
            plan: target.plan.as_ref().ok().map(PlanFile::from),
            why_not: target.plan.as_ref().err().map(String::as_str),
        });
        OutlookFile {
            schedule: &self.schedule,
            targets: targets.collect(),
            load_s: self.load_s,
            load_writes_bytes: self.load_writes_bytes,
            load_writes_unlimited: self.unlimited,
            opening_writes_bytes: self.opening_writes_bytes(),
            problems: whys(&self.problems),
            left_out: whys(&self.left_out),
        }
    }
}

fn whys(whys: &[(String, String)]) -> Vec<WhyFile<'_>> {
    whys.iter().map(|(step, why)| WhyFile { step, why }).collect()
}
