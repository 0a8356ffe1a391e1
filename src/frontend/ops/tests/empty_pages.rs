//! Lists over an index where millions of names were removed: its pages are empty and go on.

use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;

use super::*;
use crate::frontend::lookup;
use crate::index::ContainerPage;
use crate::index::ListPage;
use crate::index::TagPage;
use crate::protocol::model::operation::FindBlobs;
use crate::protocol::model::operation::ListAfter;
use crate::protocol::model::operation::ListBlobs;
use crate::protocol::model::operation::ListContainers;
use crate::protocol::model::operation::ListUploads;
use crate::protocol::model::operation::VersionAfter;
use crate::protocol::model::operation::VersionOrder;
use crate::protocol::model::upload_reply::UploadReply;
use crate::types::Timestamp;

/// Rows scanned for a page.
const SEEN: usize = 20_000;
/// Pages of the whole index, so that a request that asks for each of them ends.
const PAGES: usize = 50;

/// An index whose lists are empty pages; all other requests go to `other`.
#[derive(Debug)]
struct EmptyPages {
    other: Arc<Gated>,
    pages: AtomicUsize,
}

impl EmptyPages {
    /// Where a list goes on.
    fn next(&self, position: Bytes) -> Option<Bytes> {
        let page = self.pages.fetch_add(1, Ordering::Relaxed) + 1;
        (page < PAGES).then_some(position)
    }
}

#[async_trait]
impl IndexHost for EmptyPages {
    async fn read(&self, target: Target, read: Read) -> Result<ReadReply, index::Error> {
        let (after, weight, seen) = (Vec::new(), 0, SEEN);
        if let Read::Containers(list) = &read {
            let (next, entries) = (self.next(list.position()), Vec::new());
            return Ok(ReadReply::Containers(ContainerPage { entries, after, weight, next, seen }));
        }
        if let Read::Blobs(list) = &read {
            let (next, entries) = (self.next(list.position()), Vec::new());
            return Ok(ReadReply::Blobs(Box::new(ListPage { entries, after, weight, next, seen })));
        }
        if let Read::Tags(list) = &read {
            let (next, entries) = (self.next(list.from.clone()), Vec::new());
            return Ok(ReadReply::Tags(TagPage { entries, next, seen }));
        }
        self.other.read(target, read).await
    }

    async fn write_shared(
        &self,
        target: Target,
        write: Arc<Write>,
    ) -> Result<WriteReply, index::Error> {
        self.other.write_shared(target, write).await
    }

    async fn owned_extents(&self) -> Vec<ExtentId> {
        Vec::new()
    }
}

fn list_containers() -> ListContainers {
    ListContainers::default()
}

fn list_blobs() -> ListBlobs {
    ListBlobs {
        retention: false,
        legal_hold: false,
        container: photos(),
        prefix: None,
        delimiter: None,
        marker: None,
        start_from: None,
        end_before: None,
        after: None,
        exact: false,
        max_results: None,
        metadata: false,
        uncommitted: false,
        snapshots: false,
        versions: None,
        deleted: false,
        versions_only: false,
        tags: false,
        copy: false,
        content_etag: false,
        columns: false,
    }
}

fn find_blobs() -> FindBlobs {
    let text = "a = '1'".to_owned();
    let query = TagQuery::parse(&text).unwrap();
    FindBlobs { container: None, text, query, marker: None, max_results: None }
}

/// Whether it is an empty page with a marker.
fn goes_on(reply: &Reply) -> bool {
    if let Reply::Containers(page) = reply {
        page.items.is_empty() && page.next.is_some()
    } else if let Reply::Blobs(page) = reply {
        page.items.is_empty() && page.next.is_some()
    } else if let Reply::FoundBlobs(page) = reply {
        page.items.is_empty() && page.next_marker.is_some()
    } else {
        panic!("no list: {reply:?}")
    }
}

#[tokio::test(start_paused = true)]
async fn request_for_a_list_looks_at_a_bounded_number_of_rows() {
    let index = Arc::new(EmptyPages { other: gated(), pages: AtomicUsize::new(0) });
    let (front, account) = front_over(Arc::clone(&index) as _).await;
    let all = ["containers", "blobs", "tags"];
    let mut found = Vec::new();
    for what in all {
        index.pages.store(0, Ordering::Relaxed);
        let reply = match what {
            "containers" => listing::containers(&front, &account, list_containers()).await,
            "blobs" => listing::blobs(&front, &account, list_blobs()).await,
            _ => find::find(&front, &account, find_blobs()).await,
        };
        found.push((what, index.pages.load(Ordering::Relaxed), goes_on(&reply.unwrap())));
    }
    // The fourth page brings it above 65,536 rows.
    assert_eq!(found, all.map(|what| (what, 4, true)));
}

/// Pages that end at given positions, one after the other.
#[derive(Debug)]
struct EndsAt {
    other: Arc<Gated>,
    ends: Mutex<Vec<Bytes>>,
    /// Where the last page began.
    from: Mutex<Option<Bytes>>,
}

#[async_trait]
impl IndexHost for EndsAt {
    async fn read(&self, target: Target, read: Read) -> Result<ReadReply, index::Error> {
        if let Read::Blobs(list) = &read {
            self.from.lock().unwrap().clone_from(&list.from);
            let next = self.ends.lock().unwrap().pop();
            let (entries, after) = (Vec::new(), Vec::new());
            let page = ListPage { entries, after, weight: 0, next, seen: ROWS };
            return Ok(ReadReply::Blobs(Box::new(page)));
        }
        if let Read::Uploads(list) = &read {
            *self.from.lock().unwrap() = Some(list.position());
            let next = self.ends.lock().unwrap().pop();
            let (entries, after) = (Vec::new(), Vec::new());
            let page = ListPage { entries, after, weight: 0, next, seen: ROWS };
            return Ok(ReadReply::Blobs(Box::new(page)));
        }
        self.other.read(target, read).await
    }

    async fn write_shared(
        &self,
        target: Target,
        write: Arc<Write>,
    ) -> Result<WriteReply, index::Error> {
        self.other.write_shared(target, write).await
    }

    async fn owned_extents(&self) -> Vec<ExtentId> {
        Vec::new()
    }
}

/// More rows than one request looks at.
const ROWS: usize = 100_000;

/// A list whose client needs a name as its marker continues until a page ends behind a name.
#[tokio::test(start_paused = true)]
async fn page_of_an_exact_list_ends_behind_a_name() {
    let index = Arc::new(EndsAt { other: gated(), ends: Mutex::default(), from: Mutex::default() });
    let (front, account) = front_over(Arc::clone(&index) as _).await;
    let container = lookup::container(&front.rows, &account, &photos()).await.unwrap();
    let name = BlobName::new("d/7").unwrap();
    let (collation, of) = (container.collation, container.id);
    let key = RoutingKey::blob(&BlobKey { account: account.id, container: of, collation, name });
    let border = key.as_bytes().clone();
    let inside = Bytes::from([border.as_ref(), &[0]].concat());
    let behind = RoutingKey::after_name(account.id, of, "d/7", collation);
    for (exact, end, passed, left) in [
        (false, &border, None, 1),
        (true, &inside, Some("d/7"), 0),
        (true, &behind, Some("d/7"), 0),
    ] {
        *index.ends.lock().unwrap() = vec![end.clone(), border.clone()];
        let list = ListBlobs { exact, ..list_blobs() };
        let reply = listing::blobs(&front, &account, list).await.unwrap();
        let Reply::Blobs(page) = reply else { panic!("{reply:?}") };
        assert_eq!(
            (page.passed.as_ref().map(|passed| passed.name.as_str()), page.next.as_ref()),
            (passed, Some(end))
        );
        assert_eq!(index.ends.lock().unwrap().len(), left);
    }
}

/// Many deleted versions of a name fill a page. The next one goes on among the versions of the
/// name, also where a delimiter folds the name: no page has shown its prefix.
#[tokio::test(start_paused = true)]
async fn list_of_versions_goes_on_within_a_name() {
    let index = Arc::new(EndsAt { other: gated(), ends: Mutex::default(), from: Mutex::default() });
    let (front, account) = front_over(Arc::clone(&index) as _).await;
    let container = lookup::container(&front.rows, &account, &photos()).await.unwrap();
    let (collation, of) = (container.collation, container.id);
    let version = ("d/7", Timestamp::from_ticks(700));
    let behind = RoutingKey::after_version(account.id, of, version, collation);
    let at = behind.slice(..behind.len() - 1);
    let newer =
        RoutingKey::after_version(account.id, of, ("d/7", Timestamp::from_ticks(701)), collation);
    for (end, goes_on_at) in [(&behind, &behind), (&at, &newer)] {
        *index.ends.lock().unwrap() = vec![end.clone()];
        let newest_first = Some(VersionOrder::NewestFirst);
        let list = ListBlobs { exact: true, versions: newest_first, ..list_blobs() };
        let reply = listing::blobs(&front, &account, list.clone()).await.unwrap();
        let Reply::Blobs(page) = reply else { panic!("{reply:?}") };
        let passed = page.passed.unwrap();
        let after = Some(ListAfter::PassedVersion(
            passed.name,
            VersionAfter::Time(passed.version.unwrap()),
        ));
        let delimiter = Some("/".to_owned());
        let next = ListBlobs { after, delimiter, ..list };
        listing::blobs(&front, &account, next).await.unwrap();
        assert_eq!(index.from.lock().unwrap().as_ref(), Some(goes_on_at));
    }
}

/// A page of uploads ends among the ended uploads of a name. The next one goes on there, also where
/// a delimiter folds the name: no page has shown its prefix.
#[tokio::test(start_paused = true)]
async fn list_of_uploads_goes_on_within_a_prefix() {
    let index = Arc::new(EndsAt { other: gated(), ends: Mutex::default(), from: Mutex::default() });
    let (front, account) = front_over(Arc::clone(&index) as _).await;
    let container = lookup::container(&front.rows, &account, &photos()).await.unwrap();
    let (collation, of) = (container.collation, container.id);
    let name = BlobName::new("d/7").unwrap();
    let key = RoutingKey::blob(&BlobKey { account: account.id, container: of, collation, name });
    let inside = Bytes::from([key.as_bytes().as_ref(), &[3]].concat());
    let behind = RoutingKey::after_name(account.id, of, "d/7", collation);
    let list = ListUploads {
        container: photos(),
        prefix: None,
        delimiter: Some("/".to_owned()),
        after: None,
        after_upload: None,
        limit: 10,
    };
    for end in [&inside, &behind] {
        *index.ends.lock().unwrap() = vec![behind.clone(), end.clone()];
        let reply = upload_lists::list(&front, &account, list.clone()).await.unwrap();
        assert_eq!(index.ends.lock().unwrap().len(), 1, "the page ends");
        let Reply::Upload(reply) = reply else { panic!("{reply:?}") };
        let UploadReply::Uploads { items, next: Some(next) } = *reply else { panic!("{reply:?}") };
        assert_eq!((items.len(), next.name.as_str()), (0, "d/7"));
        let marked =
            ListUploads { after: Some(next.name), after_upload: next.upload, ..list.clone() };
        upload_lists::list(&front, &account, marked).await.unwrap();
        let from = index.from.lock().unwrap().clone().unwrap();
        assert_eq!(from, *key.as_bytes());
    }
    let shown = ListUploads { after: Some("d/7".to_owned()), ..list };
    upload_lists::list(&front, &account, shown).await.unwrap();
    let prefix = RoutingKey::prefix(account.id, of, "d/", collation);
    assert_eq!(*index.from.lock().unwrap(), RoutingKey::after_prefix(&prefix));
}
