//! The page.
use trompe_results::{Report, Timeline};
/// The page.
#[must_use]
pub fn html(_report: &Report, _timeline: &Timeline) -> String {
    String::new()
}
