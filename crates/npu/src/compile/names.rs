//! Name to index, in order of first appearance.

use std::collections::BTreeMap;

#[derive(Debug, Default)]
pub(super) struct Names {
    index: BTreeMap<String, u32>,
    pub(super) list: Vec<String>,
}

impl Names {
    /// The index of `name`, a new one if it has none.
    pub(super) fn intern(&mut self, name: &str) -> u32 {
        if let Some(&at) = self.index.get(name) {
            return at;
        }
        let at = self.list.len() as u32;
        self.index.insert(name.to_owned(), at);
        self.list.push(name.to_owned());
        at
    }

    pub(super) fn get(&self, name: &str) -> Option<u32> {
        self.index.get(name).copied()
    }

    /// A known name close to `name`, for messages.
    pub(super) fn hint(&self, name: &str) -> String {
        let near = self.list.iter().find(|known| known.eq_ignore_ascii_case(name) || known.contains(name));
        near.map_or_else(String::new, |known| format!("; did you mean `{known}`?"))
    }
}
