//! Optimizers of nevergrad, asked through a Python process.
//!
//! nevergrad is one box of `dimensions` numbers between 0 and 1 here, as every strategy is; a seed makes it
//! reproducible. It is not needed for the strategies of the `search` crate.

use std::path::Path;

use serde::Deserialize;
use serde_json::json;
use trompe_search::strategy::{Ask, Strategy};

use super::SearchError;
use super::external::Helper;

/// What runs in the Python process.
const SCRIPT: &str = include_str!("nevergrad.py");

/// See the module.
pub(super) struct Nevergrad {
    helper: Helper,
    next: u64,
    failed: bool,
}

#[derive(Deserialize)]
struct Vector {
    vector: Vec<f64>,
}

impl Nevergrad {
    /// Starts an optimizer.
    pub(super) fn start(
        name: &str,
        dimensions: usize,
        seed: u64,
        width: usize,
        directory: &Path,
    ) -> Result<Self, SearchError> {
        let numbers = [dimensions as u64, seed % (1 << 32), width as u64].map(|number| number.to_string());
        let arguments: Vec<String> = [name.to_owned()].into_iter().chain(numbers).collect();
        let mut helper = Helper::start("nevergrad", SCRIPT, &arguments, directory)?;
        let _: serde_json::Value = helper.hear()?;
        Ok(Self { helper, next: 0, failed: false })
    }
}

impl Strategy for Nevergrad {
    fn ask(&mut self) -> Option<Ask> {
        if self.failed {
            return None;
        }
        self.next += 1;
        let asked = self.helper.say(&json!({ "ask": self.next }));
        match asked.and_then(|()| self.helper.hear::<Vector>()) {
            Ok(answer) => Some(Ask { id: self.next, vector: answer.vector }),
            Err(_) => {
                self.failed = true;
                None
            }
        }
    }

    fn tell(&mut self, id: u64, logarithm: f64) {
        if !self.failed && id != u64::MAX {
            self.failed = self.helper.say(&json!({ "tell": id, "loss": logarithm })).is_err();
        }
    }
}
