//! The mapping cache: whole translation pages, evicted least recently used first.

use super::flash::NONE;

/// Which translation pages are in the cache, in order of last use.
#[derive(Debug)]
pub struct Cache {
    room: u32,
    held: u32,
    /// For each translation page: the one used next after it, and the one used last before it.
    links: Vec<[u32; 2]>,
    states: Vec<State>,
    newest: u32,
    oldest: u32,
}

/// The state of a translation page in the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Absent,
    Clean,
    /// Newer than the copy on flash.
    Changed,
}

/// The result of a use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Used {
    /// It was there.
    Hit,
    /// It was not there, and there was room.
    Loaded,
    /// It was not there, and evicted this one; whether that had changed since it was last written to flash.
    Instead(u32, bool),
}

impl Cache {
    /// An empty cache with room for `room` of `all` translation pages.
    pub fn new(room: u32, all: u32) -> Self {
        Self {
            room: room.clamp(1, all.max(1)),
            held: 0,
            links: vec![[NONE; 2]; all as usize],
            states: vec![State::Absent; all as usize],
            newest: NONE,
            oldest: NONE,
        }
    }

    /// Looks up a translation page, and loads it if needed.
    pub fn use_one(&mut self, one: u32) -> Used {
        if self.newest == one {
            return Used::Hit;
        }
        if self.states[one as usize] != State::Absent {
            self.unlink(one);
            self.link(one);
            return Used::Hit;
        }
        let gone = if self.held >= self.room { self.drop_oldest() } else { None };
        self.states[one as usize] = State::Clean;
        self.held += 1;
        self.link(one);
        gone.map_or(Used::Loaded, |(gone, has_changed)| Used::Instead(gone, has_changed))
    }

    /// Evicts the least recently used one.
    pub fn drop_oldest(&mut self) -> Option<(u32, bool)> {
        let one = self.oldest;
        if one == NONE {
            return None;
        }
        self.unlink(one);
        self.held -= 1;
        let state = std::mem::replace(&mut self.states[one as usize], State::Absent);
        Some((one, state == State::Changed))
    }

    /// Removes one, if it is there.
    pub fn forget(&mut self, one: u32) {
        if self.states[one as usize] != State::Absent {
            self.states[one as usize] = State::Absent;
            self.unlink(one);
            self.held -= 1;
        }
    }

    /// Marks one that is in the cache as changed; false if it isn't there.
    pub fn change(&mut self, one: u32) -> bool {
        let state = &mut self.states[one as usize];
        if *state != State::Absent {
            *state = State::Changed;
        }
        *state != State::Absent
    }

    fn link(&mut self, one: u32) {
        self.links[one as usize] = [NONE, self.newest];
        match self.newest {
            NONE => self.oldest = one,
            newest => self.links[newest as usize][0] = one,
        }
        self.newest = one;
    }

    fn unlink(&mut self, one: u32) {
        let [newer, older] = self.links[one as usize];
        match newer {
            NONE => self.newest = older,
            _ => self.links[newer as usize][1] = older,
        }
        match older {
            NONE => self.oldest = newer,
            _ => self.links[older as usize][0] = newer,
        }
    }
}
