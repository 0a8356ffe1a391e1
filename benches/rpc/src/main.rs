//! What a call between nodes costs: packets of `src/rpc`, and gRPC by tonic, on loopback, in one
//! process, in turns. The figure is processor time of both ends together, for each call.
//!
//!     cargo run --release --manifest-path benches/rpc/Cargo.toml -- --results benches/results
//!
//! tonic gets a codec that hands bytes through, so that neither side encodes a message.

mod grpc;
mod packets;

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;
use std::time::Instant;

use bytes::Bytes;

/// What is called.
#[derive(Clone, Copy)]
pub struct Shape {
    name: &'static str,
    /// Payload bytes there and back.
    there: usize,
    back: usize,
    /// Calls under way at a time.
    concurrency: usize,
    calls: usize,
}

const SHAPES: [Shape; 5] = [
    Shape { name: "256 B there, 64 B back", there: 256, back: 64, concurrency: 16, calls: 400_000 },
    Shape { name: "the same, one at a time", there: 256, back: 64, concurrency: 1, calls: 100_000 },
    Shape { name: "4 KiB there", there: 4096, back: 64, concurrency: 16, calls: 300_000 },
    Shape { name: "1 MiB there", there: 1 << 20, back: 64, concurrency: 4, calls: 4096 },
    Shape { name: "1 MiB back", there: 64, back: 1 << 20, concurrency: 4, calls: 4096 },
];
const ROUNDS: usize = 5;

/// Something that makes one call.
pub trait Caller: Clone + Send + 'static {
    fn call(&self, payload: Bytes, back: usize) -> impl Future<Output = usize> + Send;
}

/// Processor time of this process, from /proc: ticks of 10 ms.
fn processor_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("Linux");
    let fields: Vec<&str> = stat.rsplit(')').next().expect("a name").split_whitespace().collect();
    let ticks: u64 =
        fields[11].parse::<u64>().expect("utime") + fields[12].parse::<u64>().expect("stime");
    Duration::from_millis(10 * ticks)
}

#[derive(Clone, Copy)]
struct Cost {
    cpu: Duration,
    wall: Duration,
}

async fn measure<C: Caller>(caller: &C, shape: Shape, share: usize) -> Cost {
    let each = shape.calls / share / shape.concurrency;
    let payload = Bytes::from(vec![7; shape.there]);
    let (cpu, wall) = (processor_time(), Instant::now());
    let tasks: Vec<_> = (0..shape.concurrency)
        .map(|_| {
            let (caller, payload) = (caller.clone(), payload.clone());
            tokio::spawn(async move {
                for _ in 0..each {
                    assert_eq!(caller.call(payload.clone(), shape.back).await, shape.back);
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.expect("calls succeed");
    }
    let calls = u32::try_from(each * shape.concurrency).expect("few");
    Cost { cpu: (processor_time() - cpu) / calls, wall: wall.elapsed() / calls }
}

fn median(mut of: Vec<f64>) -> f64 {
    of.sort_by(f64::total_cmp);
    of[of.len() / 2]
}

fn micros(of: Duration) -> f64 {
    of.as_secs_f64() * 1e6
}

#[tokio::main(worker_threads = 2)]
async fn main() {
    let mut results = None;
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        match (arg.as_str(), args.next()) {
            ("--results", Some(folder)) => results = Some(PathBuf::from(folder)),
            _ => panic!("the only option is --results FOLDER"),
        }
    }
    let (packets, grpc) = (packets::start().await, grpc::start().await);
    let mut table = String::from(
        "| call | packets, us | gRPC (tonic), us | gRPC / packets | packets, wall us | gRPC, wall us |\n\
         |---|---|---|---|---|---|\n",
    );
    for shape in SHAPES {
        let (mut ours, mut theirs, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
        let (mut our_wall, mut their_wall) = (Vec::new(), Vec::new());
        // Both are warm, then take turns.
        measure(&packets, shape, 20).await;
        measure(&grpc, shape, 20).await;
        for round in 0..ROUNDS {
            let (one, two) = if round % 2 == 0 {
                let one = measure(&packets, shape, ROUNDS).await;
                (one, measure(&grpc, shape, ROUNDS).await)
            } else {
                let two = measure(&grpc, shape, ROUNDS).await;
                (measure(&packets, shape, ROUNDS).await, two)
            };
            ours.push(micros(one.cpu));
            theirs.push(micros(two.cpu));
            ratios.push(micros(two.cpu) / micros(one.cpu));
            our_wall.push(micros(one.wall));
            their_wall.push(micros(two.wall));
        }
        let row = [ours, theirs, ratios, our_wall, their_wall].map(median);
        writeln!(
            table,
            "| {} | {:.1} | {:.1} | {:.2} | {:.1} | {:.1} |",
            shape.name, row[0], row[1], row[2], row[3], row[4]
        )
        .expect("memory");
        eprintln!("{}: {:.1} us and {:.1} us", shape.name, row[0], row[1]);
    }
    println!("{table}");
    if let Some(folder) = results {
        let page = format!(
            "# Calls between nodes: packets and gRPC\n\nProcessor time of both ends for each call, on loopback, in one \
             process; medians of {ROUNDS} turns. `1 MiB` times 1,024 is a GiB. Written by \
             `cargo run --release --manifest-path benches/rpc/Cargo.toml -- --results benches/results`.\n\n{table}"
        );
        std::fs::write(folder.join("rpc.md"), page).expect("the folder is there");
    }
}
