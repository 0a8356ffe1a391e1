//! Members that heed the records of groups.

use std::time::Duration;

use super::*;
use crate::capacity::CopyId;
use crate::capacity::Encoded;
use crate::capacity::FramedAppend;
use crate::capacity::copies::tests::cluster::Calls;
use crate::capacity::groups;
use crate::capacity::groups::Extents;
use crate::capacity::groups::GroupRecord;
use crate::capacity::groups::KnownGroups;

impl Cluster {
    /// All nodes follow the records of groups.
    pub(super) async fn heed(&self) {
        for (id, node) in &self.nodes {
            let follower = GroupFollower::start(Arc::clone(&self.coordinator)).await.unwrap();
            let follower = Arc::new(follower);
            let own = Arc::new(SimulatedStore::new().open(&self.env));
            let known = KnownGroups::open(*id, own, Arc::clone(&follower)).await.unwrap();
            node.heed(Arc::new(known)).await;
            let (member, clock) = (node.member(), Arc::clone(&self.env.clock));
            let following = Arc::clone(&clock);
            let tasks = &self.env.tasks;
            drop(tasks.spawn("follow", async move { follower.follow(following.as_ref()).await }));
            drop(tasks.spawn("note", async move { member.follow_groups(clock.as_ref()).await }));
        }
        self.wait().await;
    }

    async fn wait(&self) {
        self.env.clock.sleep(Duration::from_millis(500)).await;
    }
}

fn first_append(extent: ExtentId) -> FramedAppend {
    let copy = CopyId { extent, kind: ExtentKind::Data };
    let Encoded { append, .. } =
        FramedAppend::encode(copy, ONE, ExtentOffset::START, vec![vec![payload(1, 100)]]);
    append
}

#[test]
fn one_member_that_knows_of_the_closing_stops_a_late_writer() {
    run(async {
        let cluster = Cluster::new(30).await;
        let group = cluster.group(ExtentKind::Data).await.record.id();
        cluster.heed().await;
        let [open, late] = [0, 1].map(|place| group.extents().nth(place).unwrap());
        let writer = cluster.process(None).await;
        for extent in [open, late] {
            writer.create(extent, ExtentKind::Data, ONE).await.unwrap();
        }
        let appended = append(&writer, open, ExtentOffset::START, &payload(1, 100)).await.unwrap();
        let closed = |record: &GroupRecord| Ok(record.closed());
        groups::change(&*cluster.coordinator, group, &[], closed).await.unwrap();
        cluster.wait().await;
        let error = append(&writer, late, ExtentOffset::START, &payload(2, 100)).await.unwrap_err();
        assert!(matches!(error, Error::Sealed { .. }), "{error}");
        // Extents that are there go on.
        append(&writer, open, appended.end, &payload(3, 100)).await.unwrap();
        writer.seal(open, ONE).await.unwrap();
        for node in cluster.nodes.values() {
            let report = node.report(group).await.unwrap();
            assert!(report.has_noted_closed && report.whole.has(open) && report.sealed.has(open));
            assert!(report.absent.has(late) && !report.absent.has(open));
        }
    });
}

#[test]
fn member_that_was_away_removes_what_is_gone() {
    run(async {
        let cluster = Cluster::new(31).await;
        let group = cluster.group(ExtentKind::Data).await.record.id();
        cluster.heed().await;
        let extent = group.first();
        let writer = cluster.process(None).await;
        writer.create(extent, ExtentKind::Data, ONE).await.unwrap();
        append(&writer, extent, ExtentOffset::START, &payload(1, 100)).await.unwrap();
        writer.seal(extent, ONE).await.unwrap();
        cluster.node(3).set_calls(Calls::Lost);
        writer.remove(extent).await.unwrap();
        cluster.wait().await;
        cluster.node(3).set_calls(Calls::Answered);
        assert!(cluster.node(3).copy(extent).await.unwrap().is_none());
        // Late calls do not bring it back.
        let error = cluster.node(3).append(first_append(extent)).await.unwrap_err();
        assert!(matches!(error, Error::NoSuchExtent { .. }), "{error}");
        let copy = CopyId { extent, kind: ExtentKind::Data };
        let error = cluster.node(3).fence(copy, TWO).await.unwrap_err();
        assert!(matches!(error, Error::NoSuchExtent { .. }), "{error}");
    });
}

#[test]
fn reports_show_which_extents_were_never_used() {
    run(async {
        let cluster = Cluster::new(32).await;
        let group = cluster.group(ExtentKind::Data).await.record.id();
        cluster.heed().await;
        let used = group.first();
        let writer = cluster.process(None).await;
        writer.create(used, ExtentKind::Data, ONE).await.unwrap();
        append(&writer, used, ExtentOffset::START, &payload(1, 100)).await.unwrap();
        let closed = |record: &GroupRecord| Ok(record.closed());
        groups::change(&*cluster.coordinator, group, &[], closed).await.unwrap();
        cluster.wait().await;
        let mut reports = Vec::new();
        for node in cluster.nodes.values() {
            reports.push(node.report(group).await.unwrap());
        }
        let unused = |record: &GroupRecord| record.without_unused(&reports);
        let at = groups::change(&*cluster.coordinator, group, &[], unused).await.unwrap();
        let kept = Extents::of(group, [used]).unwrap();
        assert_eq!(at.record.gone(), Extents::ALL.without(kept));
    });
}
