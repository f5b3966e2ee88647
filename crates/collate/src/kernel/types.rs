//! Element types in C++ type names.

use trompe_base::DType;

/// Spelling in C++ and type, longer spellings first where one contains another.
const NAMES: [(&str, DType); 26] = [
    ("c10::complex<double>", DType::C128),
    ("c10::complex<float>", DType::C64),
    ("c10::BFloat16", DType::Bf16),
    ("c10::Half", DType::F16),
    ("c10::Float8_e4m3fnuz", DType::F8E4M3),
    ("c10::Float8_e5m2fnuz", DType::F8E5M2),
    ("c10::Float8_e4m3fn", DType::F8E4M3),
    ("c10::Float8_e5m2", DType::F8E5M2),
    ("cutlass::bfloat16_t", DType::Bf16),
    ("cutlass::half_t", DType::F16),
    ("__nv_bfloat16", DType::Bf16),
    ("__half", DType::F16),
    ("bfloat16_t", DType::Bf16),
    ("half_t", DType::F16),
    ("double", DType::F64),
    ("float", DType::F32),
    ("unsigned long long", DType::I64),
    ("unsigned char", DType::U8),
    ("unsigned long", DType::I64),
    ("unsigned int", DType::I32),
    ("signed char", DType::I8),
    ("long long", DType::I64),
    ("short", DType::I16),
    ("long", DType::I64),
    ("int", DType::I32),
    ("bool", DType::Bool),
];

/// The element type that `text` is, pointer, reference and `const` marks aside.
pub(crate) fn exact(text: &str) -> Option<DType> {
    let bare = text.trim_end_matches([' ', '*', '&']).trim();
    let bare = bare.strip_suffix("const").unwrap_or(bare).trim_end_matches([' ', '*', '&']).trim();
    NAMES.iter().find(|(name, _)| *name == bare).map(|(_, dtype)| *dtype)
}

/// The first floating-point (or else any) element type mentioned in `text`.
pub(crate) fn first(text: &str) -> Option<DType> {
    let mut integer = None;
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        let fresh = at == 0 || !is_word(text.as_bytes()[at - 1]);
        let hit = NAMES.iter().find(|(name, _)| {
            fresh && rest.starts_with(name) && !rest.as_bytes().get(name.len()).is_some_and(|b| is_word(*b))
        });
        match hit {
            Some((_, dtype)) if dtype.is_float() => return Some(*dtype),
            Some((name, dtype)) => {
                integer.get_or_insert(*dtype);
                at += name.len();
            }
            None => at += rest.chars().next().map_or(1, char::len_utf8),
        }
    }
    integer
}

const fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Bytes per element of a type name; also understands `OpaqueType<16>` (an element moved without looking at it).
pub(crate) fn size(text: &str) -> Option<u64> {
    exact(text).map(DType::size).or_else(|| opaque(text))
}

/// The `N` of the first `OpaqueType<N>` in `text`.
pub(crate) fn opaque(text: &str) -> Option<u64> {
    let (_, rest) = text.split_once("OpaqueType<")?;
    super::name::integer(rest.split('>').next()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_read() {
        assert_eq!(exact("c10::BFloat16 const*"), Some(DType::Bf16));
        assert_eq!(exact("float"), Some(DType::F32));
        assert_eq!(exact("floaty"), None);
        assert_eq!(first("at::native::CUDAFunctor_add<c10::Half>"), Some(DType::F16));
        assert_eq!(first("print_kernel<float_thing, int, bool>"), Some(DType::I32));
        assert_eq!(first("f<int, float>"), Some(DType::F32));
        assert_eq!(first("nothing here"), None);
        assert_eq!(size("at::native::OpaqueType<16>"), Some(16));
        assert_eq!(size("(anonymous namespace)::OpaqueType<4u>"), Some(4));
        assert_eq!(size("long"), Some(8));
    }
}
