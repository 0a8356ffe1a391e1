//! A member's copy of an extent. Lengths are counted in appends.

/// What a copy takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Phase {
    /// The node has no such extent.
    Absent,
    /// Takes appends.
    Open,
    /// Fenced, or found open by a start of its node: no appends, its end is not settled.
    Closed,
    /// Settled at this end. What is missing up to there is pulled.
    Sealed(u8),
}

/// How far a surplus copy is on its way out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Mark {
    Kept,
    /// No reads, no pulls; the record is to be read again.
    Marked,
    /// The record was read again: the copy goes.
    Doomed,
}

/// A copy of an extent at one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ExtentCopy {
    pub(crate) phase: Phase,
    /// How much is written.
    pub(crate) end: u8,
    /// How much of it no crash takes away.
    pub(crate) synced: u8,
    /// The greatest end that was ever answered to a writer. Answers may be late.
    pub(crate) said: u8,
    /// Journal or later frames prove more than there is: no witness.
    pub(crate) torn: bool,
    /// Shorter than it was, and nothing proves it: the disk lied.
    pub(crate) lied: bool,
    pub(crate) mark: Mark,
}

impl ExtentCopy {
    pub(crate) const ABSENT: Self = Self {
        phase: Phase::Absent,
        end: 0,
        synced: 0,
        said: 0,
        torn: false,
        lied: false,
        mark: Mark::Kept,
    };

    pub(crate) fn is_absent(&self) -> bool {
        self.phase == Phase::Absent
    }

    /// Whether an end is still to be settled.
    pub(crate) fn is_unsettled(&self) -> bool {
        match self.phase {
            Phase::Open | Phase::Closed => true,
            Phase::Absent | Phase::Sealed(_) => false,
        }
    }

    pub(crate) fn sealed(&self) -> Option<u8> {
        match self.phase {
            Phase::Sealed(end) => Some(end),
            Phase::Absent | Phase::Open | Phase::Closed => None,
        }
    }

    /// Whether its end may decide where the extent ends.
    pub(crate) fn is_witness(&self) -> bool {
        self.phase == Phase::Closed && !self.torn
    }

    pub(crate) fn is_kept(&self) -> bool {
        self.mark == Mark::Kept
    }

    /// As it was before it was marked.
    pub(crate) fn unmarked(self) -> Self {
        Self { mark: Mark::Kept, ..self }
    }

    /// Sealed, and all bytes are there.
    pub(crate) fn is_full(&self) -> bool {
        self.sealed().is_some_and(|end| self.synced >= end) && self.is_kept()
    }

    /// Whether the bytes of the append at this place are here, in any state.
    pub(crate) fn holds(&self, place: u8) -> bool {
        !self.is_absent() && self.synced > place
    }

    /// Writes the next append. The first one makes the extent.
    pub(crate) fn append(&mut self) {
        self.phase = Phase::Open;
        self.end += 1;
    }

    /// Syncs, and answers the writer.
    pub(crate) fn sync(&mut self) {
        self.synced = self.end;
        self.said = self.said.max(self.synced);
    }

    /// Answers again what it has.
    pub(crate) fn repeat(&mut self) {
        self.said = self.said.max(self.synced);
    }

    /// Takes no more appends. The end that this answers is synced first.
    pub(crate) fn fence(&mut self, sync: bool) {
        self.phase = Phase::Closed;
        if sync {
            self.sync();
        }
    }

    /// Ends there: longer ones are cut, shorter ones have to pull.
    pub(crate) fn seal(&mut self, end: u8) {
        self.phase = Phase::Sealed(end);
        self.end = self.end.min(end);
        self.synced = self.end;
    }

    /// Gets from a longer copy what it lacks, before an end is settled.
    pub(crate) fn level(&mut self, end: u8) {
        (self.end, self.synced) = (end, end);
    }

    /// All bytes came from another copy.
    pub(crate) fn pulled(&mut self, end: u8) {
        let said = self.said;
        *self = Self { phase: Phase::Sealed(end), end, synced: end, said, ..Self::ABSENT };
    }

    pub(crate) fn remove(&mut self) {
        *self = Self { said: self.said, ..Self::ABSENT };
    }

    /// The node's process ends and starts again. What was not synced is there or not.
    pub(crate) fn restart(&mut self, keeps: bool) {
        if !keeps {
            self.end = self.synced;
        }
        self.synced = self.end;
        if self.phase == Phase::Open {
            // Without a byte not even the creation was durable.
            self.phase = if self.end == 0 { Phase::Absent } else { Phase::Closed };
        }
    }

    /// Power is lost, and with it the last synced append.
    pub(crate) fn tear(&mut self, proven: bool) {
        self.synced -= 1;
        self.end = self.synced;
        (self.torn, self.lied) = (self.torn || proven, self.lied || !proven);
        if self.phase == Phase::Open {
            self.phase = Phase::Closed;
        }
    }
}

/// Synced appends of an extent that one copy lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Loss {
    pub(crate) extent: u8,
    pub(crate) from: u8,
    pub(crate) to: u8,
}

impl Loss {
    pub(crate) fn hits(&self, extent: u8, place: u8) -> bool {
        self.extent == extent && (self.from..self.to).contains(&place)
    }
}

/// A small number as it is kept.
pub(crate) fn number(small: usize) -> u8 {
    u8::try_from(small).unwrap()
}
