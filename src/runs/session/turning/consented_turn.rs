//! Turns under load that destroy data: shown as a plan, and carried out once the operator has agreed.
//!
//! There is only one: failing a member of the stack's array, which loses everything on it.

use std::sync::Arc;

use super::turns::Pending;
use crate::runs::session::message::{Event, PlanShown};
use crate::runs::session::opening::consent::wanted_of;
use crate::runs::session::resolve::Resolved;
use crate::runs::session::run::Session;
use crate::settings::ArrayState;
use crate::settings::knobs::{self, Value};
use crate::stack::devices::Drive;
use crate::stack::guard::Consent;
use crate::stack::plan::properties;
use crate::stack::tuning::FailingArray;

impl Session {
    /// Turns a knob as an operator asks; if that destroys data, the plan is shown instead.
    pub(in crate::runs::session) fn turn_or_plan(&mut self, path: &str, value: &Value) {
        let planned =
            self.destroying(path, value).map(|(turned, drive)| self.plan_turn(path, &turned, &drive));
        let Some(shown) = planned else { return self.turn(path, value) };
        self.turns.pending = Some(Pending {
            number: shown.number,
            settings: self.resolved.settings.clone(),
            unused_steps: self.resolved.options.unused_steps,
            from: Vec::new(),
            agreed: None,
            live: Some((path.to_owned(), value.clone())),
            opens: false,
        });
        self.report(Event::Planned(Ok(Arc::new(shown))));
    }

    /// Whether a turn destroys data that no plan of this run has named.
    pub(in crate::runs::session) fn destroys(&self, path: &str, value: &Value) -> bool {
        self.destroying(path, value).is_some()
    }

    /// Takes the plan that was shown under that number. A turn under load is carried out; a rebuild is returned.
    pub(in crate::runs::session) fn agreed(
        &mut self,
        number: u64,
        typed: Vec<String>,
    ) -> Option<(Pending, Vec<String>)> {
        let Some(pending) = self.take_plan(number) else {
            self.notice("that plan is no longer current: plan again".into());
            return None;
        };
        let Some((path, value)) = pending.live.clone() else { return Some((pending, typed)) };
        let consent = Consent::default().and_typed(&typed);
        let drive = self.host.failing_array().and_then(FailingArray::drive);
        if drive.is_none_or(|drive| consent.covers_device(&drive.name, drive.serial.as_deref())) {
            self.turn(&path, &value);
        } else {
            let outcome = Err("nothing was destroyed, as the serial of the member was not typed".to_owned());
            self.report(Event::Turned { knob: path, outcome });
        }
        None
    }

    /// The settings in force after a turn that destroys a drive's content, and the drive. None if the turn is
    /// impossible, which the turn itself reports.
    fn destroying(&self, path: &str, value: &Value) -> Option<(Resolved, Drive)> {
        let knob = knobs::find(path)?;
        let turned = self.resolved.turned(knob, value, self.target.facts()).ok()?;
        let array = self.host.failing_array().filter(|array| array.would_fail(turned.host.md.array))?;
        Some((turned, array.drive()?.clone()))
    }

    fn plan_turn(&mut self, path: &str, turned: &Resolved, drive: &Drive) -> PlanShown {
        self.turns.plans_made += 1;
        let (wanted, array) = (turned.host.md.array, self.host.failing_array());
        let usable_bytes = self.target.built().map_or(0, |built| built.plan().properties.usable_bytes);
        let lost = self.losses.count.max(turned.stack.lost_as_set());
        let text =
            |settings| knobs::find(path).map(|knob| knob.get(settings).to_string()).unwrap_or_default();
        let bytes = array.filter(|_| wanted == ArrayState::Rebuilding).map_or(0, FailingArray::member_bytes);
        PlanShown {
            number: self.turns.plans_made,
            opens: None,
            live: true,
            turns: vec![(path.to_owned(), text(&self.resolved.settings), text(&turned.settings))],
            takes_down: Vec::new(),
            lines: array.map(|array| array.commands(wanted)).unwrap_or_default(),
            destroys: vec![wanted_of(drive, vec!["a member of the current stack's array".to_owned()])],
            writes_bytes: Some(bytes),
            wear: Vec::new(),
            properties: Some(properties(&turned.stack, &turned.facts, usable_bytes).without(lost)),
            times: Vec::new(),
            last_time: None,
        }
    }
}
