//! The tagged fields of a staged block, or of a block of a layout. Few blocks have any. Layout:
//! `api-spec/rows.md`.

use serde::Deserialize;
use serde::Serialize;

use crate::index::record::UnknownFields;
use crate::index::record::tagged;
use crate::index::record::tagged::Field;
use crate::index::record::tagged::Tag;
use crate::index::record::tagged::Tagged;
use crate::index::record::tagged::TailError;
use crate::index::record::tagged::Writer;
use crate::types::ContentChecksum;

const CHECKSUMS: Tag = Tag::optional(1);

/// The tagged fields of a block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PartFields {
    /// Checksums of its bytes, by algorithm. The MD5 of a part is its ETag.
    pub(crate) checksums: Vec<ContentChecksum>,
    /// Fields of later releases.
    pub(crate) unknown: UnknownFields,
}

/// The fields of a block, if it has any.
pub(crate) type BlockFields = Option<Box<PartFields>>;

impl PartFields {
    /// An estimate of the bytes that they take in a row.
    pub(super) fn weight(&self) -> usize {
        const TAG_AND_LENGTHS: usize = 6;
        let digests = self.checksums.iter().map(|checksum| checksum.digest.len() + TAG_AND_LENGTHS);
        digests.sum::<usize>() + self.unknown.weight()
    }
}

impl Tagged for PartFields {
    fn write(&self, out: &mut Writer) {
        out.list(CHECKSUMS, &self.checksums);
    }

    fn read(&mut self, field: &Field<'_>) -> Result<bool, TailError> {
        match field.tag {
            CHECKSUMS => self.checksums = field.value()?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn unknown(&self) -> &UnknownFields {
        &self.unknown
    }

    fn unknown_mut(&mut self) -> &mut UnknownFields {
        &mut self.unknown
    }
}

/// The fields of one block of a list, by its number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Numbered {
    number: u32,
    #[serde(with = "tagged::tail")]
    fields: BlockFields,
}

/// Collects the fields of those blocks that have any.
pub(super) fn numbered<'a>(blocks: impl Iterator<Item = &'a BlockFields>) -> Vec<Numbered> {
    // Empty fields are read as no fields.
    let given = |fields: &BlockFields| {
        fields.as_ref().is_some_and(|fields| **fields != PartFields::default())
    };
    let all = (0u32..).zip(blocks).filter(|(_, fields)| given(fields));
    all.map(|(number, fields)| Numbered { number, fields: fields.clone() }).collect()
}

/// Sets the fields of the blocks of a list; `None` if the numbers are not those of blocks, in
/// ascending order.
pub(super) fn restore<'a>(
    numbered: Vec<Numbered>,
    blocks: impl Iterator<Item = &'a mut BlockFields>,
) -> Option<()> {
    let mut blocks = (0u32..).zip(blocks);
    for Numbered { number, fields } in numbered {
        let (_, block) = blocks.find(|(at, _)| *at == number)?;
        *block = Some(fields?);
    }
    Some(())
}
