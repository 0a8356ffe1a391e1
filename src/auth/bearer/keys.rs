//! The public keys of an issuer.
//!
//! Source: RFC 7517 (JSON Web Key), RFC 7518 section 6.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::ECDSA_P256_SHA256_FIXED;
use ring::signature::RSA_PKCS1_2048_8192_SHA256;
use ring::signature::RsaPublicKeyComponents;
use ring::signature::UnparsedPublicKey;
use serde::Deserialize;
use thiserror::Error;

/// Why a key set is refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum KeySetError {
    /// It is not the JSON of a key set.
    #[error("not a JSON Web Key Set: {0}")]
    Shape(String),
    /// It has no key for RS256 or ES256.
    #[error("no key for RS256 or ES256 in it")]
    Empty,
}

/// The keys of one issuer for RS256 and ES256. Other keys are ignored.
#[derive(Clone, Debug, Default)]
pub struct KeySet(Vec<Key>);

#[derive(Clone, Debug)]
struct Key {
    id: Option<String>,
    material: Material,
}

#[derive(Clone, Debug)]
enum Material {
    Rsa {
        modulus: Vec<u8>,
        exponent: Vec<u8>,
    },
    /// The uncompressed point.
    P256(Vec<u8>),
}

#[derive(Deserialize)]
struct Document {
    keys: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    kty: String,
    kid: Option<String>,
    #[serde(rename = "use")]
    purpose: Option<String>,
    crv: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

impl KeySet {
    /// Reads the JSON of a key set.
    ///
    /// # Errors
    /// [`KeySetError`].
    pub fn parse(json: &str) -> Result<Self, KeySetError> {
        let document: Document =
            serde_json::from_str(json).map_err(|error| KeySetError::Shape(error.to_string()))?;
        let keys: Vec<Key> = document.keys.into_iter().filter_map(key).collect();
        if keys.is_empty() { Err(KeySetError::Empty) } else { Ok(Self(keys)) }
    }

    /// Whether there is a key with this id.
    #[must_use]
    pub fn knows(&self, id: &str) -> bool {
        self.0.iter().any(|key| key.id.as_deref() == Some(id))
    }

    /// Whether one of the keys made `signature` over `text`; with an id, only that key is tried.
    pub(super) fn verify(
        &self,
        id: Option<&str>,
        algorithm: Algorithm,
        text: &[u8],
        signature: &[u8],
    ) -> bool {
        let named = |key: &&Key| match (id, key.id.as_deref()) {
            (Some(wanted), Some(own)) => wanted == own,
            (None, _) | (Some(_), None) => true,
        };
        self.0.iter().filter(named).any(|key| key.material.verify(algorithm, text, signature))
    }
}

/// The accepted algorithms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Algorithm {
    Rs256,
    Es256,
}

impl Material {
    fn verify(&self, algorithm: Algorithm, text: &[u8], signature: &[u8]) -> bool {
        match (self, algorithm) {
            (Self::Rsa { modulus, exponent }, Algorithm::Rs256) => {
                let key = RsaPublicKeyComponents { n: modulus, e: exponent };
                key.verify(&RSA_PKCS1_2048_8192_SHA256, text, signature).is_ok()
            }
            (Self::P256(point), Algorithm::Es256) => {
                let key = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point);
                key.verify(text, signature).is_ok()
            }
            (Self::Rsa { .. }, Algorithm::Es256) | (Self::P256(_), Algorithm::Rs256) => false,
        }
    }
}

fn key(entry: Entry) -> Option<Key> {
    if entry.purpose.is_some_and(|purpose| purpose != "sig") {
        return None;
    }
    let decode = |text: Option<String>| {
        let bytes = URL_SAFE_NO_PAD.decode(text?.trim_end_matches('=')).ok()?;
        // JSON Web Keys may have leading zeros, which the verifier does not accept.
        let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
        bytes.get(zeros..).map(<[u8]>::to_vec)
    };
    let material = match (entry.kty.as_str(), entry.crv.as_deref()) {
        ("RSA", _) => Material::Rsa { modulus: decode(entry.n)?, exponent: decode(entry.e)? },
        ("EC", Some("P-256")) => {
            let (x, y) = (decode(entry.x)?, decode(entry.y)?);
            let mut point = vec![4];
            for coordinate in [x, y] {
                point.resize(point.len() + 32usize.checked_sub(coordinate.len())?, 0);
                point.extend_from_slice(&coordinate);
            }
            Material::P256(point)
        }
        _ => return None,
    };
    Some(Key { id: entry.kid, material })
}
