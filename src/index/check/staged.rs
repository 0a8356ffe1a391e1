//! Checks the staged family: staged blocks, uploads and their parts.

use crate::index::api::Error;
use crate::index::check::BlobCheck;
use crate::index::check::ByteOwner;
use crate::index::objects::keys;
use crate::index::objects::keys::StagedKey;
use crate::index::objects::values;
use crate::index::objects::values::StagedBlock;
use crate::index::record::CompletedRecord;
use crate::index::record::UploadRecord;
use crate::index::rows::Family;
use crate::index::rows::Row;
use crate::types::PartNumber;
use crate::types::UploadId;

impl BlobCheck<'_> {
    pub(super) async fn staged(&mut self, row: &Row) -> Result<(), Error> {
        match keys::parse_staged(&row.key, self.key)? {
            StagedKey::Summary => {
                self.summary = Some(values::decode(Family::Staged, &row.key, &row.value)?);
            }
            StagedKey::Block(id) => {
                let block: StagedBlock =
                    values::decode_record(Family::Staged, &row.key, &row.value)?;
                self.report.staged_blocks += 1;
                self.staged = self.staged.saturating_add(1);
                if self.summary.is_some_and(|s| usize::from(s.id_len) != id.as_bytes().len()) {
                    self.problem("staged block ids differ in length");
                }
                if block.content.len() != block.len {
                    self.problem("a staged block is not as long as its bytes");
                }
                self.owns(ByteOwner::Staged(self.report.rows), &block.content);
                self.content(&block.content, block.crc64).await;
            }
            StagedKey::Upload(id) => {
                // The parts of an upload whose row is damaged are not strays.
                self.upload = Some(id);
                let upload: UploadRecord =
                    values::decode_record(Family::Staged, &row.key, &row.value)?;
                if upload.blob.len != 0 {
                    self.problem("an upload has content of its own");
                }
            }
            StagedKey::Part(id, number) => self.part(row, id, number).await?,
            StagedKey::Completed(_) => {
                let _completed: CompletedRecord =
                    values::decode_record(Family::Staged, &row.key, &row.value)?;
            }
        }
        Ok(())
    }

    async fn part(&mut self, row: &Row, upload: UploadId, number: u32) -> Result<(), Error> {
        let part: StagedBlock = values::decode_record(Family::Staged, &row.key, &row.value)?;
        self.report.staged_blocks += 1;
        if self.upload != Some(upload) {
            self.problem(format!("part {number} of upload {upload}, which is not there"));
        }
        if PartNumber::new(number).is_none() {
            self.problem(format!("part {number} of upload {upload} has no valid number"));
        }
        if part.content.len() != part.len {
            self.problem("a part is not as long as its bytes");
        }
        self.owns(ByteOwner::Staged(self.report.rows), &part.content);
        self.content(&part.content, part.crc64).await;
        Ok(())
    }
}
