//! NPU kernel simulation.
