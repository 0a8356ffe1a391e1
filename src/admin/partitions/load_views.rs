//! The answer of `GET /admin/partitions/history`. `api-spec/admin.yaml` describes it.

use serde::Serialize;

use super::contents::Contents;
use super::load_history::LoadPart;
use super::load_history::LoadSample;
use super::load_history::Stay;
use super::load_history::WINDOW;
use super::names;
use super::names::Known;
use super::views::StripeView;
use super::views::hex;

/// The load of the last ten minutes, or what has come since an earlier answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct HistoryView {
    /// The instant, ISO 8601.
    now: String,
    /// The time of the server's first sample; `None` before it.
    began: Option<String>,
    /// How much is kept, seconds.
    window_s: u64,
    /// The time between samples now, seconds.
    every_s: f64,
    /// The answer has what came after this sample; `None` when it has everything.
    after: Option<u64>,
    /// Which partition was on which host, and when.
    stays: Vec<StayView>,
    /// Stays of earlier answers that have ended since.
    ended: Vec<EndView>,
    /// Oldest first.
    samples: Vec<LoadSampleView>,
    /// The containers; none if they are as in the answer that `names` numbers.
    containers: Option<ContainersView>,
    /// The number of the containers as they are now.
    names: u64,
}

/// The time for which a partition was on one host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct StayView {
    number: u32,
    /// The partition.
    id: u64,
    host: u64,
    /// The name of its node, in a cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<String>,
    stripe: Option<StripeView>,
    /// The lowest key, hexadecimal.
    low: String,
    /// The first key above it; none at the end of the key space.
    high: Option<String>,
    /// `low` as text.
    from: String,
    /// `high` as text.
    to: Option<String>,
    /// The first sample that found it.
    since: u64,
    /// The first sample that did not find it any more.
    until: Option<u64>,
}

/// The end of a stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
struct EndView {
    number: u32,
    until: u64,
}

/// A sample.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct LoadSampleView {
    number: u64,
    /// When, ISO 8601.
    at: String,
    /// Pairs of a stay's number and its requests a second since the previous sample. Stays that are
    /// not listed had none.
    rates: Vec<(u32, f32)>,
}

/// The containers of the store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct ContainersView {
    /// Pairs of the lowest key, hexadecimal, and `ACCOUNT/CONTAINER`, in key order.
    all: Vec<(String, String)>,
    /// Whether these are all.
    complete: bool,
}

impl HistoryView {
    pub(super) fn new(
        now: String,
        part: LoadPart,
        known: &dyn Known,
        contents: &Contents,
        names: Option<u64>,
    ) -> Self {
        let containers = (names != Some(contents.number)).then(|| ContainersView {
            all: contents.containers.iter().map(|(low, name)| (hex(low), name.clone())).collect(),
            complete: contents.complete,
        });
        Self {
            now,
            began: part.began.map(|began| began.to_iso()),
            window_s: WINDOW.as_secs(),
            every_s: part.every.as_secs_f64(),
            after: part.after,
            stays: part.stays.iter().map(|stay| StayView::new(stay, known)).collect(),
            ended: part
                .ended
                .into_iter()
                .map(|(number, until)| EndView { number, until })
                .collect(),
            samples: part.samples.iter().map(|sample| LoadSampleView::new(sample)).collect(),
            containers,
            names: contents.number,
        }
    }
}

impl StayView {
    fn new(stay: &Stay, known: &dyn Known) -> Self {
        let (low, high) = (stay.range.low().as_bytes(), stay.range.high());
        Self {
            number: stay.number,
            id: stay.id.get(),
            host: stay.host.number(),
            node: known.node(stay.host.node()),
            stripe: stay.stripe.map(StripeView::from),
            low: hex(low),
            high: high.map(|high| hex(high.as_bytes())),
            from: names::text(low, known),
            to: high.map(|high| names::text(high.as_bytes(), known)),
            since: stay.since,
            until: stay.until,
        }
    }
}

impl LoadSampleView {
    fn new(sample: &LoadSample) -> Self {
        Self { number: sample.number, at: sample.at.to_iso(), rates: sample.rates.clone() }
    }
}
