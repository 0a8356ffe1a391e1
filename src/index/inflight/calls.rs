//! Questions about the running requests of a process, as messages. `api-spec/index-calls.md`
//! describes them.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde::Serialize;

use crate::index::api::CopyWatchId;
use crate::index::api::Error;
use crate::index::api::OldestRead;
use crate::index::api::RequestMark;
use crate::index::api::Running;
use crate::rpc::Method;
use crate::rpc::messages_in;
use crate::types::ExtentId;
use crate::types::Incarnation;

/// A question to one life of a node. Another life does not answer it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Asked<T> {
    pub to: Incarnation,
    pub about: T,
}

/// What a question ends with.
pub(super) type Outcome<T> = Result<T, Error>;

/// A mark of one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Marked {
    /// It separates what was noted before from what is noted later.
    pub mark: RequestMark,
    /// Everything that was noted before it has ended.
    pub ended: RequestMark,
}

macro_rules! method {
    ($(#[$doc:meta])* $name:ident = $number:literal, $call:ty => $answer:ty) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub(super) struct $name;

        impl Method for $name {
            const NUMBER: u16 = $number;
            type Call = Asked<$call>;
            type Answer = Outcome<$answer>;
        }
    };
}

method! {
    /// A mark.
    Mark = 0x0301, () => Marked
}
method! {
    /// Whether such a request runs.
    IsRunning = 0x0302, Running => bool
}
method! {
    /// The extents of running writes.
    Written = 0x0303, () => BTreeSet<ExtentId>
}
method! {
    /// The read that has run for longest.
    Oldest = 0x0304, () => Option<OldestRead>
}
method! {
    /// Begins a watch of copies.
    WatchCopies = 0x0305, () => CopyWatchId
}
method! {
    /// Ends a watch.
    EndWatch = 0x0306, CopyWatchId => ()
}

/// Decodes bytes as the message of each call and of each answer. Returns how many took them. For
/// the fuzz target.
pub(in crate::index) fn decode_any(bytes: &[u8]) -> usize {
    let taken = [
        messages_in::<Mark>(bytes),
        messages_in::<IsRunning>(bytes),
        messages_in::<Written>(bytes),
        messages_in::<Oldest>(bytes),
        messages_in::<WatchCopies>(bytes),
        messages_in::<EndWatch>(bytes),
    ];
    taken.iter().sum()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde::de::DeserializeOwned;

    use super::*;
    use crate::rpc::decode;
    use crate::rpc::encode;
    use crate::types::RoutingKey;

    const TO: Incarnation = Incarnation::new(300);

    /// A call and its answer, and their bytes after the version.
    #[track_caller]
    fn check<M, C, A>(number: u16, about: C, call: &[u8], answer: Outcome<A>, bytes: &[u8])
    where
        M: Method<Call = Asked<C>, Answer = Outcome<A>>,
        C: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug,
        A: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug,
    {
        assert_eq!(M::NUMBER, number);
        let asked = Asked { to: TO, about };
        let encoded = encode(&asked).unwrap();
        assert_eq!(encoded[1..], [&[0xAC, 0x02], call].concat());
        assert_eq!(decode::<M::Call>(&encoded), Ok(asked));
        let encoded = encode(&answer).unwrap();
        assert_eq!(encoded[1..], *bytes);
        assert_eq!(decode::<M::Answer>(&encoded), Ok(answer));
    }

    #[test]
    fn messages_have_golden_bytes() {
        let mark = |reads| RequestMark { reads, changes: 2, copies: 3 };
        let marked = Marked { mark: mark(9), ended: mark(8) };
        check::<Mark, _, _>(0x0301, (), &[], Ok(marked), &[0, 9, 2, 3, 8, 2, 3]);
        let (before, extents) = (mark(9), vec![ExtentId::new(5)]);
        let reads = Running::Read { before, extents };
        check::<IsRunning, _, _>(0x0302, reads, &[0, 9, 2, 3, 1, 5], Ok(true), &[0, 1]);
        let layer = Running::Layer { before, blob: RoutingKey::min() };
        check::<IsRunning, _, _>(0x0302, layer, &[1, 9, 2, 3, 0], Ok(false), &[0, 0]);
        for (variant, asked) in [
            (2, Running::Change { before }),
            (3, Running::Commit { before }),
            (4, Running::CopyLookUp { before }),
        ] {
            check::<IsRunning, _, _>(0x0302, asked, &[variant, 9, 2, 3], Ok(true), &[0, 1]);
        }
        let copy = Running::Copy { since: CopyWatchId(6), extent: ExtentId::new(5) };
        check::<IsRunning, _, _>(0x0302, copy, &[5, 6, 5], Ok(true), &[0, 1]);
        let written = [ExtentId::new(5), ExtentId::new(7)].into();
        check::<Written, _, _>(0x0303, (), &[], Ok(written), &[0, 2, 5, 7]);
        let age = Duration::new(4, 5);
        let oldest = OldestRead { number: 9, age, what: Some("x".to_owned()), request: None };
        let bytes = [0, 1, 9, 4, 5, 1, 1, b'x', 0];
        check::<Oldest, _, _>(0x0304, (), &[], Ok(Some(oldest)), &bytes);
        check::<WatchCopies, _, _>(0x0305, (), &[], Ok(CopyWatchId(6)), &[0, 6]);
        check::<EndWatch, _, _>(0x0306, CopyWatchId(6), &[6], Ok(()), &[0]);
        let failed = Err(Error::NoAnswer("x".to_owned()));
        check::<EndWatch, _, _>(0x0306, CopyWatchId(6), &[6], failed, &[1, 6, 1, b'x']);
    }
}
