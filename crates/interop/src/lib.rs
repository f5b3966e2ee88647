//! Readers and writers of other tools' formats.
//!
//! [`chrome`] writes the Chrome trace event format, which Perfetto and `chrome://tracing` open; [`kineto`] reads what
//! PyTorch's profiler recorded on real devices; [`chakra`] writes and reads Chakra's execution traces.
//!
//! What it is not: it decides nothing about a job. Readers and writers take streams; only a reader whose files are
//! usually compressed also takes a path.

pub mod chakra;
pub mod chrome;
pub mod kineto;
