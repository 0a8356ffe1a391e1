//! Rows without meaning: the keys of a `ForgetGarbage` are an instruction.

use async_trait::async_trait;
use bytes::Bytes;

use crate::index::api::Error;
use crate::index::api::Read;
use crate::index::api::ReadReply;
use crate::index::api::Refused;
use crate::index::api::Write;
use crate::index::api::WriteReply;
use crate::index::rows::Family;
use crate::index::rows::Machine;
use crate::index::rows::RowBatch;
use crate::index::rows::Rows;
use crate::types::KeyRange;
use crate::types::Timestamp;

/// Puts a row of the main family.
pub(crate) fn put(key: &str, value: &str) -> Write {
    let parts = [key, "put", value];
    Write::ForgetGarbage {
        keys: parts.iter().map(|part| Bytes::copy_from_slice(part.as_bytes())).collect(),
    }
}

/// Puts a row, refused with [`Refused::ContainerExists`] when there is one.
pub(crate) fn put_if_absent(key: &str, value: &str) -> Write {
    let parts = [key, "create", value];
    Write::ForgetGarbage {
        keys: parts.iter().map(|part| Bytes::copy_from_slice(part.as_bytes())).collect(),
    }
}

/// Removes a row.
pub(crate) fn remove(key: &str) -> Write {
    let parts = [key, "remove"];
    Write::ForgetGarbage {
        keys: parts.iter().map(|part| Bytes::copy_from_slice(part.as_bytes())).collect(),
    }
}

#[derive(Debug)]
pub(crate) struct Plain;

#[async_trait]
impl Machine for Plain {
    async fn evaluate(
        &self,
        view: &dyn Rows,
        write: &Write,
        now: Timestamp,
        out: &mut RowBatch,
    ) -> Result<WriteReply, Error> {
        let Write::ForgetGarbage { keys } = write else {
            return Err(Error::Refused(Refused::AccountNotFound));
        };
        let key = keys[0].clone();
        if keys[1] == "create" && view.get(Family::Main, &key).await?.is_some() {
            return Err(Error::Refused(Refused::ContainerExists));
        }
        match keys.get(2) {
            Some(value) => out.put(Family::Main, key.clone(), value.clone()),
            None => out.delete(Family::Main, key.clone()),
        }
        // A second family, changed with the first: both or none.
        out.put(Family::Garbage, key, now.ticks().to_be_bytes().to_vec());
        Ok(WriteReply::Done)
    }

    async fn answer(
        &self,
        _: &dyn Rows,
        _: &KeyRange,
        _: &Read,
        _: Timestamp,
    ) -> Result<ReadReply, Error> {
        Err(Error::Refused(Refused::AccountNotFound))
    }
}
