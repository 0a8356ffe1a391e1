//! Bodies that carry their checksums: Azure's structured messages.

pub use crate::protocol::azure::structured::{Decoder, Encoder};
