//! Extents on the machine's disk: durable appends, alone and together, and verified reads.

use blockyard::capacity::AppendRequest;
use blockyard::capacity::Capacity;
use blockyard::capacity::Durability;
use blockyard::capacity::ExtentKind;
use blockyard::types::Epoch;
use blockyard::types::ExtentId;
use blockyard::types::ExtentOffset;
use blockyard::types::Location;
use bytes::Bytes;
use divan::Bencher;
use divan::counter::BytesCount;
use divan::counter::ItemsCount;
use futures_util::future::join_all;

use crate::bed::Bed;

const EPOCH: Epoch = Epoch::new(1);

/// A node with some open data extents, and where each of them ends.
struct Extents {
    bed: Bed,
    ends: Vec<u64>,
}

impl Extents {
    fn new(count: u64) -> Self {
        let bed = Bed::new();
        bed.runtime.block_on(async {
            for extent in 1..=count {
                let extent = ExtentId::new(extent);
                bed.node.create(extent, ExtentKind::Data, EPOCH).await.expect("an extent");
            }
        });
        let ends = (0..count).map(|_| 0).collect();
        Self { bed, ends }
    }

    /// Appends one payload to every extent at the same time.
    fn append(&mut self, payload: &Bytes, durability: Durability) -> Vec<Location> {
        let appends = (1..).zip(&self.ends).map(|(extent, &offset)| {
            self.bed.node.append(AppendRequest {
                extent: ExtentId::new(extent),
                epoch: EPOCH,
                offset: ExtentOffset::new(offset),
                payloads: vec![vec![payload.clone()]],
                durability,
            })
        });
        let appended = self.bed.runtime.block_on(join_all(appends));
        let mut locations = Vec::new();
        for (end, appended) in self.ends.iter_mut().zip(appended) {
            let appended = appended.expect("an append");
            *end = appended.end.get();
            locations.extend(appended.locations);
        }
        locations
    }
}

/// Durable appends of 4 KiB by this many concurrent writers, which share syncs.
#[divan::bench(args = [1, 16, 64])]
fn append_4k_durable(bencher: Bencher<'_, '_>, writers: u64) {
    let mut extents = Extents::new(writers);
    let payload = Bytes::from(vec![7; 4096]);
    bencher
        .counter(ItemsCount::new(writers))
        .bench_local(|| extents.append(&payload, Durability::Durable));
}

/// An append of 1 MiB without a sync: the cost of each piece of a streamed block.
#[divan::bench(sample_count = 50)]
fn append_1m_deferred(bencher: Bencher<'_, '_>) {
    let mut extents = Extents::new(1);
    let payload = Bytes::from(vec![7; 1 << 20]);
    bencher
        .counter(BytesCount::new(1_u64 << 20))
        .bench_local(|| extents.append(&payload, Durability::Deferred));
}

/// A verified read of a whole payload from the page cache.
#[divan::bench(args = [4096, 65536, 1 << 20])]
fn read_cached(bencher: Bencher<'_, '_>, bytes: usize) {
    let mut extents = Extents::new(1);
    let payload = Bytes::from(vec![7; bytes]);
    let locations = extents.append(&payload, Durability::Durable);
    let location = locations.first().expect("a location");
    bencher.counter(BytesCount::new(bytes)).bench_local(|| {
        extents
            .bed
            .runtime
            .block_on(extents.bed.node.read(location, 0..location.len.get()))
            .expect("a read")
    });
}
