//! Our keys among those of an etcd.

use bytes::Bytes;
use bytes::BytesMut;

/// The end of a range up to the last key of all.
const TO_THE_END: &[u8] = &[0];

/// The keys that begin with a prefix. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Keys {
    prefix: Bytes,
}

impl Keys {
    /// Those that begin with `prefix`, which is not empty.
    pub(super) fn new(prefix: &[u8]) -> Self {
        Self { prefix: Bytes::copy_from_slice(prefix) }
    }

    /// The name in etcd of a key, or of a prefix.
    pub(super) fn outer(&self, key: &[u8]) -> Bytes {
        let mut outer = BytesMut::with_capacity(self.prefix.len() + key.len());
        outer.extend_from_slice(&self.prefix);
        outer.extend_from_slice(key);
        outer.freeze()
    }

    /// The key of a name in etcd. `None` if it is none of ours.
    pub(super) fn inner(&self, name: &Bytes) -> Option<Bytes> {
        name.starts_with(&self.prefix).then(|| name.slice(self.prefix.len()..))
    }
}

/// The first name after all that begin with `prefix`.
pub(super) fn end_of(prefix: &[u8]) -> Bytes {
    let Some(last) = prefix.iter().rposition(|byte| *byte < u8::MAX) else {
        return Bytes::from_static(TO_THE_END);
    };
    let mut end = prefix[..=last].to_vec();
    end[last] += 1;
    end.into()
}

/// The first name after this one.
pub(super) fn next_of(name: &[u8]) -> Bytes {
    let mut next = BytesMut::with_capacity(name.len() + 1);
    next.extend_from_slice(name);
    next.extend_from_slice(&[0]);
    next.freeze()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn end_is_after_all_names_with_the_prefix() {
        let cases: [(&[u8], &[u8]); 5] = [
            (b"/a/", b"/a0"),
            (&[b'a', 0xff], b"b"),
            (&[b'a', 0xff, 0xff], b"b"),
            (&[b'a', 0xfe, 0xff], &[b'a', 0xff]),
            (&[0xff, 0xff], &[0]),
        ];
        for (prefix, end) in cases {
            assert_eq!(end_of(prefix), end, "{prefix:?}");
        }
    }

    #[test]
    fn keys_of_others_are_none_of_ours() {
        let keys = Keys::new(b"/a/");
        assert_eq!(keys.inner(&keys.outer(b"x")).unwrap(), "x");
        assert_eq!(keys.inner(&keys.outer(b"")).unwrap(), "");
        assert_eq!(keys.inner(&Bytes::from_static(b"/b/x")), None);
        assert_eq!(next_of(b"x"), &b"x\0"[..]);
    }
}
