//! A service for tests.

use std::sync::Mutex;

use async_trait::async_trait;
use tokio::sync::Notify;
use uuid::Uuid;

use super::*;
use crate::env::Clock;
use crate::types::request;

pub(super) const SERVICE: u8 = 0x7F;

/// Answers with what the call says, message and payload. A read.
pub(super) struct Echo;

impl Method for Echo {
    const NUMBER: u16 = 0x7F01;
    type Call = String;
    type Answer = String;
}

/// Waits for so many milliseconds. A read.
pub(super) struct Wait;

impl Method for Wait {
    const NUMBER: u16 = 0x7F02;
    type Call = u64;
    type Answer = ();
}

/// Waits for so many milliseconds and writes a number into the book. A change.
pub(super) struct Write;

impl Method for Write {
    const NUMBER: u16 = 0x7F03;
    type Call = (u64, u64);
    type Answer = ();
}

/// Panics.
pub(super) struct Panic;

impl Method for Panic {
    const NUMBER: u16 = 0x7F04;
    type Call = ();
    type Answer = ();
}

/// Answers with a payload of so many bytes. A read.
pub(super) struct Fill;

impl Method for Fill {
    const NUMBER: u16 = 0x7F05;
    type Call = u32;
    type Answer = ();
}

/// A method that nobody has.
pub(super) struct Unknown;

impl Method for Unknown {
    const NUMBER: u16 = 0x7E01;
    type Call = ();
    type Answer = ();
}

/// What the service has done.
#[derive(Debug, Default)]
pub(super) struct Book {
    pub written: Mutex<Vec<u64>>,
    /// Calls of [`Wait`] that ended, and those that were dropped.
    pub waits: Mutex<(u32, u32)>,
    pub callers: Mutex<Vec<(NodeIdentity, Option<Uuid>)>>,
    pub wrote: Notify,
}

#[derive(Debug)]
pub(super) struct TestService {
    pub book: Arc<Book>,
    pub clock: Arc<dyn Clock>,
}

/// Counts how a wait ends.
struct Waiting<'a>(&'a Book, bool);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut waits = self.0.waits.lock().unwrap();
        if self.1 {
            waits.0 += 1;
        } else {
            waits.1 += 1;
        }
    }
}

#[async_trait]
impl Service for TestService {
    fn is_read(&self, method: u16) -> bool {
        [Echo::NUMBER, Wait::NUMBER, Fill::NUMBER].contains(&method)
    }

    async fn serve(&self, call: Incoming) -> Result<Reply, Refusal> {
        let sleep = |ms| self.clock.sleep(Duration::from_millis(ms));
        match call.method {
            Echo::NUMBER => {
                let text = call.decode::<Echo>()?;
                self.book.callers.lock().unwrap().push((call.from, request::current()));
                Ok(Reply::of::<Echo>(&text, vec![call.payload]))
            }
            Wait::NUMBER => {
                let ms = call.decode::<Wait>()?;
                let mut waiting = Waiting(&self.book, false);
                sleep(ms).await;
                waiting.1 = true;
                Ok(Reply::of::<Wait>(&(), Vec::new()))
            }
            Write::NUMBER => {
                let (ms, number) = call.decode::<Write>()?;
                sleep(ms).await;
                self.book.written.lock().unwrap().push(number);
                self.book.wrote.notify_one();
                Ok(Reply::of::<Write>(&(), Vec::new()))
            }
            Panic::NUMBER => panic!("the test wants it"),
            Fill::NUMBER => {
                let bytes = call.decode::<Fill>()?;
                Ok(Reply::of::<Fill>(&(), vec![piece(bytes as usize)]))
            }
            _ => Err(Refusal::UnknownMethod),
        }
    }
}
