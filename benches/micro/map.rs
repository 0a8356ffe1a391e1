//! The partition map: a lookup of the owner of a key, and a change of one of many partitions.

use blockyard::index::PartitionDescriptor;
use blockyard::index::PartitionMap;
use blockyard::types::AccountId;
use blockyard::types::BlobKey;
use blockyard::types::BlobName;
use blockyard::types::Collation;
use blockyard::types::ContainerId;
use blockyard::types::Epoch;
use blockyard::types::ExtentId;
use blockyard::types::HostId;
use blockyard::types::KeyRange;
use blockyard::types::PartitionId;
use blockyard::types::PartitionKeys;
use blockyard::types::RoutingKey;
use blockyard::types::Stripe;
use divan::Bencher;

/// Blobs of each partition.
const BLOBS: u64 = 1_000;
/// The number of keys that lookups use in turn. They are far apart, so that neither the map nor the
/// key is in the processor's first-level cache.
const KEYS: u64 = 4_096;

fn key(number: u64) -> RoutingKey {
    let name = format!("train/shard-{:06}/sample-{number:010}.jpg", number / 1_000);
    RoutingKey::blob(&BlobKey {
        account: AccountId::new(1),
        container: ContainerId::new(1),
        collation: Collation::Utf16,
        name: BlobName::new(&name).expect("a short name"),
    })
}

/// The adjacent ranges of this many partitions.
fn ranges(count: u64) -> impl Iterator<Item = KeyRange> {
    let bound = |number: u64| if number == 0 { RoutingKey::min() } else { key(number * BLOBS) };
    (0..count).map(move |number| {
        KeyRange::new(bound(number), (number + 1 < count).then(|| bound(number + 1)))
    })
}

fn descriptors(all: impl Iterator<Item = PartitionKeys>) -> Vec<PartitionDescriptor> {
    let descriptor = |(number, keys): (u64, _)| PartitionDescriptor {
        id: PartitionId::new(number + 1),
        keys,
        epoch: Epoch::new(5),
        log: vec![ExtentId::new(2 * number), ExtentId::new(2 * number + 1)],
        host: HostId::new(0),
    };
    (0..).zip(all).map(descriptor).collect()
}

/// The owner of a blob.
#[divan::bench(args = [100, 10_000, 100_000])]
fn owner(bencher: Bencher<'_, '_>, partitions: u64) {
    look_up(bencher, descriptors(ranges(partitions).map(Into::into)), partitions);
}

/// The owner of a blob in a map in which every range has 16 stripes.
#[divan::bench(args = [10_000])]
fn owner_of_stripe(bencher: Bencher<'_, '_>, partitions: u64) {
    let striped = |range: KeyRange| {
        Stripe::all(Stripe::COUNT_MAX).map(move |part| PartitionKeys::striped(range.clone(), part))
    };
    let wide = partitions / u64::from(Stripe::COUNT_MAX);
    look_up(bencher, descriptors(ranges(wide).flat_map(striped)), wide);
}

/// Finds owners of blobs that are spread over this many ranges.
fn look_up(bencher: Bencher<'_, '_>, all: Vec<PartitionDescriptor>, ranges: u64) {
    let map = PartitionMap::new(all).expect("a map");
    let step = ranges * BLOBS / 1_618 * 1_000 + 1;
    let keys: Vec<RoutingKey> =
        (0..KEYS).map(|n| key(n.wrapping_mul(step) % (ranges * BLOBS))).collect();
    let mut next = keys.iter().cycle();
    bencher.bench_local(move || {
        let key = next.next().expect("round and round");
        map.owner(divan::black_box(key).as_bytes()).map(|owner| owner.id)
    });
}

/// A map of descriptors that are nearly in order, as after a change.
#[divan::bench(args = [100, 10_000])]
fn build(bencher: Bencher<'_, '_>, partitions: u64) {
    let all = descriptors(ranges(partitions).map(Into::into));
    bencher.bench_local(|| PartitionMap::new(divan::black_box(&all).clone()));
}
