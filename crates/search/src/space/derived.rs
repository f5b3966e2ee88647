//! Values that follow from knobs, put into an order in which each can be computed.

use std::collections::BTreeSet;

use crate::expression::Expression;

/// A named value that follows from others.
#[derive(Debug)]
pub struct Derived {
    /// Its name.
    pub name: String,
    /// How it follows.
    pub value: Expression,
}

/// Puts `derived` into an order in which each comes after those that it needs.
///
/// # Errors
/// The names of a circle.
pub(super) fn ordered(mut derived: Vec<Derived>) -> Result<Vec<Derived>, Vec<String>> {
    let mut waiting: BTreeSet<String> = derived.iter().map(|one| one.name.clone()).collect();
    let mut done = Vec::new();
    while !derived.is_empty() {
        let (ready, rest): (Vec<_>, Vec<_>) =
            derived.into_iter().partition(|one| one.value.names.is_disjoint(&waiting));
        if ready.is_empty() {
            return Err(circle(&rest));
        }
        for one in &ready {
            waiting.remove(&one.name);
        }
        done.extend(ready);
        derived = rest;
    }
    Ok(done)
}

/// The names along one circle.
fn circle(derived: &[Derived]) -> Vec<String> {
    let mut path: Vec<String> = Vec::new();
    let mut at = &derived[0];
    loop {
        if let Some(begin) = path.iter().position(|name| *name == at.name) {
            path.drain(..begin);
            path.push(at.name.clone());
            return path;
        }
        path.push(at.name.clone());
        let next = derived.iter().find(|other| at.value.names.contains(&other.name));
        at = next.expect("what cannot be ordered needs another that cannot");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn derived(list: &[(&str, &str)]) -> Vec<Derived> {
        let one = |(name, value): &(&str, &str)| Derived {
            name: (*name).to_owned(),
            value: Expression::read(value).unwrap(),
        };
        list.iter().map(one).collect()
    }

    #[test]
    fn each_comes_after_what_it_needs() {
        let list = ordered(derived(&[("a", "b + c"), ("b", "c * k"), ("c", "k")])).unwrap();
        assert_eq!(list.iter().map(|one| one.name.as_str()).collect::<Vec<_>>(), ["c", "b", "a"]);
    }

    #[test]
    fn a_circle_is_named_without_what_leads_to_it() {
        let names = ordered(derived(&[("a", "b"), ("b", "c"), ("c", "b + k")])).unwrap_err();
        assert_eq!(names, ["b", "c", "b"]);
        assert_eq!(ordered(derived(&[("a", "a + 1")])).unwrap_err(), ["a", "a"]);
    }
}
