//! Readers and writers of other tools' formats.
//!
//! What it is: [`chrome`] writes the Chrome trace event format, which Perfetto and `chrome://tracing` open.
//!
//! What it is not: it decides nothing about a job. It opens no file either: readers and writers take streams.

pub mod chrome;
