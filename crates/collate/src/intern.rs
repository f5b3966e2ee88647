//! Distinct operations and sites, numbered by first appearance.

use std::collections::HashMap;

use trompe_trace::job::{Operation, Phase, Site};

/// Distinct device operations.
///
/// Operations hold floats nowhere, but their descriptors have no hash: their postcard bytes are the key.
#[derive(Debug, Default)]
pub(crate) struct Operations {
    /// In order of first appearance.
    pub list: Vec<Operation>,
    rows: HashMap<Vec<u8>, u32>,
    key: Vec<u8>,
}

impl Operations {
    /// The row of `operation`.
    pub(crate) fn row(&mut self, operation: Operation) -> u32 {
        self.key.clear();
        let key = postcard::to_extend(&operation, std::mem::take(&mut self.key)).unwrap_or_default();
        if let Some(row) = self.rows.get(&key) {
            self.key = key;
            return *row;
        }
        let row = self.list.len() as u32;
        self.list.push(operation);
        self.rows.insert(key, row);
        row
    }
}

/// Distinct sites.
#[derive(Debug, Default)]
pub(crate) struct Sites {
    /// In order of first appearance.
    pub list: Vec<Site>,
    rows: HashMap<(String, String, Phase), u32>,
    /// The same by the addresses of the texts, which repeat: saves building strings for each event.
    seen: HashMap<(usize, usize, usize, Phase), u32>,
}

impl Sites {
    /// The row of a site, from texts that live as long as the trace; digits in `range` are dropped, so that `step 17` and `step 18` are one place.
    pub(crate) fn row(&mut self, operator: &str, range: &str, phase: Phase) -> u32 {
        let seen = (operator.as_ptr() as usize, range.as_ptr() as usize, range.len(), phase);
        if let Some(row) = self.seen.get(&seen) {
            return *row;
        }
        let row = self.named(operator, range, phase);
        self.seen.insert(seen, row);
        row
    }

    /// The row of a site, from any texts.
    pub(crate) fn named(&mut self, operator: &str, range: &str, phase: Phase) -> u32 {
        let key = (operator.to_owned(), without_numbers(range), phase);
        let next = self.list.len() as u32;
        *self.rows.entry(key).or_insert_with_key(|(operator, scope, phase)| {
            self.list.push(Site { operator: operator.clone(), scope: scope.clone(), phase: *phase });
            next
        })
    }
}

/// Replaces numbers that stand alone or after `#`, `_`, `=` or a blank by `#`: counters, not parts of names
/// (`AddmmBackward0` stays).
pub(crate) fn without_numbers(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut before = ' ';
    let mut skipping = false;
    for c in text.chars() {
        if c.is_ascii_digit() && (skipping || !before.is_ascii_alphanumeric()) {
            if !skipping && before != '#' {
                out.push('#');
            }
            skipping = true;
            continue;
        }
        skipping = false;
        before = c;
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_dropped_and_names_kept() {
        for (text, expect) in [
            ("step 17", "step #"),
            ("ProfilerStep#3", "ProfilerStep#"),
            ("iteration_12/forward", "iteration_#/forward"),
            ("AddmmBackward0", "AddmmBackward0"),
            ("Optimizer.step#AdamW.step", "Optimizer.step#AdamW.step"),
            ("7", "#"),
        ] {
            assert_eq!(without_numbers(text), expect, "{text}");
        }
    }
}
