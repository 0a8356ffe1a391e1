//! What the writer does, and what its appends and seals do at members.

use super::steps::spend;
use super::*;

impl World {
    /// The copy of a node that is up.
    pub(super) fn copy(&mut self, node: usize, extent: usize) -> Option<&mut ExtentCopy> {
        let node = &mut self.nodes[node];
        (node.up && !node.dead).then_some(&mut node.copies[extent])
    }
}

impl Bounds {
    pub(super) fn send(&self, world: &mut World, extent: usize) -> Option<()> {
        let before = &world.written[..extent];
        let is_next = before.iter().all(|before| match before.stage {
            Stage::Unused | Stage::Writing => false,
            Stage::Clean | Stage::GivenUp | Stage::Large | Stage::Proposed => true,
        });
        let written = &mut world.written[extent];
        let may = written.stage == Stage::Writing || written.stage == Stage::Unused;
        if !may || !is_next || written.sent == self.places {
            return None;
        }
        spend(&mut world.left.appends)?;
        written.stage = Stage::Writing;
        written.sent += 1;
        Some(())
    }

    /// An append arrives. It may be a repetition, and very late.
    pub(super) fn receive(&self, world: &mut World, node: usize, extent: usize) -> Option<()> {
        let sent = world.written[extent].sent;
        let Node { target, view, .. } = world.nodes[node];
        let copy = world.copy(node, extent)?;
        if !target || copy.end >= sent || !copy.is_kept() {
            return None;
        }
        let takes = match copy.phase {
            Phase::Open => true,
            Phase::Closed | Phase::Sealed(_) => false,
            Phase::Absent if self.has(Fault::GroupForgotten) && !view.member => true,
            Phase::Absent => {
                (!view.closed || self.has(Fault::NewInClosed))
                    && (!view.gone[extent] || self.has(Fault::GoneMadeAnew))
            }
        };
        if !takes {
            return None;
        }
        copy.append();
        if !self.tails {
            copy.sync();
        }
        Some(())
    }

    pub(super) fn answer(&self, world: &mut World, extent: usize) -> Option<()> {
        let written = world.written[extent];
        let end = written.answered + 1;
        if written.stage != Stage::Writing || end > written.sent {
            return None;
        }
        let synced = world.targets().filter(|node| node.copies[extent].said >= end).count();
        let less = usize::from(self.has(Fault::AnswerBeforeAll));
        if synced < self.members - less {
            return None;
        }
        let written = &mut world.written[extent];
        written.on[usize::from(written.answered)] = number(self.members);
        written.answered = end;
        Some(())
    }

    pub(super) fn roll(world: &mut World, extent: usize) -> Option<()> {
        let written = &mut world.written[extent];
        written.stage = match written.stage {
            Stage::Writing if written.sent == written.answered => Stage::Clean,
            Stage::Writing | Stage::Large => Stage::GivenUp,
            Stage::Unused | Stage::Clean | Stage::GivenUp | Stage::Proposed => return None,
        };
        Some(())
    }

    pub(super) fn roll_large(world: &mut World, extent: usize) -> Option<()> {
        let written = world.written[extent];
        if written.stage != Stage::Writing || written.sent == written.answered {
            return None;
        }
        spend(&mut world.left.large)?;
        world.written[extent].stage = Stage::Large;
        Some(())
    }

    /// The transaction of an unclean seal: the first length wins, of what is not gone.
    pub(super) fn propose(&self, world: &mut World, extent: usize) -> Option<()> {
        let Written { stage, sent, answered, .. } = world.written[extent];
        let synced = world.targets().filter(|node| node.copies[extent].said >= sent).count();
        let length = match stage {
            Stage::GivenUp => answered,
            Stage::Large if synced >= self.copies - 1 => sent,
            Stage::Large | Stage::Unused | Stage::Writing | Stage::Clean | Stage::Proposed => {
                return None;
            }
        };
        world.written[extent].stage = Stage::Proposed;
        let gone = world.record.gone[extent] && !self.has(Fault::LengthOfGone);
        let wins = world.record.lengths[extent].is_none() && !gone;
        if wins && !self.has(Fault::NoRecord) {
            world.record.lengths[extent] = Some(length);
            world.settled_on[extent] =
                number(if stage == Stage::Large { synced } else { self.members });
        }
        if wins && stage == Stage::Large {
            let written = &mut world.written[extent];
            for place in answered..sent {
                written.on[usize::from(place)] = number(synced);
            }
            written.answered = sent;
        }
        Some(())
    }
}
