//! Flows on shared links.
