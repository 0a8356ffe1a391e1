//! A disk that could not be opened.

use std::sync::Arc;

use async_trait::async_trait;

use crate::env::Disk;
use crate::env::DiskError;
use crate::env::DiskFile;
use crate::env::DiskTimes;
use crate::env::Space;

/// Every call fails with the error of opening the disk. It takes the place of the failed disk in
/// the list of disks.
#[derive(Debug)]
pub struct UnusableDisk(pub DiskError);

impl UnusableDisk {
    fn fails<T>(&self) -> Result<T, DiskError> {
        Err(self.0.clone())
    }
}

#[async_trait]
impl Disk for UnusableDisk {
    async fn open(&self, _path: &str) -> Result<Arc<dyn DiskFile>, DiskError> {
        self.fails()
    }

    async fn create(&self, _path: &str) -> Result<Arc<dyn DiskFile>, DiskError> {
        self.fails()
    }

    async fn rename(&self, _from: &str, _to: &str) -> Result<(), DiskError> {
        self.fails()
    }

    async fn remove(&self, _path: &str) -> Result<(), DiskError> {
        self.fails()
    }

    async fn list(&self, _folder: &str) -> Result<Vec<String>, DiskError> {
        self.fails()
    }

    async fn sync_dir(&self, _folder: &str) -> Result<(), DiskError> {
        self.fails()
    }

    async fn space(&self) -> Result<Space, DiskError> {
        self.fails()
    }

    fn times(&self) -> Option<&DiskTimes> {
        None
    }
}
