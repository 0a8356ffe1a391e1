//! Operations whose body is a document: how long it may be, and what reads it.

use crate::protocol::azure::acl;
use crate::protocol::azure::batch;
use crate::protocol::azure::delegation;
use crate::protocol::azure::query;
use crate::protocol::azure::service;
use crate::protocol::azure::tags;
use crate::protocol::azure::xml;
use crate::protocol::model::Operation;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::model::operation::AccountOperation;
use crate::protocol::model::operation::BlobOperation;
use crate::protocol::model::operation::ContainerOperation;
use crate::protocol::model::operation::ContentOperation;
use crate::protocol::model::operation::Decode;
use crate::protocol::model::operation::Document;

/// Bytes that the document of an operation may have, and what reads it; `None` for an operation
/// without one. An operation must not be carried out before its document was read: without it, the
/// operation would erase the values that the document replaces.
pub(super) fn document_of(operation: &Operation) -> Option<(u64, Decode)> {
    if let Operation::Content(ContentOperation::PutBlockList { .. }) = operation {
        Some((xml::BLOCK_LIST_BYTES_MAX, block_list))
    } else if let Operation::Blob(BlobOperation::SetBlobTags { .. }) = operation {
        Some((tags::TAGS_BYTES_MAX, blob_tags))
    } else if let Operation::Blob(BlobOperation::QueryBlob { .. }) = operation {
        Some((query::QUERY_BYTES_MAX, query_of_blob))
    } else if let Operation::Container(ContainerOperation::SetContainerAcl { .. }) = operation {
        Some((acl::POLICIES_BYTES_MAX, policies))
    } else if let Operation::Account(AccountOperation::SetServiceProperties { .. }) = operation {
        Some((service::SERVICE_PROPERTIES_BYTES_MAX, service_properties))
    } else if let Operation::Account(AccountOperation::GetUserDelegationKey { .. }) = operation {
        Some((delegation::KEY_INFO_BYTES_MAX, key_info))
    } else if let Operation::Account(AccountOperation::Batch(_)) = operation {
        Some((batch::BATCH_BYTES_MAX, parts))
    } else {
        None
    }
}

fn block_list(operation: &mut Operation, document: &Document<'_>) -> Result<(), Refusal> {
    if let Operation::Content(ContentOperation::PutBlockList { list, checksum, .. }) = operation {
        *list = xml::block_list(document.bytes)?;
        *checksum = document.checksum;
        Ok(())
    } else {
        Err(Reason::InternalError.into())
    }
}

fn blob_tags(operation: &mut Operation, document: &Document<'_>) -> Result<(), Refusal> {
    if let Operation::Blob(BlobOperation::SetBlobTags { tags, .. }) = operation {
        *tags = tags::read_tags(document.bytes)?;
        Ok(())
    } else {
        Err(Reason::InternalError.into())
    }
}

fn query_of_blob(operation: &mut Operation, document: &Document<'_>) -> Result<(), Refusal> {
    if let Operation::Blob(BlobOperation::QueryBlob { query, .. }) = operation {
        **query = query::read_query(document.bytes)?;
        Ok(())
    } else {
        Err(Reason::InternalError.into())
    }
}

fn policies(operation: &mut Operation, document: &Document<'_>) -> Result<(), Refusal> {
    if let Operation::Container(ContainerOperation::SetContainerAcl { policies, .. }) = operation {
        *policies = acl::read_policies(document.bytes)?;
        Ok(())
    } else {
        Err(Reason::InternalError.into())
    }
}

fn service_properties(operation: &mut Operation, document: &Document<'_>) -> Result<(), Refusal> {
    if let Operation::Account(AccountOperation::SetServiceProperties { change }) = operation {
        **change = service::read_properties(document.bytes)?;
        Ok(())
    } else {
        Err(Reason::InternalError.into())
    }
}

fn key_info(operation: &mut Operation, document: &Document<'_>) -> Result<(), Refusal> {
    if let Operation::Account(AccountOperation::GetUserDelegationKey { wanted, .. }) = operation {
        *wanted = delegation::read_key_info(document.bytes)?;
        Ok(())
    } else {
        Err(Reason::InternalError.into())
    }
}

fn parts(operation: &mut Operation, document: &Document<'_>) -> Result<(), Refusal> {
    if let Operation::Account(AccountOperation::Batch(batch)) = operation {
        if batch.fault.is_none() {
            match batch::read_batch(document.bytes, &batch.boundary) {
                Ok(parts) => batch.parts = parts,
                Err(fault) => batch.fault = Some(Box::new(fault)),
            }
        }
        Ok(())
    } else {
        Err(Reason::InternalError.into())
    }
}
