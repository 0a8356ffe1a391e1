//! The versions of each kind of record.

use crate::index::record::AccountFields;
use crate::index::record::AccountRecord;
use crate::index::record::BlobFields;
use crate::index::record::BlobRecord;
use crate::index::record::ContainerFields;
use crate::index::record::ContainerRecord;
use crate::index::record::tagged;
use crate::index::record::upgrade::Upgrade;
use crate::index::record::upgrade::upgraded;
use crate::index::record::version_1::Account1;
use crate::index::record::version_1::Blob1;
use crate::index::record::version_1::Container1;
use crate::index::record::version_2::Account2;
use crate::index::record::version_2::Blob2;
use crate::index::record::version_2::Container2;
use crate::index::record::version_3::Account3;
use crate::index::record::version_4::Account4;

impl Upgrade for AccountRecord {
    const VERSION: u8 = 5;

    fn earlier(version: u8, bytes: &[u8]) -> Option<postcard::Result<(Self, &[u8])>> {
        match version {
            1 => Some(upgraded::<Account1, Self>(bytes)),
            2 => Some(upgraded::<Account2, Self>(bytes)),
            3 => Some(upgraded::<Account3, Self>(bytes)),
            4 => Some(upgraded::<Account4, Self>(bytes)),
            _ => None,
        }
    }

    fn fault(bytes: &[u8]) -> String {
        tagged::fault::<Account4, AccountFields>(bytes)
    }
}

impl Upgrade for ContainerRecord {
    const VERSION: u8 = 3;

    fn earlier(version: u8, bytes: &[u8]) -> Option<postcard::Result<(Self, &[u8])>> {
        match version {
            1 => Some(upgraded::<Container1, Self>(bytes)),
            2 => Some(upgraded::<Container2, Self>(bytes)),
            _ => None,
        }
    }

    fn fault(bytes: &[u8]) -> String {
        tagged::fault::<Container2, ContainerFields>(bytes)
    }
}

impl Upgrade for BlobRecord {
    const VERSION: u8 = 3;

    fn earlier(version: u8, bytes: &[u8]) -> Option<postcard::Result<(Self, &[u8])>> {
        match version {
            1 => Some(upgraded::<Blob1, Self>(bytes)),
            2 => Some(upgraded::<Blob2, Self>(bytes)),
            _ => None,
        }
    }

    fn fault(bytes: &[u8]) -> String {
        tagged::fault::<Blob2, BlobFields>(bytes)
    }
}
