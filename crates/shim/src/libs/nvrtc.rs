//! NVRTC.

pub(crate) mod compiler;
