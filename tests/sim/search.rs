//! Tags: the entries of the tag index that a front end writes after its commit, and the results of
//! searches when all updates are done.

use std::collections::BTreeSet;
use std::time::Duration;

use blockyard::index::Damage;
use blockyard::index::Error;
use blockyard::index::Guard;
use blockyard::index::IndexTag;
use blockyard::index::ListTags;
use blockyard::index::Read;
use blockyard::index::ReadBlob;
use blockyard::index::ReadReply;
use blockyard::index::Refused;
use blockyard::index::TagWork;
use blockyard::index::Write;
use blockyard::types::Collation;
use blockyard::types::RoutingKey;
use blockyard::types::TagEntryKey;
use bytes::Bytes;

use crate::client::Client;
use crate::index::container;
use crate::index::key;
use crate::requests::tags;
use crate::rig::Failing;
use crate::seeds::Violation;
use blockyard::types::Revision;

impl Client<'_> {
    /// Updates the tag index for a blob's new tags, as the front end does before it answers.
    /// Sometimes it stops halfway.
    pub(crate) async fn show_tags(&self, name: &str, tags: u64) -> Result<(), Violation> {
        if tags == 0 || self.session.draw.percent(30) {
            return Ok(());
        }
        match self.bring_up(name).await {
            Ok(()) | Err(Error::Full(_) | Error::Overloaded) => Ok(()),
            Err(Error::Corrupt(Damage::Quarantined(_))) if self.excused(Failing::Quarantined) => {
                Ok(())
            }
            Err(Error::Unavailable(_)) if self.excused(Failing::Writes) => Ok(()),
            Err(error) => Err(format!("{name}: tag index with {:?}: {error}", self.session.plan)),
        }
    }

    async fn bring_up(&self, name: &str) -> Result<(), Error> {
        let work = self.work(name).await?;
        for change in TagWork::changes(&work) {
            let entry = change.entry.routing_key();
            let container = change.present.then(container);
            let index = IndexTag { entry, time: change.time, container };
            self.stack.router.write(Write::IndexTag(index)).await?;
            if self.session.draw.percent(10) {
                return Ok(());
            }
        }
        let rows: Vec<Bytes> = work.into_iter().map(|work| work.row).collect();
        if !rows.is_empty() {
            self.stack.router.write(Write::ForgetTagWork { rows }).await?;
        }
        Ok(())
    }

    async fn work(&self, name: &str) -> Result<Vec<TagWork>, Error> {
        let blob = RoutingKey::blob(&key(name));
        let read = Read::TagWork { blob: Some(blob.clone()), from: Bytes::new(), limit: 64 };
        let reply = self.stack.router.read(blob.as_bytes(), read).await?;
        let ReadReply::TagWork(page) = reply else {
            panic!("tag work was asked for: {reply:?}");
        };
        Ok(page.work)
    }

    /// Checks that a search finds exactly the blobs with a tag, when no updates of the tag index
    /// are left.
    pub(crate) async fn check_search(&self) -> Result<(), Violation> {
        self.wait_for_work().await?;
        for value in 0..3 {
            let value = value.to_string();
            let found = self.search(&value).await.map_err(|error| format!("search: {error}"))?;
            for (name, blob) in &self.session.model.borrow().blobs {
                let has = |number| tags(number).get("k") == Some(value.as_str());
                let due: Vec<bool> = blob
                    .possible()
                    .iter()
                    .map(|state| state.committed.as_ref().is_some_and(|c| has(c.tags)))
                    .collect();
                if !due.contains(&found.contains(name)) {
                    let found = found.contains(name);
                    return Err(format!("{name} was found by its tag {value}: {found}"));
                }
            }
            self.session.counts.add("blobs found by tag", found.len() as u64);
        }
        Ok(())
    }

    async fn wait_for_work(&self) -> Result<(), Violation> {
        let names: Vec<String> = self.session.model.borrow().blobs.keys().cloned().collect();
        for name in names {
            let mut waits = 0..100;
            while !self.work(&name).await.map_err(|error| error.to_string())?.is_empty() {
                if waits.next().is_none() {
                    return Err(format!("{name}: nobody brings its tags into the index"));
                }
                self.stack.env.clock.sleep(Duration::from_millis(100)).await;
            }
        }
        Ok(())
    }

    /// The names of blobs with this tag: entries of the tag index, each compared with its blob.
    async fn search(&self, value: &str) -> Result<BTreeSet<String>, Error> {
        let (account, id) = (key("x").account, key("x").container);
        let start = TagEntryKey::exact(account, "k", value, Some(id));
        let to = RoutingKey::after_prefix(&start);
        let mut from = Some(start);
        let mut found = BTreeSet::new();
        while let Some(position) = from {
            let list = ListTags { from: position.clone(), to: to.clone(), limit: 3 };
            let reply = self.stack.router.read(&position, Read::Tags(list)).await?;
            let ReadReply::Tags(page) = reply else { panic!("tags were asked for: {reply:?}") };
            from = page.next;
            for entry in page.entries {
                let name = entry.key.blob.name(Collation::Utf16).expect("a blob's name");
                if entry.container == container() && self.has(&name, value).await? {
                    found.insert(name);
                } else {
                    self.session.counts.add("outdated entries", 1);
                }
            }
        }
        Ok(found)
    }

    async fn has(&self, name: &str, value: &str) -> Result<bool, Error> {
        let key = key(name);
        let position = RoutingKey::blob(&key);
        let guard = Guard::default();
        let read = Read::Blob(ReadBlob {
            key,
            revision: Revision::Current,
            guard,
            range: None,
            pieces: false,
        });
        match self.stack.router.read(position.as_bytes(), read).await {
            Ok(ReadReply::Blob(view)) => Ok(view.record.tags.get("k") == Some(value)),
            Ok(other) => panic!("a blob was asked for: {other:?}"),
            Err(Error::Refused(Refused::BlobNotFound)) => Ok(false),
            Err(error) => Err(error),
        }
    }
}
