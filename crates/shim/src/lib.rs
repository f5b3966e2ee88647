//! The preloaded library.
