//! Parsing of C++ kernel names.
//!
//! A demangled kernel name is `void at::native::vectorized_elementwise_kernel<4, F, A>(int, F, A)`: return type, base
//! name with template arguments, parameter types. Nothing is resolved: arguments stay text, split at the commas of
//! the outermost level. Brackets inside of lambda names (`{lambda(float)#1}`) and of casts count as brackets.

/// A kernel's name in parts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Name {
    /// As it is in the binary.
    pub mangled: String,
    /// Demangled, or the same as `mangled` when it is no C++ name.
    pub full: String,
    /// Last component without namespaces and template arguments, for example `vectorized_elementwise_kernel`.
    pub base: String,
    /// Template arguments of the last component.
    pub arguments: Vec<String>,
}

impl Name {
    /// Parses a mangled name; a name that is not mangled is its own base.
    pub(crate) fn parse(mangled: &str) -> Self {
        let full = demangle(mangled);
        let signature = without_parameters(&full);
        let (path, arguments) = split_arguments(signature);
        let base = last_component(path).to_owned();
        let arguments = arguments.iter().map(|a| (*a).to_owned()).collect();
        Self { mangled: mangled.to_owned(), base, arguments, full }
    }

    /// Template argument `index`, or an empty text.
    pub(crate) fn argument(&self, index: usize) -> &str {
        self.arguments.get(index).map_or("", String::as_str)
    }

    /// Template argument `index` as an integer, for example `4`, `32u` or `(int)4`.
    pub(crate) fn integer(&self, index: usize) -> Option<u64> {
        integer(self.argument(index))
    }

    /// Template argument `index` as a boolean.
    pub(crate) fn flag(&self, index: usize) -> bool {
        self.argument(index) == "true"
    }
}

/// An integer literal as demanglers print it: `4`, `4u`, `4ul`, `(int)4`.
pub(crate) fn integer(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = text.rsplit_once(')').map_or(text, |(_, rest)| rest);
    digits.trim_end_matches(['u', 'l']).parse().ok()
}

fn demangle(mangled: &str) -> String {
    if !mangled.starts_with("_Z") {
        return mangled.to_owned();
    }
    let options = cpp_demangle::DemangleOptions::default();
    cpp_demangle::Symbol::new(mangled)
        .ok()
        .and_then(|symbol| symbol.demangle_with_options(&options).ok())
        .unwrap_or_else(|| mangled.to_owned())
}

/// Cuts the parameter list (the last bracket group at the outermost level) and what follows it.
fn without_parameters(full: &str) -> &str {
    let mut depth = 0i32;
    for (at, byte) in full.bytes().enumerate() {
        match byte {
            b'(' if depth == 0 && !starts_anonymous(&full[at..]) && !full[..at].ends_with("operator") => {
                return &full[..at];
            }
            b'(' | b'<' | b'{' | b'[' => depth += 1,
            b'>' if full[..at].ends_with('-') => {}
            b')' | b'>' | b'}' | b']' => depth -= 1,
            _ => {}
        }
    }
    full
}

fn starts_anonymous(text: &str) -> bool {
    text.starts_with("(anonymous")
}

/// Splits `path<arguments>` into path and arguments; without template arguments the list is empty.
pub(crate) fn split_arguments(text: &str) -> (&str, Vec<&str>) {
    let text = text.trim_end();
    if !text.ends_with('>') {
        return (text, Vec::new());
    }
    // The group that closes at the end: walk back to its opening bracket.
    let bytes = text.as_bytes();
    let mut depth = 0i32;
    for at in (0..bytes.len()).rev() {
        match bytes[at] {
            b'>' if at > 0 && bytes[at - 1] == b'-' => {}
            b'>' | b')' | b'}' | b']' => depth += 1,
            b'<' | b'(' | b'{' | b'[' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return (&text[..at], split_list(&text[at + 1..text.len() - 1]));
        }
    }
    (text, Vec::new())
}

/// Splits at the commas of the outermost level.
pub(crate) fn split_list(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut depth, mut start) = (0i32, 0);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'(' | b'<' | b'{' | b'[' => depth += 1,
            b'>' if text[..at].ends_with('-') => {}
            b')' | b'>' | b'}' | b']' => depth -= 1,
            b',' if depth == 0 => {
                parts.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    let last = text[start..].trim();
    if !last.is_empty() || !parts.is_empty() {
        parts.push(last);
    }
    parts
}

/// What follows the last `::` or blank at the outermost level.
pub(crate) fn last_component(path: &str) -> &str {
    let (mut depth, mut start) = (0i32, 0);
    for (at, byte) in path.bytes().enumerate() {
        match byte {
            b'(' | b'<' | b'{' | b'[' => depth += 1,
            b'>' if path[..at].ends_with('-') => {}
            b')' | b'>' | b'}' | b']' => depth -= 1,
            b':' | b' ' if depth == 0 => start = at + 1,
            _ => {}
        }
    }
    &path[start..]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(mangled: &str, base: &str, arguments: &[&str]) {
        let name = Name::parse(mangled);
        assert_eq!(name.base, base, "{}", name.full);
        let starts: Vec<_> = name.arguments.iter().map(|a| a.chars().take(24).collect::<String>()).collect();
        assert_eq!(starts, arguments, "{}", name.full);
    }

    #[test]
    fn names_come_apart() {
        check(
            "_ZN12_GLOBAL__N_120softmax_warp_forwardIN3c104HalfES2_fLi0ELb0ELb0ELi32EEEvPT_PKT0_iiiPKbib",
            "softmax_warp_forward",
            &["c10::Half", "c10::Half", "float", "0", "false", "false", "32"],
        );
        check("triton_poi_fused_add_0", "triton_poi_fused_add_0", &[]);
        check("fmha_cutlassF_bf16_aligned_64x64_rf_sm80", "fmha_cutlassF_bf16_aligned_64x64_rf_sm80", &[]);
    }

    #[test]
    fn lists_split_at_the_outermost_commas() {
        assert_eq!(
            split_list("a<b, c>, {lambda(int, int)#1}, d->e"),
            ["a<b, c>", "{lambda(int, int)#1}", "d->e"]
        );
        assert_eq!(split_list(""), [""; 0]);
        assert_eq!(integer("(int)4"), Some(4));
        assert_eq!(integer("32u"), Some(32));
        assert_eq!(integer("3ul"), Some(3));
        assert_eq!(integer("float"), None);
    }
}
