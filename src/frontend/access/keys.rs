//! Refuses customer-provided keys that arrive unencrypted.

use crate::protocol::model::Operation;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::types::Peer;

/// Refuses a customer-provided key over plain http, except on the loopback interface. This holds in
/// every dialect. A dialect that has the key in the head checks the head too, whatever the
/// operation.
///
/// # Errors
/// `InvalidHeaderValue` for a key over http from elsewhere.
pub(in crate::frontend) fn check_key_is_safe(
    operation: &Operation,
    peer: Peer,
) -> Result<(), Refusal> {
    let brings = |of: &Operation| {
        let source = of.named_source().map(|source| &source.precondition);
        let mut all = of.precondition().into_iter().chain(source);
        all.any(|must| must.encryption.key().is_some())
    };
    if peer.secure || peer.address.ip().to_canonical().is_loopback() || !brings(operation) {
        return Ok(());
    }
    Err(Refusal::new(Reason::InvalidHeaderValue)
        .message("A customer-provided key may be sent over https only."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::model::Precondition;
    use crate::protocol::model::operation::BlobOperation;
    use crate::protocol::model::operation::BlobPath;
    use crate::protocol::model::operation::RequestEncryption;
    use crate::types::BlobName;
    use crate::types::ContainerName;
    use crate::types::CustomerKey;
    use crate::types::Protocols;
    use crate::types::Revision;

    fn get(encryption: RequestEncryption) -> Operation {
        let (container, blob) = (ContainerName::new("con").unwrap(), BlobName::new("b").unwrap());
        let path = BlobPath { container, blob, revision: Revision::Current };
        let precondition = Precondition { encryption, ..Precondition::default() };
        BlobOperation::GetBlobProperties { path, precondition }.into()
    }

    #[test]
    fn key_over_http_from_elsewhere_is_refused() {
        let key = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
        let keyed = get(RequestEncryption::Key(CustomerKey::from_base64(key).unwrap()));
        let peer = |address: &str, secure| Peer {
            address: address.parse().unwrap(),
            secure,
            protocols: Protocols::All,
        };
        for (address, secure, expected) in [
            ("10.0.0.9:1", false, false),
            ("10.0.0.9:1", true, true),
            ("127.0.0.1:1", false, true),
            ("[::1]:1", false, true),
            ("[::ffff:127.0.0.1]:1", false, true),
        ] {
            let checked = check_key_is_safe(&keyed, peer(address, secure));
            assert_eq!(checked.is_ok(), expected, "{address} {secure}");
        }
        for plain in [RequestEncryption::Plain, RequestEncryption::Scope("s".to_owned())] {
            assert!(check_key_is_safe(&get(plain), peer("10.0.0.9:1", false)).is_ok());
        }
    }
}
