use super::*;
use crate::types::AccountId;
use crate::types::BlobKey;
use crate::types::BlobName;
use crate::types::Collation;
use crate::types::ContainerId;

fn key(name: &str) -> RoutingKey {
    RoutingKey::blob(&BlobKey {
        account: AccountId::new(3),
        container: ContainerId::new(1 << 60),
        collation: Collation::Utf16,
        name: BlobName::new(name).unwrap(),
    })
}

fn range(low: &str, high: &str) -> KeyRange {
    KeyRange::new(key(low), Some(key(high)))
}

#[test]
fn stripes_of_known_names_never_change() {
    let of = |name: &str, of| Stripe::number_of_row(key(name).as_bytes(), of);
    let numbers: Vec<u8> = (0..16).map(|n| of(&format!("step-{n:04}"), 16)).collect();
    assert_eq!(numbers, GOLDEN);
    assert_eq!(Stripe::number_of_row(b"no routing key", 16), 0);
}

const GOLDEN: [u8; 16] = [10, 4, 9, 7, 15, 11, 12, 12, 5, 5, 7, 2, 14, 6, 7, 7];

#[test]
fn names_in_order_go_to_all_stripes_alike() {
    for of in 2..=Stripe::COUNT_MAX {
        let mut counts = vec![0_u32; usize::from(of)];
        for n in 0..16_000 {
            let number = Stripe::number_of_row(key(&format!("log/{n:09}")).as_bytes(), of);
            counts[usize::from(number)] += 1;
        }
        let mean = 16_000 / u32::from(of);
        assert!(counts.iter().all(|n| n.abs_diff(mean) < mean / 5), "{counts:?}");
    }
}

#[test]
fn all_rows_of_a_blob_are_in_one_stripe() {
    for n in 0..100 {
        let key = key(&format!("blob{n}"));
        let mut row = key.as_bytes().to_vec();
        let number = Stripe::number_of_row(&row, 7);
        row.extend_from_slice(b"\x01some block id");
        assert_eq!(Stripe::number_of_row(&row, 7), number);
        let of_it = |stripe: Stripe| stripe.holds_row(&row);
        assert_eq!(Stripe::all(7).filter(|s| of_it(*s)).count(), 1);
    }
}

#[test]
fn there_are_2_to_16_stripes_or_none() {
    assert!(Stripe::new(0, 1).is_none() && Stripe::new(0, 17).is_none());
    assert!(Stripe::new(4, 4).is_none());
    assert_eq!(Stripe::all(16).count(), 16);
    assert_eq!(Stripe::all(200).count() + Stripe::all(0).count(), 0);
}

#[test]
fn neighbours_and_whole_sets_of_stripes_are_joined_and_nothing_else() {
    let plain = |low, high| PartitionKeys::from(range(low, high));
    let (a, b, c) = (plain("a", "b"), plain("b", "c"), plain("c", "d"));
    assert_eq!(PartitionKeys::joined([&a, &b, &c]), Some(plain("a", "d")));
    assert_eq!(PartitionKeys::joined([&a]), None);
    assert_eq!(PartitionKeys::joined([&b, &a]), None);
    assert_eq!(PartitionKeys::joined([&a, &c]), None);
    let stripes: Vec<PartitionKeys> =
        Stripe::all(3).map(|stripe| PartitionKeys::striped(range("b", "c"), stripe)).collect();
    let [x, y, z] = [&stripes[0], &stripes[1], &stripes[2]];
    assert_eq!(PartitionKeys::joined([x, y, z]), Some(b.clone()));
    assert_eq!(PartitionKeys::joined([z, x, y]), Some(b));
    assert_eq!(PartitionKeys::joined([x, y]), None);
    assert_eq!(PartitionKeys::joined([x, y, y]), None);
    assert_eq!(PartitionKeys::joined([x, y, z, &c]), None);
    assert_eq!(PartitionKeys::joined([&a, x, y, z]), None);
    assert_eq!(PartitionKeys::joined([&a, x]), None);
    assert_eq!(PartitionKeys::joined([]), None);
}
