//! The steps: each is sent as a request and carried out in the model.

use super::*;

const IDS: [&str; 4] = ["1", "2", "3", "4"];
const PAGES: u64 = 4;

fn refused<T>(why: Refused) -> Result<T, Error> {
    Err(Error::Refused(why))
}

impl World {
    pub(super) fn apply(&mut self, step: &Step) {
        match step {
            // Object lock needs versions.
            Step::Versioning if self.lock.is_some() => {}
            Step::Versioning => {
                self.versioning = Some(match self.versioning {
                    None | Some(Versioning::Suspended) => Versioning::Enabled,
                    Some(Versioning::Enabled) => Versioning::Suspended,
                });
            }
            Step::Put { name, kind, stored } => self.put(NAMES[*name], *kind, *stored),
            Step::Stage { name, id } => self.stage(NAMES[*name], IDS[*id]),
            Step::Commit { name, ids, times } => self.commit(NAMES[*name], ids, *times),
            Step::Append { name, times } => self.append(NAMES[*name], *times),
            Step::WritePage { name, page } => self.write_page(NAMES[*name], *page),
            Step::Metadata { name } => self.metadata(NAMES[*name]),
            Step::Tags { name, pick } => self.tags(NAMES[*name], *pick),
            Step::Snapshot { name } => self.snapshot(NAMES[*name]),
            Step::Copy { from, pick, to } => self.copy(NAMES[*from], *pick, NAMES[*to]),
            Step::Delete { name, scope } => self.delete(NAMES[*name], *scope),
            Step::DeleteSnapshot { name, pick } => self.delete_snapshot(NAMES[*name], *pick),
            Step::DeleteVersion { name, pick, former } => {
                self.delete_version(NAMES[*name], *pick, *former);
            }
            Step::DeleteNull { name } => self.delete_null(NAMES[*name]),
            Step::Lock => self.lock(),
            Step::Bypass => self.bypass = !self.bypass,
            Step::Retain { name, pick, new } => self.retain(NAMES[*name], *pick, *new),
            Step::Hold { name, pick, on } => self.hold(NAMES[*name], *pick, *on),
            Step::SoftDelete => self.is_soft = !self.is_soft,
            Step::Undelete { name } => self.undelete(NAMES[*name]),
            Step::Permanently { name, pick } => self.permanently(NAMES[*name], *pick),
            Step::Expire => self.expire(),
            Step::Reclaim => self.reclaim(),
            Step::Purge { limit } => self.purge(*limit),
        }
    }

    /// The new blob replaces the current one of the model.
    fn replaced(&mut self, name: &str, reply: &Result<WriteReply, Error>, state: State) {
        let (versioning, until) = (self.versioning, self.until());
        let state = state.made(self.lock, self.now());
        let chain = self.chain(name);
        chain.push((versioning, until), state, false);
        chain.staged.clear();
        let made = chain.current().unwrap().id;
        let Ok(WriteReply::Written(written)) = reply else { panic!("not written: {reply:?}") };
        assert_eq!(written.version, made);
    }

    fn put(&mut self, name: &'static str, kind: Kind, stored: bool) {
        let bytes = match kind {
            Kind::Block => self.fresh(40),
            Kind::Append => Vec::new(),
            Kind::Page => vec![0; usize::try_from(PAGES * PAGE_BYTES).unwrap()],
        };
        let content = match kind {
            Kind::Block => self.store(&bytes, stored),
            Kind::Append | Kind::Page => inline(b""),
        };
        let kind_sent = match kind {
            Kind::Block => NewKind::Block,
            Kind::Append => NewKind::Append,
            Kind::Page => NewKind::Page { len: PAGES * PAGE_BYTES, sequence: 0 },
        };
        let tags = self.some_tags();
        let sent = PutBlob { kind: kind_sent, tags: tags.clone(), ..put(&key(name), content) };
        let reply = self.write(Write::PutBlob(sent));
        let state = State { tags, ..State::new(kind, bytes, self.now()) };
        self.replaced(name, &reply, state);
    }

    fn stage(&mut self, name: &'static str, id: &str) {
        let bytes = self.fresh(30);
        let content = self.store(&bytes, true);
        let reply = self.write(stage(&key(name), id, content));
        let chain = self.chain(name);
        if chain.current().is_some_and(|of| of.state.kind != Kind::Block) {
            assert_eq!(reply, refused(Refused::WrongKind));
            return;
        }
        assert_eq!(reply, Ok(WriteReply::Done));
        chain.staged.insert(id.to_owned(), bytes);
    }

    fn commit(&mut self, name: &'static str, ids: &[usize], times: usize) {
        let ids: Vec<&str> = std::iter::repeat_n(ids, times).flatten().map(|id| IDS[*id]).collect();
        let sent = commit(&key(name), &ids);
        let reply = self.write(Write::CommitBlocks(sent));
        let now = self.now();
        let chain = self.chain(name);
        let current = chain.current().map(|of| of.state.clone());
        if current.as_ref().is_some_and(|of| of.kind != Kind::Block) {
            assert_eq!(reply, refused(Refused::WrongKind));
            return;
        }
        let committed = current.map(|of| of.blocks).unwrap_or_default();
        let find = |id: &&str| {
            let old = committed.iter().find(|(other, _)| other == id).map(|(_, bytes)| bytes);
            let bytes = chain.staged.get(*id).or(old)?;
            Some(((*id).to_owned(), bytes.clone()))
        };
        let Some(blocks) = ids.iter().map(find).collect::<Option<Vec<_>>>() else {
            assert_eq!(reply, refused(Refused::UnknownBlock));
            return;
        };
        let bytes = blocks.iter().flat_map(|(_, bytes)| bytes.clone()).collect();
        let state = State { blocks, ..State::new(Kind::Block, bytes, now) };
        self.replaced(name, &reply, state);
    }

    fn append(&mut self, name: &'static str, times: usize) {
        for _ in 0..times {
            let bytes = self.fresh(20);
            let content = self.store(&bytes, true);
            let reply = self.write(Write::AppendBlock(append(&key(name), content)));
            let now = self.now();
            if let Some(held) = self.unchangeable(name)
                && self.chain(name).current().unwrap().state.kind == Kind::Append
            {
                assert_eq!(reply, Err(held));
                continue;
            }
            match self.chain(name).current_mut() {
                None => assert_eq!(reply, refused(Refused::BlobNotFound)),
                Some(of) if of.state.kind != Kind::Append => {
                    assert_eq!(reply, refused(Refused::WrongKind));
                }
                Some(of) => {
                    let Ok(WriteReply::Appended(done)) = reply else { panic!("{reply:?}") };
                    assert_eq!(done.written.version, of.id);
                    of.state.bytes.extend(bytes);
                    of.state.modified = now;
                }
            }
        }
    }

    fn write_page(&mut self, name: &'static str, page: u64) {
        let bytes = self.fresh(usize::try_from(PAGE_BYTES).unwrap());
        let (content, _) = self.store(&bytes, true);
        let range = page * PAGE_BYTES..(page + 1) * PAGE_BYTES;
        let start = usize::try_from(range.start).unwrap();
        let sent = WritePages {
            key: key(name),
            guard: Guard::default(),
            sequence: SequenceBounds::default(),
            range,
            content: Some(content),
        };
        let reply = self.write(Write::WritePages(sent));
        let now = self.now();
        if let Some(held) = self.unchangeable(name)
            && self.chain(name).current().unwrap().state.kind == Kind::Page
        {
            assert_eq!(reply, Err(held));
            return;
        }
        match self.chain(name).current_mut() {
            None => assert_eq!(reply, refused(Refused::BlobNotFound)),
            Some(of) if of.state.kind != Kind::Page => {
                assert_eq!(reply, refused(Refused::WrongKind));
            }
            Some(of) => {
                let Ok(WriteReply::Pages(done)) = reply else { panic!("{reply:?}") };
                assert_eq!(done.written.version, of.id);
                of.state.bytes[start..start + bytes.len()].copy_from_slice(&bytes);
                of.state.modified = now;
            }
        }
    }

    fn some_tags(&mut self) -> Tags {
        let value = self.fresh(1)[0].to_string();
        Tags::new(vec![("k".to_owned(), value)]).unwrap()
    }

    fn metadata(&mut self, name: &'static str) {
        let value = self.fresh(1)[0].to_string();
        let metadata = Metadata::new([("m".to_owned(), value)]).unwrap();
        let change = BlobChange::Metadata(metadata.clone());
        let (key, revision) = (key(name), Revision::Current);
        let update = UpdateBlob { key, revision, guard: Guard::default(), change };
        let reply = self.write(Write::UpdateBlob(update));
        if let Some(held) = self.unchangeable(name) {
            assert_eq!(reply, Err(held));
            return;
        }
        let (now, versioning, until) = (self.now(), self.versioning, self.until());
        let lock = self.lock;
        let chain = self.chain(name);
        let Some(current) = chain.current().cloned() else {
            assert_eq!(reply, refused(Refused::BlobNotFound));
            return;
        };
        let state = State { metadata, modified: now, ..current.state };
        if chain.is_kept(versioning) {
            chain.push((versioning, until), state.made(lock, now), false);
        } else {
            chain.current_mut().unwrap().state = state;
        }
        let Ok(WriteReply::Written(written)) = reply else { panic!("{reply:?}") };
        assert_eq!(written.version, chain.current().unwrap().id);
    }

    fn tags(&mut self, name: &'static str, pick: Pick) {
        let tags = self.some_tags();
        let Some((revision, _)) = self.chain(name).pick(pick) else { return };
        let change = BlobChange::Tags(tags.clone());
        let update = UpdateBlob { key: key(name), revision, guard: Guard::default(), change };
        self.write(Write::UpdateBlob(update)).unwrap();
        self.chain(name).state_mut(revision).unwrap().tags = tags;
    }

    fn snapshot(&mut self, name: &'static str) {
        let sent = SnapshotBlob { key: key(name), guard: Guard::default(), metadata: None };
        let reply = self.write(Write::SnapshotBlob(sent));
        let (now, versioning, until) = (self.now(), self.versioning, self.until());
        let lock = self.lock;
        let chain = self.chain(name);
        let Some(current) = chain.current().cloned() else {
            assert_eq!(reply, refused(Refused::BlobNotFound));
            return;
        };
        chain.snapshots.insert(now, current.state.clone().made(None, now));
        if chain.is_kept(versioning) {
            let modified = current.state.modified;
            let state = State { modified: now, ..current.state }.made(lock, now);
            chain.push((versioning, until), state, false);
            chain.current_mut().unwrap().state.modified = modified;
        }
        let Ok(WriteReply::Snapshotted(taken)) = reply else { panic!("{reply:?}") };
        assert_eq!(taken.snapshot, now);
        assert_eq!(taken.written.version, chain.current().unwrap().id);
    }

    fn copy(&mut self, from: &'static str, pick: Pick, to: &'static str) {
        let Some((revision, source)) = self.chain(from).pick(pick) else { return };
        let content = match source.kind {
            Kind::Page => self.copy_pages(from, revision, to, &source),
            Kind::Block | Kind::Append => {
                let share =
                    Share { key: key(from), revision, guard: Guard::default(), range: None };
                let reply = self.write(Write::Share(Box::new(share))).unwrap();
                let WriteReply::Shared(shared) = reply else { panic!("not shared") };
                shared.content.unwrap()
            }
        };
        let kind = match source.kind {
            Kind::Block => BlobKind::Block,
            Kind::Append => BlobKind::Append { blocks: 0, sealed: false },
            Kind::Page => BlobKind::Page { sequence: 0 },
        };
        let crc64 = match source.kind {
            Kind::Block | Kind::Append => Crc64::of(&source.bytes),
            Kind::Page => Crc64::EMPTY,
        };
        let copy = PutCopy {
            key: key(to),
            guard: Guard::default(),
            kind,
            properties: BlobProperties::default(),
            metadata: source.metadata.clone(),
            tags: source.tags.clone(),
            tier: None,
            content,
            crc64,
            copy: None,
            increment: None,
            job: None,
            fields: NewBlobFields::default(),
        };
        let reply = self.write(Write::PutCopy(Box::new(copy)));
        let state = State { modified: self.now(), ..source };
        self.replaced(to, &reply, state);
    }

    fn copy_pages(
        &mut self,
        from: &'static str,
        revision: Revision,
        to: &'static str,
        source: &State,
    ) -> CopiedContent {
        let share =
            SharePages { key: key(from), revision, guard: Guard::default(), since: None, from: 0 };
        let reply = self.write(Write::SharePages(Box::new(share))).unwrap();
        let WriteReply::SharedPages(SharedPages { spans, next: None }) = reply else {
            panic!("not all pages")
        };
        let fill = FillLayer { blob: RoutingKey::blob(&key(to)), layer: None, spans };
        let WriteReply::Layer(layer) = self.write(Write::FillLayer(fill)).unwrap() else {
            panic!("no layer")
        };
        CopiedContent::Pages { layer, len: u64::try_from(source.bytes.len()).unwrap() }
    }
}
