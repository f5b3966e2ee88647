//! The key-value store through which the ranks of a job find each other, for jobs of which most ranks do not exist.
//!
//! What it is: a server that speaks the protocol of PyTorch's `TCPStore` (so PyTorch's own client, and every framework
//! that makes one, works unchanged) and that knows how many ranks the job has and which of them exist ([`Ranks`]). It
//! answers for the others: what it says, and when, stands in `absent` and `store`.
//!
//! What it is not: it knows nothing of launchers, processes or CUDA, and moves no tensors.
//!
//! Layers: `wire` reads requests, `store` answers them without any I/O or clock, `server` puts both on a port.

mod absent;
mod server;
mod store;
mod wire;

pub use absent::{MEMBERS_KEY, Ranks};
pub use server::Server;
