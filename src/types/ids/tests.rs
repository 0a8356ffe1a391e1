use super::*;

#[test]
fn ids_count_and_show() {
    assert_eq!(Epoch::new(1).next(), Epoch::new(2));
    assert_eq!(Generation::FIRST.next(), Generation::new(2));
    assert_eq!(Sequence::new(1).plus(3).get(), 4);
    assert_eq!(ExtentId::new(0x00AB_0000_0000_0001).to_string(), "00ab000000000001");
    assert_eq!(AccountId::new(12).to_string(), "12");
    assert!(PartitionId::new(1) < PartitionId::new(2));
}
