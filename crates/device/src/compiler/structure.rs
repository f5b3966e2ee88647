//! Layouts of plain structs in a CUDA source text, for kernels that take their parameters in one.
//!
//! Members are pointers, the usual scalar types and structs known before; each stands at the next multiple of its
//! alignment, behind those of the base, as C++ lays out such a struct (the Itanium ABI, which keeps a base's padding when
//! the base is plain old data in the sense of C++98, and uses it otherwise: members with initializers make it otherwise).
//! A member that the text does not settle ends what is known.

use std::collections::BTreeMap;

use super::signature::{is_name, size_of, split, type_of};

/// Largest that a kernel takes.
const LARGEST: u32 = 4096;

/// What is known of a struct.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Layout {
    /// Bytes up to the end of the last known member.
    filled: u32,
    alignment: u32,
    /// Whether every member is known.
    pub(super) complete: bool,
    /// A derived struct may begin in the padding at the end.
    reuses_padding: bool,
}

impl Layout {
    /// Bytes of the whole, or of the members that are known.
    pub(super) fn size(&self) -> u32 {
        if self.complete { self.filled.next_multiple_of(self.alignment.max(1)) } else { self.filled }
    }

    fn add(&mut self, size: u32, alignment: u32) {
        self.filled = self.filled.next_multiple_of(alignment) + size;
        self.alignment = self.alignment.max(alignment);
    }
}

/// Adds the layouts of the structs that a text without comments defines; the first definition of a name counts.
pub(super) fn layouts(plain: &str, found: &mut BTreeMap<String, Layout>) {
    for (at, word) in plain.match_indices("struct") {
        let apart = |c: Option<char>| c.is_none_or(|c| !is_name(c));
        let rest = &plain[at + word.len()..];
        if !apart(plain[..at].chars().next_back()) || !apart(rest.chars().next()) {
            continue;
        }
        if let Some((name, base, body)) = defined(rest).filter(|(name, _, _)| !found.contains_key(*name)) {
            let layout = laid_out(base, body, found);
            found.insert(name.to_owned(), layout);
        }
    }
}

/// Name, base and body of the definition behind `struct`.
fn defined(rest: &str) -> Option<(&str, Option<&str>, &str)> {
    let open = rest.find(['{', ';', '(', ')', '=', '<', '>'])?;
    if !rest[open..].starts_with('{') {
        return None;
    }
    let (name, base) = match rest[..open].split_once(':') {
        Some((name, base)) => (name, Some(base)),
        None => (&rest[..open], None),
    };
    let name = name.split_whitespace().next_back().filter(|name| name.chars().all(is_name))?;
    let base = base.map(|base| base.trim().rsplit(|c| !is_name(c)).next().unwrap_or_default());
    let mut depth = 0usize;
    for (at, c) in rest[open..].char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 1 => return Some((name, base, &rest[open + 1..open + at])),
            '}' => depth -= 1,
            _ => {}
        }
    }
    None
}

fn laid_out(base: Option<&str>, body: &str, known: &BTreeMap<String, Layout>) -> Layout {
    let mut layout = Layout { complete: true, ..Layout::default() };
    if let Some(base) = base {
        layout = known.get(base).copied().unwrap_or_default();
        if !layout.reuses_padding {
            layout.filled = layout.size();
        }
    }
    for member in split(body, ';') {
        let member = member.trim();
        if !layout.complete || member.is_empty() {
            break;
        }
        layout.reuses_padding |= member.contains('=') || base.is_some();
        let members = split(member.split('=').next().unwrap_or(member), ',').len() as u32;
        let scalar = if member.contains('[') { None } else { size_of(member).map(|size| (size, size)) };
        let nested = || known.get(type_of(member)).filter(|l| l.complete).map(|l| (l.size(), l.alignment));
        match scalar.or_else(nested).filter(|(size, alignment)| *size > 0 && *alignment > 0) {
            Some((size, alignment)) if layout.filled + members * size <= LARGEST => {
                (0..members).for_each(|_| layout.add(size, alignment));
            }
            _ => layout.complete = false,
        }
    }
    layout
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(source: &str, name: &str, expect: (u32, bool)) {
        let mut found = BTreeMap::new();
        layouts(source, &mut found);
        assert_eq!(found.get(name).map(|layout| (layout.size(), layout.complete)), Some(expect), "{source}");
    }

    #[test]
    fn members_stand_at_multiples_of_their_size() {
        check("struct S { bool b; int n; void *p; };", "S", (16, true));
        check("struct S { int a, b, c; };", "S", (12, true));
        check("struct __align__ S { double d = 0; bool b = true; };", "S", (16, true));
        check("struct S { };", "S", (0, true));
    }

    #[test]
    fn bases_come_first() {
        let base = "struct B { void *p; bool b; }; struct D : public B { bool c; };";
        check(base, "D", (24, true));
        // With initializers the padding of the base is used.
        let base =
            "struct B { void *p = nullptr; bool b = false; }; struct D : public n::B { bool c = false; };";
        check(base, "D", (16, true));
        check("struct D : Unknown { int n; };", "D", (0, false));
    }

    #[test]
    fn what_the_text_does_not_settle_ends_the_layout() {
        check("struct S { int n; T x; int m; };", "S", (4, false));
        check("struct S { int n; float x[4]; };", "S", (4, false));
        check("struct A { int n; double d; }; struct S { A a; int n; };", "S", (24, true));
        let mut found = BTreeMap::new();
        layouts("struct Forward; struct Unfinished { int n;", &mut found);
        assert!(found.is_empty(), "{found:?}");
    }
}
