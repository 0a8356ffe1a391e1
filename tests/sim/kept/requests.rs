//! Requests about a name: what is sent, and what may come of it.

use blockyard::frontend::write::Stored;
use blockyard::index::BlobChange;
use blockyard::index::DeleteBlob;
use blockyard::index::Guard;
use blockyard::index::NewBlobFields;
use blockyard::index::PutBlob;
use blockyard::index::UndeleteBlob;
use blockyard::index::UpdateBlob;
use blockyard::protocol::model::Reason;
use blockyard::types::BlobProperties;
use blockyard::types::Crc64;
use blockyard::types::DeleteScope;
use blockyard::types::LockClaim;
use blockyard::types::NewKind;
use blockyard::types::ObjectLock;
use blockyard::types::Protection;
use blockyard::types::Retention;
use blockyard::types::RetentionMode;
use blockyard::types::Tags;
use blockyard::types::Versioning;
use bytes::Bytes;

use super::*;
use crate::draw::content;
use crate::requests::metadata;

impl Session<'_> {
    /// Names of even clients are in a container with object lock, where soft delete is on at times.
    /// The others are in one whose versioning is suspended at times.
    pub(super) fn protection(&self, name: &str) -> Protection {
        let is_locked = !name.starts_with('1');
        let soft = is_locked && self.draw.percent(60);
        let suspended = !is_locked && self.draw.percent(40);
        Protection {
            versioning: Some(if suspended { Versioning::Suspended } else { Versioning::Enabled }),
            restorable_for: soft.then_some(RESTORABLE_FOR),
            lock: is_locked.then_some(ObjectLock { default: None }),
        }
    }

    pub(super) fn mark(&self) -> u64 {
        let mut world = self.world.borrow_mut();
        world.marks += 1;
        world.marks
    }

    pub(super) fn retention(&self) -> Retention {
        let mode = *self.draw.one(&[RetentionMode::Unlocked, RetentionMode::Locked]).unwrap();
        let period = match self.draw.between(0, 9) {
            0..=2 => Duration::from_millis(self.draw.between(1, 300)),
            // Until the next session, mostly.
            3..=8 => Duration::from_secs(60),
            _ => Duration::from_secs(1 << 30),
        };
        Retention { mode, until: self.stack.env.clock.now().plus(period) }
    }

    /// The next request about a name.
    pub(super) async fn request(&self, name: &str) -> Result<Option<Sent>, Violation> {
        let protection = self.protection(name);
        let is_locked = protection.lock.is_some();
        let chain = self.world.borrow().chains[name].clone();
        let guard = Guard { protection, ..Guard::default() };
        let chance = self.draw.between(0, 99);
        Ok(match chance {
            0..=34 if self.has_uploads && self.draw.percent(40) => {
                self.upload(name, chain, guard).await?;
                None
            }
            0..=34 => self.put(name, chain, guard).await?,
            35..=44 => self.metadata(name, chain, guard),
            45..=59 => Some(self.delete(name, chain, guard)),
            60..=79 => self.delete_version(name, chain, guard),
            80..=91 if is_locked => self.protect(name, chain, guard),
            _ if is_locked => Some(self.undelete(name, chain, guard)),
            _ => None,
        })
    }

    async fn put(
        &self,
        name: &str,
        chain: Chain,
        mut guard: Guard,
    ) -> Result<Option<Sent>, Violation> {
        let mark = self.mark();
        let bytes = content(mark, self.draw.between(1_500, 20_000));
        let crc64 = Crc64::of(&bytes);
        if guard.protection.lock.is_some() && self.draw.percent(25) {
            guard.lock.retention = Some(self.retention());
        }
        let retention = guard.lock.retention;
        let Some(stored) = self.store(name, bytes).await? else { return Ok(None) };
        let versioning = guard.protection.versioning;
        let put = PutBlob {
            key: key(name),
            guard,
            properties: BlobProperties::default(),
            metadata: metadata(mark),
            kind: NewKind::Block,
            tags: Tags::default(),
            content: stored.content(),
            crc64,
            tier: None,
            fields: NewBlobFields::default(),
        };
        let entry = Entry { retention, ..Entry::of(mark, crc64) };
        let after = chain.pushed(entry, versioning);
        let sent = Sent {
            write: Write::PutBlob(put),
            after,
            refusable: false,
            ends: retention.map(|of| of.until),
            doable: true,
            what: "puts",
        };
        let committing = stored.committing();
        match self.deliver(name, sent).await? {
            Delivered::Refused => committing.refused(),
            Delivered::Done | Delivered::Unknown => {}
        }
        Ok(None)
    }

    /// Stores bytes. `None` if the machine could not.
    pub(super) async fn store(
        &self,
        name: &str,
        bytes: Bytes,
    ) -> Result<Option<Stored>, Violation> {
        let len = bytes.len() as u64;
        match self.stack.pool.store(vec![bytes], len).await {
            Ok(stored) => Ok(Some(stored)),
            Err(error) => {
                let expected = [Reason::ServerBusy, Reason::InsufficientStorage];
                match expected.contains(&error.reason) || self.is_down() {
                    true => Ok(None),
                    false => Err(format!("storing {name}: {error:?}")),
                }
            }
        }
    }

    fn metadata(&self, name: &str, chain: Chain, guard: Guard) -> Option<Sent> {
        let current = chain.current()?.clone();
        let mark = self.mark();
        let held = current.held(false, self.span(self.stack.env.clock.now()));
        let versioning = guard.protection.versioning;
        let change = BlobChange::Metadata(metadata(mark));
        let update = UpdateBlob { key: key(name), revision: Revision::Current, guard, change };
        let entry = Entry { mark, ..Entry::of(mark, current.crc64) };
        Some(Sent {
            write: Write::UpdateBlob(update),
            after: chain.changed(entry, versioning),
            refusable: held.may_be(),
            ends: None,
            doable: held.may_not_be(),
            what: "metadata changes",
        })
    }

    fn delete(&self, name: &str, chain: Chain, guard: Guard) -> Sent {
        let versioning = guard.protection.versioning;
        let delete = DeleteBlob { key: key(name), guard, scope: DeleteScope::Object };
        let after = chain.pushed(Entry::marker(), versioning);
        let (refusable, doable, what) = (false, true, "markers");
        Sent { write: Write::DeleteBlob(delete), after, refusable, ends: None, doable, what }
    }

    fn delete_version(&self, name: &str, chain: Chain, mut guard: Guard) -> Option<Sent> {
        let at = usize::try_from(self.draw.between(0, 9)).unwrap() % chain.versions.len().max(1);
        let entry = chain.versions.get(at)?.clone();
        let bypass = self.draw.percent(30);
        guard.lock = LockClaim { bypass, ..LockClaim::default() };
        let span = self.span(self.stack.env.clock.now());
        let held = entry.held(bypass, span);
        let restorable_for = guard.protection.restorable_for;
        let scope = DeleteScope::Version(Revision::Version(entry.time?));
        let delete = DeleteBlob { key: key(name), guard, scope };
        Some(Sent {
            write: Write::DeleteBlob(delete),
            after: chain.removed(at, span.from, restorable_for),
            refusable: held.may_be(),
            ends: None,
            doable: held.may_not_be(),
            what: "versions deleted",
        })
    }

    /// Changes the retention or the legal hold of a version.
    fn protect(&self, name: &str, mut chain: Chain, mut guard: Guard) -> Option<Sent> {
        let at = usize::try_from(self.draw.between(0, 9)).unwrap() % chain.versions.len().max(1);
        let entry = chain.versions.get(at).filter(|entry| !entry.is_marker)?.clone();
        let bypass = self.draw.percent(50);
        guard.lock = LockClaim { bypass, ..LockClaim::default() };
        let span = self.span(self.stack.env.clock.now());
        let changed = chain.versions.get_mut(at)?;
        let mut ends = None;
        let (change, refusable, doable) = if self.draw.percent(40) {
            let on = self.draw.percent(40);
            changed.hold = Some(on);
            (BlobChange::LegalHold(on), false, true)
        } else {
            let new = self.draw.percent(80).then(|| self.retention());
            changed.retention = new;
            ends = new.map(|new| new.until);
            let old = entry.shortened(new, bypass, span);
            (BlobChange::Retention(new), old.may_be(), old.may_not_be())
        };
        let revision = Revision::Version(entry.time?);
        let update = UpdateBlob { key: key(name), revision, guard, change };
        let what = "protections changed";
        let write = Write::UpdateBlob(update);
        Some(Sent { write, after: chain, refusable, ends, doable, what })
    }

    fn undelete(&self, name: &str, chain: Chain, guard: Guard) -> Sent {
        let span = self.span(self.stack.env.clock.now());
        // Refused if there is nothing of the name.
        let refusable = chain.versions.is_empty();
        let what = "undeletions";
        let write = Write::UndeleteBlob(UndeleteBlob { key: key(name), guard });
        Sent { write, after: chain.restored(span), refusable, ends: None, doable: true, what }
    }
}
