//! The machine over rows in memory.

mod accessed;
mod appends;
mod authenticated;
mod blobs;
mod blocks;
mod bounded;
mod containers;
mod content_tags;
mod copies;
mod copy_jobs;
mod encrypted;
mod fields;
mod golden;
mod grants;
mod invariants;
mod lists;
mod model;
mod page_copies;
mod page_differences;
mod pages;
mod settings;
mod snapshots;
mod support;
mod sweeps;
mod tiers;
mod vectors;
