//! Fabrics from what other tools print.
