//! Lists of blobs of any length, page by page.

use std::collections::VecDeque;

use crate::protocol::azure::answers::Listed;
use crate::protocol::azure::answers::ListedBlob;

use super::error::FilesError;
use super::place::Remote;
use super::service::Service;

/// The blobs below a folder, in the order of the service.
#[derive(Debug)]
pub(super) struct Listing {
    at: Remote,
    prefix: String,
    one_level: bool,
    waiting: VecDeque<Listed>,
    /// The marker of the next page; `None` once the last page was read.
    next: Option<Option<String>>,
}

impl Listing {
    /// A list of what begins with `prefix`, from its beginning.
    pub(super) fn new(at: &Remote, prefix: String, one_level: bool) -> Self {
        Self { at: at.clone(), prefix, one_level, waiting: VecDeque::new(), next: Some(None) }
    }

    /// The next entry; none at the end.
    ///
    /// # Errors
    /// [`FilesError::Call`]; [`FilesError::Wrong`] if the server sends entries that were not
    /// requested.
    pub(super) async fn next(&mut self, service: &Service) -> Result<Option<Listed>, FilesError> {
        loop {
            if let Some(entry) = self.waiting.pop_front() {
                let name = match &entry {
                    Listed::Blob(blob) => &blob.name,
                    Listed::Folder(name) => name,
                };
                if !name.starts_with(&self.prefix) {
                    let text = format!("the server lists {name:?} below {:?}", self.prefix);
                    return Err(FilesError::Wrong(text));
                }
                return Ok(Some(entry));
            }
            let Some(marker) = self.next.take() else { return Ok(None) };
            let (prefix, marker) = (self.prefix.as_str(), marker.as_deref());
            let page = service.list_blobs(&self.at, prefix, self.one_level, marker).await?;
            // A server that answers with the same marker would be asked forever.
            if marker.is_some() && page.next.as_deref() == marker {
                return Err(FilesError::Wrong("the server's list does not go on".to_owned()));
            }
            self.waiting = page.items.into();
            self.next = page.next.map(Some);
        }
    }

    /// Gives back an entry, which will be the next one again.
    pub(super) fn put_back(&mut self, entry: Listed) {
        self.waiting.push_front(entry);
    }

    /// The next blob; none at the end.
    ///
    /// # Errors
    /// As [`Self::next`].
    pub(super) async fn next_blob(
        &mut self,
        service: &Service,
    ) -> Result<Option<ListedBlob>, FilesError> {
        loop {
            match self.next(service).await? {
                Some(Listed::Blob(blob)) => return Ok(Some(blob)),
                Some(Listed::Folder(_)) => {}
                None => return Ok(None),
            }
        }
    }
}

/// Blobs of a list that are passed over to find one. Then it is requested by its name.
const PASSED_MAX: usize = 10_000;

/// Looks names up in a list, in the order of the list: by UTF-16 code units, as the service sorts.
#[derive(Debug)]
pub(super) struct Lookup {
    list: Listing,
    ahead: Option<ListedBlob>,
    has_begun: bool,
}

impl Lookup {
    /// Look-ups in a list of blobs.
    pub(super) fn new(list: Listing) -> Self {
        Self { list, ahead: None, has_begun: false }
    }

    /// The blob with this name. Names must be requested in order. One that comes too late is not
    /// found, which only costs a copy. Without permission to list, nothing is found.
    ///
    /// # Errors
    /// As [`Listing::next`].
    pub(super) async fn find(
        &mut self,
        service: &Service,
        name: &str,
    ) -> Result<Option<ListedBlob>, FilesError> {
        if !self.has_begun {
            self.has_begun = true;
            self.ahead = match self.list.next_blob(service).await {
                Err(FilesError::Call(error)) if error.is_not_permitted() => None,
                first => first?,
            };
        }
        let mut passed = 0;
        while let Some(blob) = &self.ahead {
            match order(&blob.name, name) {
                std::cmp::Ordering::Less if passed == PASSED_MAX => {
                    return Ok(service.find(&self.list.at.with(name.to_owned())).await?);
                }
                std::cmp::Ordering::Less => {
                    passed += 1;
                    self.ahead = self.list.next_blob(service).await?;
                }
                std::cmp::Ordering::Equal => return Ok(Some(blob.clone())),
                std::cmp::Ordering::Greater => return Ok(None),
            }
        }
        Ok(None)
    }
}

/// The order in which the service lists names.
pub(super) fn order(a: &str, b: &str) -> std::cmp::Ordering {
    a.encode_utf16().cmp(b.encode_utf16())
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering;

    use super::*;

    #[test]
    fn names_are_in_the_order_of_utf16() {
        assert_eq!(order("a.txt", "a/b"), Ordering::Less);
        // Beyond the 16 bits a character begins with a surrogate, which is less than U+FF01.
        assert_eq!(order("\u{1F600}", "\u{FF01}"), Ordering::Less);
        assert_eq!("\u{1F600}".cmp("\u{FF01}"), Ordering::Greater);
    }
}
