//! One operation of a workload on one connection.

use super::call::Call;
use super::churn;
use super::churn::Holdings;
use super::client::Client;
use super::data::name;
use super::data::pick;
use super::shared::Shared;
use super::tally::Worth;
use super::workload::Kind;
use super::workload::Set;
use super::workload::Unit;

/// The state of a connection between operations.
#[derive(Debug)]
pub(super) struct Own {
    /// Where the last page ended.
    marker: Option<String>,
    /// The content of its own names (`churn`).
    holdings: Holdings,
}

impl Own {
    /// The state of the connection with this number before its first operation.
    pub(super) fn new(place: usize) -> Self {
        Self { marker: None, holdings: Holdings::new(place) }
    }
}

/// Executes operation `number`. Returns its worth.
///
/// # Errors
/// The server refused, or the answer has wrong bytes.
pub(super) async fn run(
    client: &mut Client,
    shared: &Shared,
    number: u64,
    own: &mut Own,
) -> Result<Worth, String> {
    match shared.workload.kind {
        Kind::Put(set) => {
            client.call(&put(shared, set, number)).await?;
            Ok(worth(shared, set.size))
        }
        Kind::PutSigned(set) => {
            let body = shared.pool.body(number, set.size);
            client.call(&Call::Put { name: name(set, number), body, signed: true }).await?;
            Ok(worth(shared, set.size))
        }
        Kind::Get(set) => {
            client.call(&get(shared, set, number)).await?;
            Ok(worth(shared, set.size))
        }
        Kind::Audit(set) => {
            let expect = shared.pool.body(number, set.size);
            client.call(&Call::Get { name: name(set, number), from: None, expect }).await?;
            Ok(Worth::ONE)
        }
        Kind::Range(set, length) => {
            client.call(&range(shared, set, length, number)).await?;
            Ok(worth(shared, length))
        }
        Kind::Head(set) => {
            client.call(&Call::Head { name: drawn(set, number) }).await?;
            Ok(Worth::ONE)
        }
        Kind::Delete(set) => {
            client.call(&Call::Delete { name: name(set, number) }).await?;
            Ok(Worth::ONE)
        }
        Kind::List(set, limit) | Kind::Pages(set, limit) => {
            let prefix = format!("{}/", set.name);
            let page =
                client.call(&Call::List { prefix, limit, marker: own.marker.take() }).await?;
            if page.keys == 0 {
                return Err("an empty page".to_owned());
            }
            own.marker = page.marker;
            Ok(Worth { units: page.keys as f64, bytes: 0 })
        }
        Kind::Mixed(read, written) => mixed(client, shared, (read, written), number).await,
        Kind::Blocks(set, count) => blocks(client, shared, number, (set, count)).await,
        Kind::Churn => {
            churn::step(client, shared, number, &mut own.holdings).await?;
            Ok(Worth::ONE)
        }
        Kind::Idle | Kind::Ready(_) => Err("not a workload of operations".to_owned()),
    }
}

/// The last operation of a connection.
///
/// # Errors
/// As of [`run`].
pub(super) async fn last(client: &mut Client, shared: &Shared, own: &Own) -> Result<(), String> {
    if matches!(shared.workload.kind, Kind::Churn) {
        churn::last(client, &own.holdings).await?;
    }
    Ok(())
}

async fn mixed(
    client: &mut Client,
    shared: &Shared,
    (read, written): (Set, Set),
    number: u64,
) -> Result<Worth, String> {
    let bytes = match pick(number, 100) {
        0..45 => {
            client.call(&get(shared, read, number)).await?;
            read.size
        }
        45..75 => {
            client.call(&Call::Head { name: drawn(read, number) }).await?;
            0
        }
        75..90 => write(client, shared, written, number).await?,
        _ => {
            let oldest = shared.deletable.borrow_mut().pop_front();
            match oldest {
                Some(oldest) => {
                    client.call(&Call::Delete { name: name(written, oldest) }).await?;
                    0
                }
                // All that were there are deleted: others must be written first.
                None => write(client, shared, written, number).await?,
            }
        }
    };
    Ok(Worth { bytes: bytes as u64, ..Worth::ONE })
}

/// Writes a new blob of `mixed`, which may be deleted then. Returns its bytes.
async fn write(
    client: &mut Client,
    shared: &Shared,
    written: Set,
    number: u64,
) -> Result<usize, String> {
    let fresh = written.count + number;
    client.call(&put(shared, written, fresh)).await?;
    shared.deletable.borrow_mut().push_back(fresh);
    Ok(written.size)
}

async fn blocks(
    client: &mut Client,
    shared: &Shared,
    number: u64,
    (set, count): (Set, u32),
) -> Result<Worth, String> {
    let name = name(set, number);
    let upload = client.call(&Call::StartUpload { name: name.clone() }).await?.tag;
    let mut tags = Vec::new();
    for block in 1..=count {
        let body = shared.pool.body(number * u64::from(count) + u64::from(block), set.size);
        let stage = Call::Stage { name: name.clone(), upload: upload.clone(), number: block, body };
        tags.push(client.call(&stage).await?.tag);
    }
    client.call(&Call::Commit { name, upload, tags }).await?;
    Ok(worth(shared, set.size * count as usize))
}

/// The worth of an operation with a body of `bytes` bytes.
fn worth(shared: &Shared, bytes: usize) -> Worth {
    let mib = bytes as f64 / 1_048_576.0;
    let units = if shared.workload.unit == Unit::MiB { mib } else { 1.0 };
    Worth { units, bytes: bytes as u64 }
}

/// The name of a blob of `set`, which the operation's number determines.
fn drawn(set: Set, number: u64) -> String {
    name(set, pick(number, set.count))
}

fn put(shared: &Shared, set: Set, number: u64) -> Call {
    Call::Put { name: name(set, number), body: shared.pool.body(number, set.size), signed: false }
}

fn get(shared: &Shared, set: Set, number: u64) -> Call {
    let drawn = pick(number, set.count);
    let expect = shared.pool.body(drawn, set.size);
    Call::Get { name: name(set, drawn), from: None, expect }
}

fn range(shared: &Shared, set: Set, length: usize, number: u64) -> Call {
    let drawn = pick(number, set.count);
    let pieces = (set.size / length) as u64;
    let from = pick(!number, pieces) as usize * length;
    let expect = shared.pool.body(drawn, set.size).slice(from..from + length);
    Call::Get { name: name(set, drawn), from: Some(from), expect }
}
