//! Extents with copies, model-checked: every interleaving of small worlds.
//!
//! # What must hold
//!
//! Of all extents, in every state:
//!
//! 1. Only faults take copies of what was answered. As many disks have an answered append as it
//!    was answered on, less those that lost it. So it is there while one of these copies is.
//! 2. An extent has one end: by its record, and by every copy that is sealed.
//! 3. Nothing is answered past the end, and no sealed copy is longer.
//! 4. What is settled can be made whole. While fewer copies are lost than an end was settled on,
//!    all bytes up to it are on some disk.
//!
//! Of a group:
//!
//! 5. No extent comes into being in a closed group: what is gone because nobody had it was never
//!    answered.
//! 6. Members of a group with an open extent do not change.
//! 7. What a node removed because it is gone, it never has again.
//! 8. The record leads to what was answered: a member that is not lost has it, while fewer copies
//!    are lost than it was answered on.
//! 9. Where no further step is possible, each extent is gone, or whole at all members, or has lost
//!    bytes.
//!
//! Of a log:
//!
//! 10. The next owner finds every acknowledged record.
//! 11. The owner that the coordinator names, when it serves, shows it.
//! 12. A log is replayed in order, and nothing twice.
//! 13. Where no further step is possible, the partition serves, if of each extent of its log fewer
//!     copies are lost than its end was settled on.
//! 14. After a handover in place, copies agree wherever two have bytes.
//!
//! # The worlds
//!
//! `data` is one group with a writer, a manager and up to four nodes. `log` is the log of one
//! partition with two hosts and three nodes. `copy` is what both say of a copy at a node.
//! `handover` is one extent with an old and a new owner, and contents.
//!
//! Lengths are counted in appends. A message may be late for ever, and arrive again and again: an
//! append is on its way as long as a copy ends before it, an answer as long as its writer waits. So
//! no step sends anything, and a lost message is one that is never delivered. A writer or host that
//! crashes is one that takes no further step; one that was paused goes on later. A manager has no
//! memory but the record and what members say, so there may be many. Nodes crash with or without
//! what was not synced, fall silent and return, lose the last synced append with or without a proof
//! of it, or lose their disk. A transaction of the coordinator is one step. That of a roll is sent,
//! carried out and heard of in three.
//!
//! # Rules that the walks added to the first design (ADR 0050)
//!
//! Each is a fault of `data` or `log`, which finds the trace without it.
//!
//! - *Level first* (`NotLevelled`). Who settles an end has all members that it reached pull up to
//!   it, then records it. Else the disk of the longest copy dies, and an end is recorded that no
//!   copy reaches: the extent is never whole, the partition never replayed, though the other
//!   copies have all that was answered.
//! - *Join, pull, leave* (`SwapAtOnce`, `SwapAndKeep`). A new member is added to the record; an old
//!   one leaves it when all others have all bytes. Else a member that comes back finds itself
//!   replaced and removes its copy, while the new one has nothing. The transaction compares the
//!   record (`LeaveUncompared`), and counts copies by what nodes said after the join, a marked copy
//!   being none (`OldReport`).
//! - *Nothing is answered while a roll's outcome is unknown* (`AnswersWhileRolling`), or it is
//!   answered when both extents have it (`WhileRolling::Both`, which needs no waiting).
//! - *The transaction of a roll always names the length* (`RollWithoutLength`), of clean ones too.
//! - *A member notes the fence of an extent that it does not have* (`FenceForgotten`).
//! - *What nobody has is gone only before the first change of members* (`BuryAfterChange`). The ids
//!   that are left get their bits before it. Length and gone exclude each other
//!   (`LengthOfGone`). A length of 0 needs no copy to pull from.
//! - *A copy that is being pulled knows its end first*, and is no witness (`PullIsWitness`).
//! - *A handover in place needs equal ends* (`handover`), not only that all members took the
//!   epoch; and a repetition is one of the same bytes, not of the same place.
//! - *A fence syncs the end that it answers* (`FenceUnsynced`).
//! - *Nodes do not forget groups that they left*, or read the record again (`GroupForgotten`).
//!
//! # What is left out
//!
//! - Reads and leases, audit and marks of readers: other models. What a client sees is here what
//!   an owner has replayed or answered.
//! - A disk that lies (lost bytes that nothing proves) is never the only witness. If it is, it
//!   decides, and answered bytes are cut.
//! - An end that was settled on one copy alone hangs on it: when that disk is lost too, the rest of
//!   the extent waits for a hand. Property 13 does not cover that.
//! - Trims of logs, runs, the 64 extents of a group (here two), full nodes, slowness, time. A roll
//!   goes anywhere; a pull is told the end, then has all bytes.

mod copy;
mod data;
mod handover;
mod log;
mod walk;
