//! CUDA fat binaries, decoded: which kernels a library holds and how their parameters lie in memory.
//!
//! Three formats are read here. A *host library* (ELF) carries a `.nv_fatbin` section: a row of fat binaries, one
//! per compilation unit. A *fat binary* ([`container`]) is a row of entries, one per architecture, each a cubin
//! or PTX text, usually compressed. A *cubin* ([`cubin`]) is an ELF file with one `.text.<kernel>` section per
//! kernel and, beside it, an attribute section that gives parameter offsets and sizes, registers and limits.
//!
//! What is learned from all libraries of one framework build goes into a [`KernelDb`]: a file of about a
//! megabyte, sorted by a 128-bit hash of the mangled kernel name, that a preloaded library can read in one
//! gulp and search without unpacking.
//!
//! What it is not: it runs no kernel, disassembles nothing, reads no PTX, and knows no device.
//!
//! Invariants: arbitrary bytes never panic and never allocate more than a small multiple of their own
//! size (the compressed payloads: more than the size that the entry declares, which is capped); equal inputs give byte-equal databases.

mod arch;
pub mod container;
pub mod cubin;
pub mod db;
#[cfg(feature = "extract")]
pub mod extract;
#[cfg(test)]
mod fixture;

pub use arch::{Choice, SmArch};
pub use cubin::{KernelInfo, Parameter};
pub use db::KernelDb;
