//! Why a job trace cannot be replayed.

use thiserror::Error;
use trompe_base::{Rank, StreamId};
use trompe_engine::RunError;

/// A job trace that contradicts itself, or a job that cannot end.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SimulationError {
    /// There is nothing to replay.
    #[error("the job trace has no ranks; give the folder of a run that recorded device calls")]
    NoRanks,
    /// An index of the trace points outside of its table.
    #[error("template {template}, event {event}: {what} {index} does not exist ({count} are known)")]
    Dangling {
        /// Row of the templates.
        template: usize,
        /// Row of the template's events.
        event: usize,
        /// What the index names.
        what: &'static str,
        /// The index.
        index: u64,
        /// How many there are.
        count: usize,
    },
    /// A stream that the template does not list.
    #[error("template {template}, event {event}: stream {stream} is not in the template's list of streams")]
    UnknownStream {
        /// Row of the templates.
        template: usize,
        /// Row of the template's events.
        event: usize,
        /// The stream.
        stream: StreamId,
    },
    /// A rank follows a template that does not exist.
    #[error("rank {rank} follows template {template}, but there are only {count}")]
    UnknownTemplate {
        /// The rank.
        rank: Rank,
        /// The template it names.
        template: usize,
        /// How many there are.
        count: usize,
    },
    /// A template or an operation has no price.
    #[error(
        "{given} prices were given for the {needed} operations of template {template}; price every operation"
    )]
    Prices {
        /// Row of the templates.
        template: usize,
        /// Prices given.
        given: usize,
        /// Operations to price.
        needed: usize,
    },
    /// A rank calls a collective on a communicator that it does not belong to.
    #[error("rank {rank} calls a collective on communicator {communicator}, of which it is no member")]
    NotAMember {
        /// The rank.
        rank: Rank,
        /// Row of the communicators.
        communicator: usize,
    },
    /// Members of a communicator call different operations at the same place.
    #[error(
        "call {sequence} on communicator {communicator}: rank {first} calls {first_call}, rank {second} calls \
         {second_call}; the real job would hang or compute nonsense here"
    )]
    Mismatch {
        /// Row of the communicators.
        communicator: usize,
        /// The call's number.
        sequence: u64,
        /// The rank that came first.
        first: Rank,
        /// What it calls.
        first_call: String,
        /// The rank that disagrees.
        second: Rank,
        /// What it calls.
        second_call: String,
    },
    /// More time than can be counted.
    #[error(
        "the job would take more than 106 days of simulated time; a host time, a price or a bandwidth is off"
    )]
    TooLong,
    /// Nothing can happen any more, but the job is not over.
    #[error("the job hangs after {seconds:.6} s of simulated time: {}", .waiting.join("; "))]
    Hang {
        /// The simulated time in seconds, as the message prints it.
        seconds: Seconds,
        /// Who waits for what.
        waiting: Vec<String>,
    },
    /// The engine gave up.
    #[error(transparent)]
    Engine(#[from] RunError),
}

/// Seconds for a message; compared by their bits.
#[derive(Clone, Copy, Debug)]
pub struct Seconds(pub f64);

impl PartialEq for Seconds {
    fn eq(&self, other: &Self) -> bool {
        self.0.to_bits() == other.0.to_bits()
    }
}

impl Eq for Seconds {}

impl std::fmt::Display for Seconds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}
