//! Traces: what one process did on the emulated GPU, and what a whole job does on a cluster.
//!
//! Two formats live here, and nowhere else:
//!
//! * the **worker trace** ([`record`], [`writer`], [`reader`]): one append-only file per process, written by the
//!   preloaded library while the job runs. Each record is one API call, framework operator, allocator event or mark
//!   with its begin and end time. A killed process leaves a readable file.
//! * the **job trace** ([`job`]): what collation makes of all worker traces: templates of host events that enqueue
//!   device operations, each with a [`descriptor::Descriptor`] that a cost model can price. It is one file on disk,
//!   so that a trace once taken is simulated again without running the job.
//!
//! Both may come from an untrusted or damaged file: the readers check lengths and never panic.
//!
//! What is absent: no CUDA type, no price, no cluster, no I/O but reading and writing these files.
//!

pub mod descriptor;
pub mod job;
pub mod job_file;
pub mod peers;
pub mod queues;
pub mod reader;
pub mod record;
pub mod tail;
pub mod values;
pub mod writer;
