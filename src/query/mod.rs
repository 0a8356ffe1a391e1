//! Queries of one blob: SQL over delimited text, JSON or Parquet. Pure: no I/O, no clock.
//!
//! A [`Request`] becomes a [`Plan`], which knows that the statement is right. An [`Execution`] of
//! it is a state machine: [`Execution::step`] says which bytes of the blob it needs, and
//! [`Execution::feed`] gives them to it. So the caller decides how to read, how much to buffer, and
//! when to give way to others (ADR 0046).
//!
//! Without the feature `query` every request is refused.

#[cfg(not(feature = "query"))]
mod absent;
#[cfg(feature = "query")]
mod answer;
#[cfg(feature = "query")]
mod eval;
#[cfg(feature = "query")]
mod execution;
#[cfg(feature = "query")]
mod input;
#[cfg(feature = "query")]
mod output;
#[cfg(feature = "query")]
mod plan;
#[cfg(feature = "query")]
mod reader;
mod request;
#[cfg(feature = "query")]
mod sql;
#[cfg(feature = "query")]
mod trouble;
#[cfg(feature = "query")]
mod value;

#[cfg(not(feature = "query"))]
pub use absent::Execution;
#[cfg(not(feature = "query"))]
pub use absent::Plan;
#[cfg(feature = "query")]
pub use execution::Execution;
#[cfg(feature = "query")]
pub use plan::Plan;
pub use request::ArrowField;
pub use request::ArrowKind;
pub use request::Delimited;
pub use request::Fault;
pub use request::Input;
pub use request::Output;
pub use request::Request;
pub use request::Sink;
pub use request::Step;

#[cfg(test)]
#[cfg(feature = "query")]
mod tests;
