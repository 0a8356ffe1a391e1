//! What a node serves.

use std::fmt::Debug;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::error::Refusal;
use super::hello::NodeIdentity;
use super::message::decode;
use super::message::encode;

/// A method: its number, what a call of it says, and what is answered.
pub trait Method {
    /// The number. The upper byte is that of the service. A number is never used for another
    /// method.
    const NUMBER: u16;
    /// The message of a call.
    type Call: Serialize + DeserializeOwned + Send;
    /// The message of the answer.
    type Answer: Serialize + DeserializeOwned + Send;
}

/// As how many messages of a method bytes can be read: its call and its answer. For fuzz targets.
#[must_use]
pub fn messages_in<M: Method>(bytes: &[u8]) -> usize {
    usize::from(decode::<M::Call>(bytes).is_ok()) + usize::from(decode::<M::Answer>(bytes).is_ok())
}

/// The service that has a method.
pub(super) const fn service_of(method: u16) -> u8 {
    let [service, _] = method.to_be_bytes();
    service
}

/// A call that has arrived.
#[derive(Clone, Debug)]
pub struct Incoming {
    /// Who calls.
    pub from: NodeIdentity,
    /// The method.
    pub method: u16,
    /// The message.
    pub message: Bytes,
    /// Bytes beside the message.
    pub payload: Bytes,
    /// Until when the caller waits, in monotonic time.
    pub deadline: Duration,
    /// The most bytes of message and payload that the answer may have.
    pub answer_bytes_max: u32,
}

impl Incoming {
    /// The message of a call of this method.
    ///
    /// # Errors
    /// [`Refusal::Malformed`].
    pub fn decode<M: Method>(&self) -> Result<M::Call, Refusal> {
        decode(&self.message).map_err(|_| Refusal::Malformed)
    }
}

/// An answer.
#[derive(Clone, Debug, Default)]
pub struct Reply {
    /// The message.
    pub message: Bytes,
    /// The pieces of the payload.
    pub payload: Vec<Bytes>,
}

impl Reply {
    /// The answer to a call of this method.
    ///
    /// # Panics
    /// If the answer cannot be encoded, which is a fault in its type. The caller is told then that
    /// the outcome is unknown: the call may have had effects.
    #[must_use]
    pub fn of<M: Method>(answer: &M::Answer, payload: Vec<Bytes>) -> Self {
        Self { message: encode(answer).expect("answers can be encoded"), payload }
    }
}

/// One of the services of a node, such as its capacity.
#[async_trait]
pub trait Service: Send + Sync + Debug {
    /// Whether calls of a method have no effects. Such a call is dropped where it stands when
    /// nobody waits for its answer any more.
    fn is_read(&self, method: u16) -> bool;

    /// Carries out a call.
    ///
    /// # Errors
    /// [`Refusal`] if the call had no effects. All other errors are answers.
    async fn serve(&self, call: Incoming) -> Result<Reply, Refusal>;
}
