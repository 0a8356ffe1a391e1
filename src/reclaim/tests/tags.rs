//! Whatever a crash leaves out, the tag index ends as the blobs' tags say.

use std::collections::BTreeSet;
use std::time::Duration;

use bytes::Bytes;

use super::fakes::*;
use crate::env::Rand;
use crate::env::rand::SeededRand;
use crate::index::api::*;
use crate::reclaim::service::PassState;
use crate::types::*;

const HOUR: Duration = Duration::from_secs(3_600);
const BLOBS: [&str; 4] = ["a", "d", "n", "z"];

fn tags(pairs: &[(&str, &str)]) -> Tags {
    Tags::new(pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()).unwrap()
}

fn container() -> Write {
    Write::CreateContainer(CreateContainer {
        account: ACCOUNT,
        name: ContainerName::new("pictures").unwrap(),
        id: CONTAINER,
        collation: Collation::Utf16,
        metadata: Metadata::default(),
        public_access: PublicAccess::Private,
        encryption_scope: None,
        owner: None,
        region: None,
        acl: CannedAcl::Private,
        object_lock: false,
    })
}

fn tagged(name: &str, tags: Tags) -> Write {
    let Write::PutBlob(mut made) = put(name, &[]) else { panic!("not a put") };
    made.tags = tags;
    Write::PutBlob(made)
}

/// An entry of the tag index.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    key: String,
    value: String,
    blob: String,
    container: String,
}

fn entries(bench: &Bench) -> BTreeSet<Entry> {
    let list =
        ListTags { from: TagEntryKey::start(ACCOUNT, "", ""), to: None, limit: usize::MAX - 1 };
    let mut found = BTreeSet::new();
    for partition in bench.index.partitions.lock().unwrap().iter() {
        let from = list.from.clone().max(partition.memory.range.low().as_bytes().clone());
        let read = Read::Tags(ListTags { from, ..list.clone() });
        let Ok(ReadReply::Tags(page)) = partition.read(&read) else { panic!("no page") };
        for TagEntry { key, container, .. } in page.entries {
            let blob = key.blob.name(Collation::Utf16).unwrap();
            let container = container.as_str().to_owned();
            found.insert(Entry { key: key.key, value: key.value, blob, container });
        }
    }
    found
}

fn expected(now: &[(&str, Tags)]) -> BTreeSet<Entry> {
    let of = |(blob, tags): &(&str, Tags)| {
        let entry = |(key, value): (&str, &str)| Entry {
            key: key.to_owned(),
            value: value.to_owned(),
            blob: (*blob).to_owned(),
            container: "pictures".to_owned(),
        };
        tags.iter().map(entry).collect::<Vec<_>>()
    };
    now.iter().flat_map(of).collect()
}

fn work(bench: &Bench) -> Vec<TagWork> {
    let read = Read::TagWork { blob: None, from: Bytes::new(), limit: usize::MAX - 1 };
    let partitions = bench.index.partitions.lock().unwrap();
    let of = |partition: &crate::index::objects::fake::Partition| match partition.read(&read) {
        Ok(ReadReply::TagWork(TagWorkPage { work, next: None })) => work,
        other => panic!("{other:?}"),
    };
    partitions.iter().flat_map(of).collect()
}

#[tokio::test(start_paused = true)]
async fn work_that_no_front_end_did_is_done_and_forgotten() {
    let bench = Bench::new();
    bench.index.must(&container());
    bench.index.must(&tagged("a", tags(&[("k", "1"), ("l", "2")])));
    bench.index.must(&tagged("z", tags(&[("k", "1")])));
    bench.index.must(&tagged("a", tags(&[("k", "3"), ("l", "2")])));
    let reclaim = bench.reclaim();
    assert!(!reclaim.pass(&mut PassState::default()).await, "a front end is at it");
    assert!(entries(&bench).is_empty());
    bench.after(HOUR).await;
    assert!(reclaim.pass(&mut PassState::default()).await);
    let now = [("a", tags(&[("k", "3"), ("l", "2")])), ("z", tags(&[("k", "1")]))];
    assert_eq!(entries(&bench), expected(&now));
    assert!(work(&bench).is_empty());
    bench.index.must(&delete("a"));
    bench.after(HOUR).await;
    reclaim.pass(&mut PassState::default()).await;
    assert_eq!(entries(&bench), expected(&now[1..]));
}

#[tokio::test(start_paused = true)]
async fn nothing_is_put_for_a_container_that_is_gone() {
    let bench = Bench::new();
    bench.index.must(&tagged("a", tags(&[("k", "1")])));
    bench.after(HOUR).await;
    bench.reclaim().pass(&mut PassState::default()).await;
    assert!(entries(&bench).is_empty() && work(&bench).is_empty());
}

/// Front ends that are cut off anywhere, late ones that repeat old work, failing partitions, passes
/// in between.
#[tokio::test(start_paused = true)]
async fn index_converges_whatever_is_cut_off_or_repeated() {
    for seed in 0..60 {
        let dice = SeededRand::new(seed);
        let roll = |sides: u64| dice.next_u64() % sides;
        let bench = Bench::new();
        bench.index.must(&container());
        let mut now: Vec<(&str, Tags)> =
            BLOBS.iter().map(|blob| (*blob, Tags::default())).collect();
        let mut seen: Vec<TagWork> = Vec::new();
        let reclaim = bench.reclaim();
        for _ in 0..40 {
            let number = usize::try_from(roll(4)).unwrap();
            let values = ["1", "2", "3"];
            let mut pairs = Vec::new();
            for key in ["k", "l"] {
                if roll(3) > 0 {
                    pairs.push((key, values[usize::try_from(roll(3)).unwrap()]));
                }
            }
            let (name, current) = &mut now[number];
            *current = tags(&pairs);
            if pairs.is_empty() && roll(2) == 0 {
                bench.index.must(&tagged(name, Tags::default()));
                bench.index.must(&delete(name));
            } else {
                bench.index.must(&tagged(name, current.clone()));
            }
            seen.extend(work(&bench));
            // A front end does part of some work, maybe old, in any order.
            for _ in 0..roll(4) {
                let Some(one) = seen.get(usize::try_from(roll(64)).unwrap() % seen.len().max(1))
                else {
                    break;
                };
                for change in TagWork::changes(std::slice::from_ref(one)) {
                    if change.present && roll(2) == 0 {
                        let entry = change.entry.routing_key();
                        let container = Some(ContainerName::new("pictures").unwrap());
                        let time = change.time;
                        bench.index.must(&Write::IndexTag(IndexTag { entry, time, container }));
                    }
                }
            }
            if roll(5) == 0 {
                bench.after(HOUR).await;
                *bench.index.fail_writes_of.lock().unwrap() =
                    (roll(2) == 0).then(|| usize::try_from(roll(3)).unwrap());
                reclaim.pass(&mut PassState::default()).await;
                *bench.index.fail_writes_of.lock().unwrap() = None;
            }
        }
        bench.after(HOUR).await;
        reclaim.pass(&mut PassState::default()).await;
        let (found, due) = (entries(&bench), expected(&now));
        assert!(found.is_superset(&due), "seed {seed}: an entry is missing");
        assert!(work(&bench).is_empty(), "seed {seed}");
    }
}

/// The container's row is out of reach, so nothing can be put; what is only removed can.
#[tokio::test(start_paused = true)]
async fn work_behind_a_quarantined_partition_goes_on() {
    const BLOCKED: usize = 150;
    let bench = Bench::new();
    bench.index.must(&container());
    bench.index.must(&tagged("z", tags(&[("k", "1")])));
    let mut setup = bench.setup();
    setup.config.garbage_rows_per_pass = 64;
    let reclaim = crate::reclaim::Reclaim::new(setup);
    bench.after(HOUR).await;
    reclaim.pass(&mut PassState::default()).await;
    assert_eq!(entries(&bench).len(), 1);
    let names: Vec<String> = (0..BLOCKED).map(|number| format!("x{number:03}")).collect();
    for name in &names {
        bench.index.must(&tagged(name, tags(&[("k", "1")])));
    }
    bench.index.must(&delete("z"));
    bench.after(HOUR).await;
    *bench.index.quarantined.lock().unwrap() = Some(0);
    let mut state = PassState::default();
    for _ in 0..BLOCKED / 64 + 2 {
        reclaim.pass(&mut state).await;
    }
    assert!(entries(&bench).is_empty(), "what is behind the blocked work is not brought in");
    assert_eq!(work(&bench).len(), BLOCKED, "what could not be brought in is still to be done");
    assert!(bench.metrics.passed_over.get() >= BLOCKED as u64);
    *bench.index.quarantined.lock().unwrap() = None;
    for _ in 0..BLOCKED / 64 + 2 {
        reclaim.pass(&mut state).await;
    }
    assert_eq!(entries(&bench).len(), BLOCKED);
    assert!(work(&bench).is_empty());
}
