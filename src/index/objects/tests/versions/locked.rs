//! Object lock: what a version under a retention or a legal hold refuses.

use super::*;

/// Steps for which a default retention lasts, in the model: longer than any run.
const DEFAULT: DefaultRetention =
    DefaultRetention { mode: RetentionMode::Unlocked, period: RetentionPeriod::Days(1) };

impl State {
    /// What holds a version at this time. `bypass`: a retention that is not locked does not.
    pub(super) fn held(&self, now: Timestamp, bypass: bool) -> Option<Refused> {
        if self.hold == Some(true) {
            return Some(Refused::LegalHold);
        }
        let active = self.retention.filter(|retention| now < retention.until);
        let active = active.filter(|of| !bypass || of.mode == RetentionMode::Locked);
        active.map(|retention| Refused::Retained(retention.mode))
    }

    /// A version that is made at this time, with nothing of what protected another.
    pub(super) fn made(self, lock: Option<ObjectLock>, now: Timestamp) -> Self {
        let default = lock.and_then(|lock| lock.default);
        Self { retention: default.map(|default| default.from(now)), hold: None, ..self }
    }
}

impl World {
    /// Switches object lock on, then its default retention on and off.
    pub(super) fn lock(&mut self) {
        self.versioning = Some(Versioning::Enabled);
        let default = match self.lock {
            None | Some(ObjectLock { default: Some(_) }) => None,
            Some(ObjectLock { default: None }) => Some(DEFAULT),
        };
        self.lock = Some(ObjectLock { default });
    }

    fn update(
        &mut self,
        name: &'static str,
        revision: Revision,
        change: BlobChange,
    ) -> Result<WriteReply, Error> {
        self.write(Write::UpdateBlob(UpdateBlob {
            key: key(name),
            revision,
            guard: Guard::default(),
            change,
        }))
    }

    /// Replaces the retention of a state by one that lasts this many steps, or ends it.
    pub(super) fn retain(
        &mut self,
        name: &'static str,
        pick: Pick,
        new: Option<(RetentionMode, u64)>,
    ) {
        let Some((revision, state)) = self.chain(name).pick(pick) else { return };
        let until = |steps: u64| Timestamp::from_ticks(self.now().ticks() + steps);
        let new = new.map(|(mode, steps)| Retention { mode, until: until(steps) });
        let reply = self.update(name, revision, BlobChange::Retention(new));
        let (now, bypass) = (self.now(), self.bypass);
        let active = state.retention.filter(|old| now < old.until);
        let may = active.is_none_or(|old| {
            let extends = new.is_some_and(|new| new.mode == old.mode && new.until >= old.until);
            extends || bypass && old.mode == RetentionMode::Unlocked
        });
        let refusal = if self.lock.is_none() {
            Some(Refused::NoObjectLock)
        } else if new.is_some_and(|new| new.until <= now) {
            Some(Refused::RetentionInPast)
        } else {
            active.filter(|_| !may).map(|old| Refused::Retained(old.mode))
        };
        match refusal {
            Some(why) => assert_eq!(reply, Err(Error::Refused(why))),
            None => {
                assert!(reply.is_ok(), "{reply:?}");
                self.chain(name).state_mut(revision).unwrap().retention = new;
            }
        }
    }

    /// Puts a state under a legal hold, or ends that.
    pub(super) fn hold(&mut self, name: &'static str, pick: Pick, on: bool) {
        let Some((revision, _)) = self.chain(name).pick(pick) else { return };
        let reply = self.update(name, revision, BlobChange::LegalHold(on));
        if self.lock.is_none() {
            assert_eq!(reply, Err(Error::Refused(Refused::NoObjectLock)));
            return;
        }
        assert!(reply.is_ok(), "{reply:?}");
        self.chain(name).state_mut(revision).unwrap().hold = Some(on);
    }

    /// What refuses a change in place of the current blob.
    pub(super) fn unchangeable(&mut self, name: &'static str) -> Option<Error> {
        let now = self.now();
        let held = self.chain(name).current().and_then(|of| of.state.held(now, false));
        held.map(Error::Refused)
    }

    /// What refuses a deletion of all snapshots.
    pub(super) fn held_snapshot(&self, name: &'static str) -> Option<Error> {
        let (now, bypass) = (self.now(), self.bypass);
        let mut states = self.chains[name].snapshots.values();
        states.find_map(|state| state.held(now, bypass)).map(Error::Refused)
    }
}
