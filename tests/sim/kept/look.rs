//! What is listed and read of a name, compared with what is known of it.

use blockyard::index::History;
use blockyard::index::ListBlobs;
use blockyard::index::ListEntry;

use super::*;
use crate::calls::Calls;

impl Session<'_> {
    /// Compares what is listed and read of a name with what is known of it. Returns whether it
    /// could be listed.
    pub(super) async fn look(&self, name: &str) -> Result<bool, Violation> {
        self.note(name, |_| ());
        let asked = self.stack.env.clock.now();
        let Some(seen) = self.list(name, History::VersionsDown).await? else { return Ok(false) };
        let Some(deleted) = self.deleted(name).await? else { return Ok(false) };
        let span = self.span(asked);
        let known = self.world.borrow().chains[name].clone();
        let before = known.matched(&seen, &deleted, span);
        let mut found = match (before, &known.in_doubt) {
            (Ok(chain), _) => chain,
            (Err(why), None) => return Err(format!("{name}: {why}")),
            (Err(why), Some(after)) => after
                .matched(&seen, &deleted, span)
                .map_err(|other| format!("{name}: neither {why} nor {other}"))?,
        };
        let with_bytes: Vec<&Entry> =
            found.versions.iter().filter(|entry| !entry.is_marker).collect();
        if self.is_last {
            for entry in with_bytes {
                self.read(name, entry).await?;
            }
        } else if let Some(entry) = self.draw.one(&with_bytes) {
            self.read(name, entry).await?;
        }
        found.evaluated_before(span.to, RESTORABLE_FOR);
        self.note(name, |chain| *chain = found);
        Ok(true)
    }

    /// Reads the bytes of a version.
    async fn read(&self, name: &str, entry: &Entry) -> Result<(), Violation> {
        let Some(time) = entry.time else { return Ok(()) };
        let calls = Calls::new(self.stack, self.draw);
        match calls.open_revision(name, Revision::Version(time)).await {
            Ok(Some(opened)) if opened.view.record.crc64 != entry.crc64 => {
                Err(format!("{name}: version {time:?} has other bytes"))
            }
            Ok(Some(opened)) => match calls.finish(&opened).await {
                Err(_) if self.is_down() => Ok(()),
                done => done.map_err(|why| format!("{name}: version {time:?}: {why}")),
            },
            Ok(None) => Err(format!("{name}: version {time:?} cannot be read")),
            Err(_) if self.is_down() => Ok(()),
            Err(why) => Err(why),
        }
    }

    /// What is listed of a name, in the order of the list; `None` if the machine is down.
    async fn list(&self, name: &str, history: History) -> Result<Option<Vec<Entry>>, Violation> {
        self.page(name, history, false).await
    }

    /// What was softly deleted of a name and is shown.
    async fn deleted(&self, name: &str) -> Result<Option<Vec<Entry>>, Violation> {
        let all = self.page(name, History::VersionsUp { snapshots: false }, true).await?;
        Ok(all.map(|all| all.into_iter().filter(|entry| entry.is_deleted).collect()))
    }

    async fn page(
        &self,
        name: &str,
        history: History,
        deleted: bool,
    ) -> Result<Option<Vec<Entry>>, Violation> {
        let of = key(name);
        let first = ListBlobs::first_page(of.account, of.container, of.collation, 1_000);
        let mut list = ListBlobs { prefix: name.to_owned(), history, deleted, ..first };
        let mut entries = Vec::new();
        loop {
            let page = match self.stack.router.list(&list).await {
                Ok(page) => page,
                Err(Error::Overloaded) => return Ok(None),
                Err(_) if self.is_down() => return Ok(None),
                Err(error) => return Err(format!("{name} cannot be listed: {error}")),
            };
            for entry in page.entries {
                match entry {
                    ListEntry::Blob { record, revision, .. } => {
                        entries.push(Entry::seen(&record, revision));
                    }
                    ListEntry::VersionsOnly { .. }
                    | ListEntry::Uncommitted { .. }
                    | ListEntry::Upload { .. }
                    | ListEntry::Prefix { .. } => return Err(format!("unexpected {entry:?}")),
                }
            }
            list.from = page.next;
            if list.from.is_none() {
                return Ok(Some(entries));
            }
        }
    }

    /// Looks at everything. Then what was deleted ends, and only bytes of what is left are kept.
    pub(super) async fn last_look(&self) -> Result<(), Violation> {
        let names: Vec<String> = self.world.borrow().chains.keys().cloned().collect();
        for name in &names {
            if !self.look(name).await? {
                return Err(format!("{name} cannot be listed at the end"));
            }
            self.settle_upload(name).await?;
        }
        self.abort_uploads().await?;
        self.stack.env.clock.sleep(RESTORABLE_FOR.saturating_mul(2)).await;
        let mut left = 0;
        for name in &names {
            self.look(name).await?;
            let chain = self.world.borrow().chains[name].clone();
            if !chain.deleted.is_empty() {
                return Err(format!("{name}: what was deleted is shown beyond its end"));
            }
            left += chain.versions.iter().filter(|entry| !entry.is_marker).count() as u64;
        }
        self.counts.add("versions at the end", left);
        // Versions that share content have it once; here each is counted.
        let most = left * (20_000 + 3 * 4096);
        let calls = Calls::new(self.stack, self.draw);
        calls.space_comes_back(|_| true, most).await
    }
}
