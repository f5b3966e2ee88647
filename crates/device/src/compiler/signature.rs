//! Parameter sizes of the kernels in a CUDA source text.
//!
//! A launch hands over addresses of parameter values without their number or sizes: those stand in compiled code alone,
//! and here none is. So they are read off the text of each `__global__` function. Pointers, the usual scalar types and
//! structs of these (`structure.rs`) are enough; the list ends before the first parameter of a type that the text does
//! not settle (a template parameter by value), and after the first struct of which only the beginning is known.

use std::collections::BTreeMap;

use super::structure::{Layout, layouts};

/// Longest text that is looked through, in bytes: far above what programs compile at run time.
const LONGEST: usize = 16 << 20;

/// Sizes in bytes of the leading parameters of each kernel, by its name without template arguments and scopes.
/// `headers` are texts that the source includes.
#[must_use]
pub fn signatures(source: &str, headers: &[String]) -> BTreeMap<String, Vec<u32>> {
    let mut found = BTreeMap::new();
    if source.len() + headers.iter().map(String::len).sum::<usize>() > LONGEST {
        return found;
    }
    let texts: Vec<String> =
        headers.iter().map(String::as_str).chain([source]).map(without_comments).collect();
    let mut structures = BTreeMap::new();
    texts.iter().for_each(|text| layouts(text, &mut structures));
    // The program's own kernels first.
    for text in texts.iter().rev() {
        for (at, word) in text.match_indices("__global__") {
            if let Some((name, list)) = declared(&text[at + word.len()..]) {
                found.entry(name.to_owned()).or_insert_with(|| sizes(list, &structures));
            }
        }
    }
    found
}

/// Sizes of the parameters of a list, as far as they are known.
fn sizes(list: &str, structures: &BTreeMap<String, Layout>) -> Vec<u32> {
    let mut sizes = Vec::new();
    for declaration in split(list, ',') {
        if let Some(size) = size_of(declaration) {
            sizes.push(size);
            continue;
        }
        let Some(layout) = structures.get(type_of(declaration)) else { break };
        // Not even its first member is known.
        if layout.size() == 0 {
            break;
        }
        sizes.push(layout.size());
        if !layout.complete {
            break;
        }
    }
    sizes
}

/// The name of the type in a declaration of something of a plain struct type: the last word but one, without scopes.
pub(super) fn type_of(declaration: &str) -> &str {
    let declaration = declaration.split('=').next().unwrap_or(declaration).trim();
    let name = declaration.trim_end_matches(is_name).trim_end();
    let begin = name.rfind(|c: char| !is_name(c)).map_or(0, |at| at + 1);
    &name[begin..]
}

/// Name and parameter list of the function behind `__global__`; parentheses of attributes are passed over.
fn declared(mut rest: &str) -> Option<(&str, &str)> {
    loop {
        let open = rest.find('(')?;
        if rest[..open].contains([';', '{', '}']) {
            return None;
        }
        let close = open + closing(&rest[open..])?;
        let before = rest[..open].trim_end();
        let begin = before.rfind(|c: char| !is_name(c)).map_or(0, |at| at + 1);
        let name = &before[begin..];
        if !name.is_empty() && !name.starts_with("__") {
            return Some((name, &rest[open + 1..close]));
        }
        rest = &rest[close + 1..];
    }
}

pub(super) const fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// Where the parenthesis that `text` begins with is closed.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 0usize;
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' if depth == 1 => return Some(at),
            ')' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// The parts of a list between separators that stand in no brackets.
pub(super) fn split(list: &str, separator: char) -> Vec<&str> {
    let (mut parts, mut depth, mut begin) = (Vec::new(), 0i32, 0);
    for (at, c) in list.char_indices() {
        match c {
            '<' | '(' | '[' | '{' => depth += 1,
            '>' | ')' | ']' | '}' => depth -= 1,
            _ if c == separator && depth == 0 => {
                parts.push(&list[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
    }
    if !list[begin..].trim().is_empty() {
        parts.push(&list[begin..]);
    }
    parts
}

/// Bytes of one declared parameter, if the text says.
pub(super) fn size_of(declaration: &str) -> Option<u32> {
    let declaration = declaration.split('=').next()?;
    // A template's own arguments may hold pointers and references; the parameter is what stands around them.
    if declaration.contains('<') {
        return None;
    }
    if declaration.contains(['*', '&', '[']) {
        return Some(8);
    }
    let words: Vec<&str> = declaration.split(|c| !is_name(c)).filter(|word| !word.is_empty()).collect();
    let count = |wanted: &str| words.iter().filter(|word| **word == wanted).count();
    let has = |names: &[&str]| names.iter().any(|name| count(name) > 0);
    if has(&["size_t", "ptrdiff_t", "int64_t", "uint64_t", "double", "long"]) {
        return Some(8);
    }
    if has(&["short", "int16_t", "uint16_t", "half", "__half", "__nv_bfloat16"]) {
        return Some(2);
    }
    if has(&["bool", "char", "int8_t", "uint8_t"]) {
        return Some(1);
    }
    has(&["int", "unsigned", "float", "int32_t", "uint32_t"]).then_some(4)
}

/// The text with comments as spaces.
fn without_comments(source: &str) -> String {
    let mut plain = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(at) = rest.find("/*").into_iter().chain(rest.find("//")).min() {
        plain.push_str(&rest[..at]);
        plain.push(' ');
        let block = rest[at..].starts_with("/*");
        let end = if block {
            rest[at + 2..].find("*/").map(|e| at + e + 4)
        } else {
            rest[at..].find('\n').map(|e| at + e)
        };
        rest = end.map_or("", |end| &rest[end..]);
    }
    plain.push_str(rest);
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(source: &str, name: &str, sizes: &[u32]) {
        assert_eq!(signatures(source, &[]).get(name).map(Vec::as_slice), Some(sizes), "{source}");
    }

    #[test]
    fn pointers_and_scalars_have_their_sizes() {
        check(
            "extern \"C\" __global__ void f(const float *__restrict__ x, int n, bool b, size_t m) {}",
            "f",
            &[8, 4, 1, 8],
        );
        check(
            "template <typename T> __global__ void __launch_bounds__(128 * (1 + 1)) g(T *const x, // first\n unsigned int n)",
            "g",
            &[8, 4],
        );
        check("__global__ __launch_bounds__(8) void h() {}", "h", &[]);
    }

    #[test]
    fn the_list_ends_where_the_text_does_not_say() {
        check("__global__ void f(int *x, Parameters p, int n);", "f", &[8]);
        check("__global__ void g(Array<float *, 4> x, int n) {}", "g", &[]);
    }

    #[test]
    fn structs_of_the_headers_are_parameters() {
        let header = "namespace n { struct Base { int rows = 0; int cols = 0; void *x = nullptr; bool b = false; };\n\
                      struct Own : public Base { float epsilon = 0.f; void* z; }; struct Half { int n; T rest; int m; }; }";
        let kernels = "template <class T> __global__ __launch_bounds__(T::N) void f(\n    Own p, int n) {}";
        let source = "#include \"kernels.h\"\n__global__ void g(const n::Half p, int n) {}";
        let found = signatures(source, &[header.to_owned(), kernels.to_owned()]);
        assert_eq!(found["f"], [32, 4]);
        assert_eq!(found["g"], [4]);
    }

    #[test]
    fn what_is_no_kernel_is_left_alone() {
        assert!(signatures("/* __global__ void f(int x) */ __global__ ; int g(int x);", &[]).is_empty());
        assert!(signatures("__global__ void unfinished(int x", &[]).is_empty());
    }
}
