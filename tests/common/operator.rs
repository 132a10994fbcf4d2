//! An operator at a session, without a screen: sends commands, and waits for what the session reports.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use stacktune::testing::class::Class;
use stacktune::testing::host::Facts;
use stacktune::testing::runs::session::{Command, Event, Options, Phase, live};
use stacktune::testing::settings::Settings;
use stacktune::testing::settings::knobs::Value;

/// The operator of a session.
pub struct Operator {
    commands: Sender<Command>,
    received: Receiver<Event>,
}

impl Operator {
    /// Operates a session with these settings until `works` returns, then quits. A session that does not end
    /// in order fails the test.
    pub fn at(settings: Settings, options: Options, works: impl FnOnce(&Self)) {
        let ((commands, asked), (events, received)) = (channel(), channel());
        let facts = || Arc::new(Facts::read(Path::new("/")));
        std::thread::scope(move |scope| {
            scope.spawn(move || live::run(settings, options, &facts, &asked, &events));
            // If the operator fails, its channels close, and the session ends too.
            let operator = Self { commands, received };
            works(&operator);
            operator.send(Command::Quit);
            operator.first("an end in order", |event| match event {
                Event::Ended(ended) => ended.is_ok().then_some(()),
                _ => None,
            });
        });
    }

    fn send(&self, command: Command) {
        self.commands.send(command).unwrap();
    }

    /// The first event that `of` accepts, within five minutes.
    #[track_caller]
    pub fn first<T>(&self, what: &str, mut of: impl FnMut(&Event) -> Option<T>) -> T {
        let patience_ends = Instant::now() + Duration::from_mins(5);
        let mut heard = Vec::new();
        loop {
            let left = patience_ends.saturating_duration_since(Instant::now());
            let Ok(event) = self.received.recv_timeout(left) else { panic!("no {what}; heard: {heard:#?}") };
            if let Some(found) = of(&event) {
                return found;
            }
            match event {
                Event::Ended(Err(error)) => panic!("no {what}: {error}"),
                Event::Notice(text) => heard.push(text),
                _ => {}
            }
        }
    }

    /// Waits until the load runs under settings that satisfy `holds`.
    #[track_caller]
    pub fn runs(&self, what: &str, holds: impl Fn(&Settings) -> bool) {
        self.first(what, |event| match event {
            Event::Status(status) if status.phase == Phase::Running => holds(&status.settings).then_some(()),
            _ => None,
        });
    }

    /// Turns a knob, and waits until the turn is in force, which may first need the load to drain.
    #[track_caller]
    pub fn turns(&self, path: &str, value: Value) {
        self.send(Command::Turn { knob: path.into(), value });
        self.first(path, |event| match event {
            Event::Turned { knob, outcome } if knob == path => outcome.clone().unwrap().then_some(()),
            _ => None,
        });
    }

    /// Rebuilds with these knobs turned, and consents to everything that the plan destroys.
    #[track_caller]
    pub fn builds(&self, turns: &[(&str, Value)]) {
        self.send(Command::Plan(turns.iter().map(|(path, value)| ((*path).into(), value.clone())).collect()));
        let plan = self.first("plan", |event| match event {
            Event::Planned(plan) => Some(plan.clone().unwrap()),
            _ => None,
        });
        let typed = plan.destroys.iter().map(|wanted| wanted.typed.clone()).collect();
        self.send(Command::Build { plan: plan.number, typed });
    }

    /// Waits until each class has done something after this, without any error.
    #[track_caller]
    pub fn sees_all_classes_work(&self, after: &str) {
        let mut ios = [0; Class::ALL.len()];
        self.first("work of every class", |event| {
            let Event::Window(window, _) = event else { return None };
            for class in Class::ALL {
                let of = window.class(class);
                assert_eq!(of.errors, 0, "{after}: {class}");
                ios[class.index()] += of.ios;
            }
            ios.iter().all(|ios| *ios > 0).then_some(())
        });
    }
}
