//! Golden bytes of the messages. That each call is carried out is tested with the rules of a member
//! (`copies/tests/member.rs`): there all calls travel as messages.

use serde::Serialize;

use super::calls::Append;
use super::calls::AppendCall;
use super::calls::Copy;
use super::calls::Dead;
use super::calls::Extend;
use super::calls::ExtendCall;
use super::calls::Fence;
use super::calls::FenceCall;
use super::calls::Fenced;
use super::calls::Flush;
use super::calls::FlushCall;
use super::calls::FramePlace;
use super::calls::Frames;
use super::calls::FramesCall;
use super::calls::Free;
use super::calls::GiveBack;
use super::calls::LeaseLeft;
use super::calls::NoteDamage;
use super::calls::Outcome;
use super::calls::PartLengths;
use super::calls::Read;
use super::calls::ReadCall;
use super::calls::Remove;
use super::calls::Report;
use super::calls::Retain;
use super::calls::RetainCall;
use super::calls::SealAt;
use super::calls::SealAtCall;
use super::error::CallFailed;
use crate::capacity::Audited;
use crate::capacity::CopyId;
use crate::capacity::CopyInfo;
use crate::capacity::Damage;
use crate::capacity::Durability;
use crate::capacity::Error;
use crate::capacity::ExtentKind;
use crate::capacity::ExtentState;
use crate::capacity::OwnedLog;
use crate::capacity::groups::Extents;
use crate::capacity::groups::MemberReport;
use crate::rpc::Method;
use crate::rpc::decode;
use crate::rpc::encode;
use crate::types::ByteLen;
use crate::types::Crc32c;
use crate::types::Epoch;
use crate::types::ExtentId;
use crate::types::ExtentOffset;
use crate::types::Generation;
use crate::types::Location;
use crate::types::NodeId;

const EXTENT: ExtentId = ExtentId::new(300);
const COPY: CopyId = CopyId { extent: EXTENT, kind: ExtentKind::Log };
const EPOCH: Epoch = Epoch::new(7);
const END: ExtentOffset = ExtentOffset::new(9);

/// A message, and its bytes after the version.
#[track_caller]
fn check<T: Serialize>(message: &T, bytes: &[u8]) {
    assert_eq!(encode(message).unwrap()[1..], *bytes);
}

/// A call and its answer, and their bytes.
#[track_caller]
fn method<M>(number: u16, call: &M::Call, call_bytes: &[u8], answer: &M::Answer, bytes: &[u8])
where
    M: Method,
    M::Call: PartialEq + std::fmt::Debug,
    M::Answer: PartialEq + std::fmt::Debug,
{
    assert_eq!(M::NUMBER, number);
    check(call, call_bytes);
    check(answer, bytes);
    assert_eq!(decode::<M::Call>(&encode(call).unwrap()).as_ref(), Ok(call));
    assert_eq!(decode::<M::Answer>(&encode(answer).unwrap()).as_ref(), Ok(answer));
}

fn location() -> Location {
    Location { extent: EXTENT, offset: END, len: ByteLen::new(5), crc: Crc32c::new(6) }
}

/// The extent of these samples, as a varint.
const ID: [u8; 2] = [0xAC, 0x02];

#[test]
fn appends_and_reads_have_golden_bytes() {
    let append =
        AppendCall { copy: COPY, epoch: EPOCH, offset: END, durability: Durability::Deferred };
    let id = ID;
    let bytes = [id[0], id[1], 1, 7, 9, 1];
    method::<Append>(0x0101, &append, &bytes, &Ok(END), &[0, 9]);
    let flush = FlushCall { extent: EXTENT, epoch: EPOCH, end: END };
    method::<Flush>(0x0102, &flush, &[id[0], id[1], 7, 9], &Ok(()), &[0]);
    let read = ReadCall { location: location(), range: 1..4 };
    let bytes = [id[0], id[1], 9, 5, 6, 1, 4];
    let parts = Ok(vec![PartLengths { head: 60, chunks: 130 }]);
    method::<Read>(0x0103, &read, &bytes, &parts, &[0, 1, 60, 0x82, 0x01]);
    let frames = FramesCall { extent: EXTENT, from: END, bytes_max: 128 };
    let places = Ok(vec![FramePlace { offset: END, bytes: 64 }]);
    let bytes = [id[0], id[1], 9, 0x80, 0x01];
    method::<Frames>(0x0104, &frames, &bytes, &places, &[0, 1, 9, 64]);
}

#[test]
fn changes_of_copies_have_golden_bytes() {
    let id = ID;
    let fence = FenceCall { copy: COPY, epoch: EPOCH };
    method::<Fence>(0x0105, &fence, &[id[0], id[1], 1, 7], &Ok(END), &[0, 9]);
    let frames = vec![FramePlace { offset: END, bytes: 64 }];
    let extend = ExtendCall { copy: COPY, epoch: EPOCH, frames, dead_to: Some(END) };
    let bytes = [id[0], id[1], 1, 7, 1, 9, 64, 1, 9];
    method::<Extend>(0x0106, &extend, &bytes, &Ok(END), &[0, 9]);
    let seal = SealAtCall { extent: EXTENT, epoch: EPOCH, len: END };
    method::<SealAt>(0x0107, &seal, &[id[0], id[1], 7, 9], &Ok(()), &[0]);
    let free = vec![location()];
    method::<Free>(0x010B, &free, &[1, id[0], id[1], 9, 5, 6], &Ok(()), &[0]);
    let retain = RetainCall { extent: EXTENT, live: vec![2..3, 4..5], audited: Audited::Part };
    method::<Retain>(0x010C, &retain, &[id[0], id[1], 2, 2, 3, 4, 5, 1], &Ok(()), &[0]);
    method::<Remove>(0x010D, &EXTENT, &id, &Ok(()), &[0]);
}

#[test]
fn questions_have_golden_bytes() {
    let id = ID;
    let info = CopyInfo {
        kind: ExtentKind::Run,
        state: ExtentState::Closed,
        epoch: EPOCH,
        end: END,
        incomplete: true,
    };
    method::<Copy>(0x0108, &EXTENT, &id, &Ok(Some(info)), &[0, 1, 2, 1, 7, 9, 1]);
    method::<Copy>(0x0108, &EXTENT, &id, &Ok(None), &[0, 0]);
    let logs = vec![OwnedLog { log: EXTENT, epoch: EPOCH }];
    method::<Fenced>(
        0x0109,
        &logs,
        &[1, id[0], id[1], 7],
        &Ok(vec![EXTENT]),
        &[0, 1, id[0], id[1]],
    );
    method::<GiveBack>(0x0110, &logs, &[1, id[0], id[1], 7], &Ok(()), &[0]);
    let damage = Damage { extent: EXTENT, offset: END };
    method::<NoteDamage>(0x0111, &damage, &[id[0], id[1], 9], &Ok(()), &[0]);
    method::<LeaseLeft>(0x010F, &EXTENT, &id, &Ok(1200), &[0, 0xB0, 0x09]);
    let report = MemberReport {
        node: NodeId::new(4),
        generation: Generation::new(2),
        has_noted_closed: true,
        absent: Extents::from_bits(1),
        sealed: Extents::from_bits(130),
        whole: Extents::from_bits(2),
    };
    let bytes = [0, 4, 2, 1, 1, 0x82, 0x01, 2];
    method::<Report>(0x010E, &EXTENT.group(), &[4], &Ok(report), &bytes);
    method::<Dead>(0x010A, &EXTENT, &id, &Ok(vec![0..1, 2..130]), &[0, 2, 0, 1, 2, 0x82, 0x01]);
}

#[test]
fn errors_have_golden_bytes_and_come_back_as_they_were() {
    let (extent, epoch) = (EXTENT, EPOCH);
    let [one, two] = ID;
    let reason = "ab".to_owned();
    let errors = [
        (Error::Sealed { extent }, vec![0, one, two]),
        (Error::Fenced { extent, epoch }, vec![1, one, two, 7]),
        (Error::WrongOffset { extent, expected: END }, vec![2, one, two, 9]),
        (Error::NoSuchExtent { extent }, vec![3, one, two]),
        (Error::Corrupt { extent, offset: END }, vec![4, one, two, 9]),
        (Error::Full, vec![5]),
        (Error::Poisoned { disk: 3 }, vec![6, 3]),
        (Error::Ended { doing: "call of another node" }, vec![7]),
        (Error::OutOfService { extent }, vec![8, one, two]),
        (Error::Unreadable { extent, reason: reason.clone() }, vec![9, one, two, 2, b'a', b'b']),
        (Error::NoAnswer { reason }, vec![10, 2, b'a', b'b']),
    ];
    for (error, bytes) in errors {
        let failed: Outcome<()> = Err(CallFailed::from(error.clone()));
        check(&failed, &[&[1], &bytes[..]].concat());
        let back = decode::<Outcome<()>>(&encode(&failed).unwrap()).unwrap().unwrap_err();
        assert_eq!(Error::from(back).to_string(), error.to_string());
    }
}
