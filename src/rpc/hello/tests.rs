use super::*;
use crate::rpc::decode;
use crate::rpc::encode;

fn cluster() -> ClusterIdentity {
    ClusterIdentity { number: ClusterNumber::new(300), id: 5, generation: 2 }
}

fn hello() -> Hello {
    Hello {
        version_min: 1,
        version_max: 3,
        cluster: cluster(),
        from: NodeIdentity { node: NodeId::new(7), incarnation: Incarnation::new(130) },
        roles: NodeRoles::FRONT.with(NodeRoles::CAPACITY),
        to: NodeId::new(8),
        lane: Lane::Bulk,
        attempt: 9,
    }
}

#[test]
fn introductions_have_golden_bytes() {
    let bytes = encode(&hello()).unwrap();
    assert_eq!(bytes.as_ref(), [1, 1, 3, 0xAC, 0x02, 5, 2, 7, 0x82, 0x01, 5, 8, 1, 9]);
    assert_eq!(decode(&bytes), Ok(hello()));
    let from = NodeIdentity { node: NodeId::new(8), incarnation: Incarnation::new(1) };
    let credit = Credit { calls: 128, bytes: 1 };
    let welcome = Welcome { version: 1, from, roles: NodeRoles::ALL, credit };
    let bytes = encode(&welcome).unwrap();
    assert_eq!(bytes.as_ref(), [1, 1, 8, 1, 15, 0x80, 0x01, 1]);
    assert_eq!(decode(&bytes), Ok(welcome));
    let refusals = [
        (Unwelcome::Version { min: 1, max: 2 }, &[1, 0, 1, 2][..]),
        (Unwelcome::Cluster, &[1, 1]),
        (Unwelcome::Generation { generation: 3 }, &[1, 2, 3]),
        (Unwelcome::Node { node: NodeId::new(9) }, &[1, 3, 9]),
        (Unwelcome::Superseded { incarnation: Incarnation::new(4) }, &[1, 4, 4]),
        (Unwelcome::Stopping, &[1, 5]),
        (Unwelcome::Removed, &[1, 6]),
    ];
    for (refusal, golden) in refusals {
        assert_eq!(encode(&refusal).unwrap().as_ref(), golden);
        assert_eq!(decode(golden), Ok(refusal));
    }
}

#[test]
fn newest_common_version_is_spoken() {
    let asks = |version_min, version_max| {
        let hello = Hello { version_min, version_max, ..hello() };
        hello.accepted_by(NodeId::new(8), &cluster())
    };
    assert_eq!(asks(1, 1), Ok(1));
    assert_eq!(asks(1, u16::MAX), Ok(VERSION));
    let refused = Err(Unwelcome::Version { min: VERSION_MIN, max: VERSION });
    assert_eq!(asks(VERSION + 1, u16::MAX), refused);
    assert_eq!(asks(0, VERSION_MIN - 1), refused);
}

#[test]
fn only_nodes_of_the_cluster_and_its_generation_are_let_in() {
    let of = |cluster| Hello { cluster, ..hello() }.accepted_by(NodeId::new(8), &self::cluster());
    assert_eq!(of(cluster()), Ok(1));
    let other = ClusterIdentity { number: ClusterNumber::new(1), ..cluster() };
    assert_eq!(of(other), Err(Unwelcome::Cluster));
    assert_eq!(of(ClusterIdentity { id: 6, ..cluster() }), Err(Unwelcome::Cluster));
    for generation in [1, 3] {
        let refused = Unwelcome::Generation { generation: 2 };
        assert_eq!(of(ClusterIdentity { generation, ..cluster() }), Err(refused));
    }
    let elsewhere = hello().accepted_by(NodeId::new(9), &cluster());
    assert_eq!(elsewhere, Err(Unwelcome::Node { node: NodeId::new(9) }));
}

#[test]
fn later_versions_may_add_to_introductions() {
    let longer = [encode(&hello()).unwrap().as_ref(), &[7, 7]].concat();
    assert_eq!(Hello::read(&longer), Ok(hello()));
    // Of a caller of the future only the versions are read.
    let future = [1, 0x80, 0x02, 0x81, 0x02, 0xFF, 0xFF, 0xFF];
    let refused = Unwelcome::Version { min: VERSION_MIN, max: VERSION };
    assert_eq!(Hello::read(&future), Err(NoHello::Unwelcome(refused)));
    for bytes in [&[][..], &[1], &[1, 1, 1], &[2, 1, 1], &longer[..10]] {
        assert_eq!(Hello::read(bytes), Err(NoHello::Malformed), "{bytes:?}");
    }
    let from = NodeIdentity { node: NodeId::new(8), incarnation: Incarnation::new(1) };
    let credit = Credit { calls: 1, bytes: 1 };
    let welcome = Welcome { version: 1, from, roles: NodeRoles::default(), credit };
    let longer = [encode(&welcome).unwrap().as_ref(), &[7]].concat();
    assert_eq!(Welcome::read(&longer), Some(welcome));
}
