//! What every library's status code has in common.

use std::num::NonZeroI32;

/// A library's error code. Success is the absence of one: handlers return `Result<(), Self>`.
pub trait Status: Copy + From<crate::pointer::NullPointer> {
    /// Answer of an unsupported function.
    const NOT_SUPPORTED: Self;
    /// Answer when the emulator itself failed (a bug in it).
    const INTERNAL: Self;
    /// Whether the library keeps the thread's last error for a later query (the runtime does).
    const KEPT: bool = false;

    /// The number that the caller sees.
    fn code(self) -> NonZeroI32;
}

/// Declares a library's error type with its named codes, texts and the three answers that every library has.
#[macro_export]
macro_rules! status {
    (
        $(#[$meta:meta])* $name:ident: not_supported = $not_supported:ident, internal = $internal:ident,
        null = $null:ident $(, kept = $kept:literal)?;
        $($(#[$code_meta:meta])* $constant:ident = $value:literal, $symbol:literal, $text:literal;)*
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub ::std::num::NonZeroI32);

        impl $name {
            $(
                #[doc = concat!("`", $symbol, "`: ", $text, ".")]
                pub const $constant: Self = Self(::std::num::NonZeroI32::new($value).expect("an error code is not 0"));
            )*

            /// The code's official name; `None` for an unknown code.
            #[must_use]
            pub const fn name_of(code: i32) -> Option<&'static ::std::ffi::CStr> {
                Some(match code {
                    $($value => $crate::status::terminated(concat!($symbol, "\0")),)*
                    _ => return None,
                })
            }

            /// One sentence on the code; `None` for an unknown code.
            #[must_use]
            pub const fn text_of(code: i32) -> Option<&'static ::std::ffi::CStr> {
                Some(match code {
                    $($value => $crate::status::terminated(concat!($text, "\0")),)*
                    _ => return None,
                })
            }
        }

        impl $crate::status::Status for $name {
            const NOT_SUPPORTED: Self = Self::$not_supported;
            const INTERNAL: Self = Self::$internal;
            $(const KEPT: bool = $kept;)?

            fn code(self) -> ::std::num::NonZeroI32 {
                self.0
            }
        }

        impl From<$crate::pointer::NullPointer> for $name {
            fn from(_: $crate::pointer::NullPointer) -> Self {
                Self::$null
            }
        }
    };
}

/// A literal with its terminating zero as a C string.
///
/// # Panics
/// At compile time, when the text holds a zero of its own.
#[must_use]
pub const fn terminated(text: &'static str) -> &'static std::ffi::CStr {
    match std::ffi::CStr::from_bytes_with_nul(text.as_bytes()) {
        Ok(text) => text,
        Err(_) => panic!("a status text must not hold a zero"),
    }
}
