//! Messages: values that postcard encodes, after a byte with their version.

use bytes::BufMut;
use bytes::Bytes;
use bytes::BytesMut;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The version of the messages of this release.
pub const MESSAGE_VERSION: u8 = 1;

/// The bytes are no such message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoSuchMessage;

/// Appends a message.
///
/// # Errors
/// [`NoSuchMessage`] if the value cannot be encoded. No type of a message is so.
pub(super) fn write<T: Serialize>(value: &T, to: &mut BytesMut) -> Result<(), NoSuchMessage> {
    to.put_u8(MESSAGE_VERSION);
    postcard::to_io(value, to.writer()).map(|_| ()).map_err(|_| NoSuchMessage)
}

/// A message as bytes.
///
/// # Errors
/// As [`write()`].
pub fn encode<T: Serialize>(value: &T) -> Result<Bytes, NoSuchMessage> {
    let mut bytes = BytesMut::new();
    write(value, &mut bytes)?;
    Ok(bytes.freeze())
}

/// The value of a message.
///
/// # Errors
/// [`NoSuchMessage`]: another version, a value that breaks a rule of its type, or bytes after it.
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, NoSuchMessage> {
    let [MESSAGE_VERSION, rest @ ..] = bytes else { return Err(NoSuchMessage) };
    match postcard::take_from_bytes(rest) {
        Ok((value, [])) => Ok(value),
        Ok(_) | Err(_) => Err(NoSuchMessage),
    }
}

/// The first value of a message, whatever follows it.
pub(super) fn decode_first<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    let [MESSAGE_VERSION, rest @ ..] = bytes else { return None };
    postcard::take_from_bytes(rest).ok().map(|(value, _)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_is_a_version_and_postcard() {
        let bytes = encode(&(300_u64, "ab")).unwrap();
        assert_eq!(bytes.as_ref(), [1, 0xAC, 0x02, 2, b'a', b'b']);
        assert_eq!(decode::<(u64, String)>(&bytes), Ok((300, "ab".to_owned())));
    }

    #[test]
    fn other_versions_short_and_long_messages_are_refused() {
        assert_eq!(decode::<u8>(&[1, 7]), Ok(7));
        for bytes in [&[][..], &[1], &[2, 7], &[0, 7], &[1, 7, 7]] {
            assert_eq!(decode::<u8>(bytes), Err(NoSuchMessage), "{bytes:?}");
        }
    }
}
