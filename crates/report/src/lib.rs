//! The report a person reads.
