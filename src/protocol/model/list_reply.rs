//! Pages of lists of containers and of blobs.

use bytes::Bytes;

use crate::protocol::model::facts::BlobFacts;
use crate::protocol::model::facts::ContainerFacts;
use crate::protocol::model::operation::Passed;
use crate::types::Revision;

/// A container in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContainerItem {
    /// The name.
    pub name: String,
    /// The facts.
    pub facts: ContainerFacts,
}

/// A page of containers; the request's own parameters are echoed by the renderer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContainerListing {
    /// In name order.
    pub items: Vec<ContainerItem>,
    /// Where to go on after each of them: a page that grows too long ends early.
    pub after: Vec<Bytes>,
    /// Where to go on after all; `None` at the end.
    pub next: Option<Bytes>,
}

/// An entry of a blob list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BlobItem {
    /// A blob, a snapshot of one, or a version.
    Blob {
        /// The name.
        name: String,
        /// Which of them: [`Revision::Version`] is one that is not current.
        revision: Revision,
        /// The facts.
        facts: Box<BlobFacts>,
    },
    /// A blob of which nothing is left but versions.
    VersionsOnly {
        /// The name.
        name: String,
        /// The facts of its newest version.
        facts: Box<BlobFacts>,
    },
    /// A blob that has only staged blocks.
    Uncommitted {
        /// The name.
        name: String,
    },
    /// A folded prefix, delimiter included.
    Prefix {
        /// The common part.
        name: String,
    },
}

/// A page of blobs; the request's own parameters are echoed by the renderer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlobListing {
    /// Whether the first item is a delete marker of a name that has a newer version before the
    /// page, in a list of the newest version first.
    pub has_newer: bool,
    /// Where the page ends, if that is not behind its last item and can be expressed as a name.
    pub passed: Option<Passed>,
    /// In the container's order.
    pub items: Vec<BlobItem>,
    /// Where to go on after each of them: a page that grows too long ends early.
    pub after: Vec<Bytes>,
    /// Where to go on after all; `None` at the end.
    pub next: Option<Bytes>,
}
