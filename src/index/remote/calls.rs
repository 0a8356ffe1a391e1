//! The calls to a process that serves partitions, as messages. `api-spec/index-calls.md` describes
//! them.

use std::sync::Arc;

use serde::Deserialize;
use serde::Deserializer;
use serde::Serialize;
use serde::Serializer;

use super::accounts::ChangedAccounts;
use super::accounts::ChangesTo;
use crate::index::api;
use crate::index::api::ChangeError;
use crate::index::api::Changed;
use crate::index::api::ChangesOf;
use crate::index::api::Error;
use crate::index::api::KnownChanges;
use crate::index::api::PartitionCounts;
use crate::index::api::Plan;
use crate::index::api::ReadReply;
use crate::index::api::ServedPartitions;
use crate::index::api::Target;
use crate::index::api::WriteId;
use crate::index::api::WriteReply;
use crate::rpc::Method;
use crate::rpc::NodeIdentity;
use crate::rpc::messages_in;
use crate::types::HostId;
use crate::types::KeyRange;
use crate::types::PartitionId;
use crate::types::RoutingKey;

/// What a call ends with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum Answer<T> {
    /// The answer of the partition.
    Done(T),
    /// The error of the partition.
    Failed(Error),
    /// This process does not serve the index, or does not see the session of the caller yet.
    /// Nothing was done: ask again soon.
    NotHere,
    /// It was done, and the answer has so many bytes, which is more than the caller takes. What may
    /// be done twice is asked for again.
    TooLarge(u32),
}

/// A value that is shared where it is sent from, since it may have to be sent again.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Shared<T>(pub Arc<T>);

impl<T: Serialize> Serialize for Shared<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Shared<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        T::deserialize(deserializer).map(|value| Self(Arc::new(value)))
    }
}

/// A question to a partition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct ReadCall {
    pub target: Target,
    pub read: Shared<api::Read>,
}

/// A change of a partition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct WriteCall {
    pub target: Target,
    /// The number of the change, if it may be sent again.
    pub id: Option<WriteId>,
    pub write: Shared<api::Write>,
}

/// Reads from a partition.
#[derive(Debug)]
pub(super) struct Read;

impl Method for Read {
    const NUMBER: u16 = 0x0201;
    type Call = ReadCall;
    type Answer = Answer<ReadReply>;
}

/// Changes a partition.
#[derive(Debug)]
pub(super) struct Write;

impl Method for Write {
    const NUMBER: u16 = 0x0202;
    type Call = WriteCall;
    type Answer = Answer<WriteReply>;
}

/// The processes whose calls are answered.
#[derive(Debug)]
pub(super) struct IndexClientsOf;

impl Method for IndexClientsOf {
    const NUMBER: u16 = 0x0203;
    type Call = ();
    type Answer = Answer<Vec<NodeIdentity>>;
}

/// Waits until accounts are changed after these changes, and names them.
#[derive(Debug)]
pub(super) struct AccountsAfter;

impl Method for AccountsAfter {
    const NUMBER: u16 = 0x0204;
    type Call = Option<ChangesTo>;
    type Answer = Answer<ChangedAccounts>;
}

/// Asks the process that serves a partition to give it away.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct GiveCall {
    pub target: Target,
    /// A host of another process.
    pub to: HostId,
}

/// Gives a partition to a host of another process.
#[derive(Debug)]
pub(super) struct Give;

impl Method for Give {
    const NUMBER: u16 = 0x0205;
    type Call = GiveCall;
    type Answer = Answer<()>;
}

/// The partitions of a process, and its hosts.
#[derive(Debug)]
pub(super) struct Served;

impl Method for Served {
    const NUMBER: u16 = 0x0206;
    type Call = ();
    type Answer = Answer<ServedPartitions>;
}

/// How many requests each partition of a process has had.
#[derive(Debug)]
pub(super) struct Counts;

impl Method for Counts {
    const NUMBER: u16 = 0x0207;
    type Call = ();
    type Answer = Answer<Vec<PartitionCounts>>;
}

/// The latest changes of the map by a process.
#[derive(Debug)]
pub(super) struct Changes;

impl Method for Changes {
    const NUMBER: u16 = 0x0208;
    /// Those that are known.
    type Call = KnownChanges;
    type Answer = Answer<Vec<ChangesOf>>;
}

/// Asks for keys that cut a partition into parts of equal load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct EvenCutsCall {
    pub partition: PartitionId,
    pub parts: u32,
}

/// Keys that cut a partition into parts of equal load.
#[derive(Debug)]
pub(super) struct EvenCuts;

impl Method for EvenCuts {
    const NUMBER: u16 = 0x0209;
    type Call = EvenCutsCall;
    type Answer = Answer<Result<Vec<RoutingKey>, ChangeError>>;
}

/// Asks how the rows of a range are spread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct RowSpreadCall {
    pub range: KeyRange,
    pub parts: u32,
}

/// How the rows of a range are spread that a process has.
#[derive(Debug)]
pub(super) struct RowSpread;

impl Method for RowSpread {
    const NUMBER: u16 = 0x020a;
    type Call = RowSpreadCall;
    type Answer = Answer<Vec<(RoutingKey, u64)>>;
}

/// Changes partitions of a process.
#[derive(Debug)]
pub(super) struct Change;

impl Method for Change {
    const NUMBER: u16 = 0x020b;
    type Call = Plan;
    type Answer = Answer<Result<Changed, ChangeError>>;
}

/// Decodes bytes as the message of each call and of each answer. Returns how many took them. For
/// the fuzz target.
pub(in crate::index) fn decode_any(bytes: &[u8]) -> usize {
    let taken = [
        messages_in::<Read>(bytes),
        messages_in::<Write>(bytes),
        messages_in::<IndexClientsOf>(bytes),
        messages_in::<AccountsAfter>(bytes),
        messages_in::<Give>(bytes),
        messages_in::<Served>(bytes),
        messages_in::<Counts>(bytes),
        messages_in::<Changes>(bytes),
        messages_in::<EvenCuts>(bytes),
        messages_in::<RowSpread>(bytes),
        messages_in::<Change>(bytes),
    ];
    taken.iter().sum()
}
