//! The caller's pointers, as handlers see them.
//!
//! A C caller promises that its pointers are null or valid for the access that the function's documentation names; the
//! real libraries rely on the same promise. The wrappers turn it into checked reads and writes: null is an error
//! value, and so is what can be no address of a program (the first pages, which no system maps, and the upper half of
//! the address space) or a count that no list has; everything else is done unaligned. They are transparent, so they
//! stand for the pointer itself in an exported signature.

#![expect(unsafe_code, reason = "the only place where a caller's pointer is followed")]

use std::ffi::CStr;
use std::marker::PhantomData;

/// A plain C value: no padding that matters, no invalid bit patterns, no destructor.
///
/// # Safety
/// Every bit pattern of the type's size must be a value of it.
pub unsafe trait Plain: Copy + 'static {}

macro_rules! plain {
    ($($ty:ty),* $(,)?) => {$(
        // SAFETY: an integer or float has no invalid bit pattern.
        unsafe impl Plain for $ty {}
    )*};
}
plain!(u8, u16, u32, u64, i8, i16, i32, i64, usize, isize, f32, f64);

// SAFETY: an array of values without invalid bit patterns has none.
unsafe impl<T: Plain, const N: usize> Plain for [T; N] {}

/// Lowest address that systems give to programs (`vm.mmap_min_addr`).
const LOWEST: usize = 1 << 16;
/// First address after those that programs have on x86-64 and AArch64 with 48-bit addresses.
const END: usize = 1 << 47;
/// More elements than this are in no list that a library reads.
const MOST: usize = 1 << 24;
/// More bytes than this are in no file that a library reads as a whole.
const MOST_BYTES: usize = 1 << 30;

/// Whether a program can have something at an address.
#[must_use]
pub const fn is_possible(address: usize) -> bool {
    address >= LOWEST && address < END
}

/// A required pointer was null (or no pointer at all).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NullPointer;

/// An out-parameter: `T *`.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct Out<T>(usize, PhantomData<*mut T>);

/// An in-parameter: `const T *`, one value or the first of several.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct In<T>(usize, PhantomData<*const T>);

/// A C string: `const char *`.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct Text(usize);

impl<T: Plain> Out<T> {
    /// The parameter at `address`.
    #[must_use]
    pub const fn new(address: usize) -> Self {
        Self(address, PhantomData)
    }

    /// The address itself.
    #[must_use]
    pub const fn address(self) -> usize {
        self.0
    }

    /// Whether the caller passed no place for the answer.
    #[must_use]
    pub const fn is_null(self) -> bool {
        self.0 == 0
    }

    /// Stores the answer.
    ///
    /// # Errors
    /// When the pointer is null.
    pub fn write(self, value: T) -> Result<(), NullPointer> {
        self.write_at(0, value)
    }

    /// Stores the answer unless the caller passed null.
    pub fn write_if_given(self, value: T) {
        let _ = self.write_at(0, value);
    }

    /// Stores element `index` of an array.
    ///
    /// # Errors
    /// When the pointer is null.
    pub fn write_at(self, index: usize, value: T) -> Result<(), NullPointer> {
        if !is_possible(self.0) {
            return Err(NullPointer);
        }
        // SAFETY: non-null, and the caller promises room for the elements that the function documents.
        unsafe { (self.0 as *mut T).add(index).write_unaligned(value) };
        Ok(())
    }

    /// Reads what stands there (in-out parameters).
    ///
    /// # Errors
    /// When the pointer is null.
    pub fn read(self) -> Result<T, NullPointer> {
        In::new(self.0).read()
    }
}

impl Out<u8> {
    /// Stores text with a terminating zero into a buffer of `capacity` bytes, cut to fit.
    ///
    /// # Errors
    /// When the pointer is null.
    pub fn write_text(self, text: &str, capacity: usize) -> Result<(), NullPointer> {
        if !is_possible(self.0) {
            return Err(NullPointer);
        }
        let Some(room) = capacity.checked_sub(1) else { return Ok(()) };
        let length = text.len().min(room);
        self.write_bytes(&text.as_bytes()[..length])?;
        self.write_at(length, 0)
    }

    /// Stores bytes.
    ///
    /// # Errors
    /// When the pointer is null.
    pub fn write_bytes(self, bytes: &[u8]) -> Result<(), NullPointer> {
        if !is_possible(self.0) {
            return Err(NullPointer);
        }
        // SAFETY: non-null, and the caller promises room for what the function documents; the source is ours.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.0 as *mut u8, bytes.len()) };
        Ok(())
    }
}

impl<T: Plain> In<T> {
    /// The parameter at `address`.
    #[must_use]
    pub const fn new(address: usize) -> Self {
        Self(address, PhantomData)
    }

    /// The address itself.
    #[must_use]
    pub const fn address(self) -> usize {
        self.0
    }

    /// Whether the caller passed nothing.
    #[must_use]
    pub const fn is_null(self) -> bool {
        self.0 == 0
    }

    /// Reads the value.
    ///
    /// # Errors
    /// When the pointer is null.
    pub fn read(self) -> Result<T, NullPointer> {
        self.read_at(0)
    }

    /// Reads element `index` of an array.
    ///
    /// # Errors
    /// When the pointer is null.
    pub fn read_at(self, index: usize) -> Result<T, NullPointer> {
        if !is_possible(self.0) {
            return Err(NullPointer);
        }
        // SAFETY: non-null, and the caller promises the elements that the function documents.
        Ok(unsafe { (self.0 as *const T).add(index).read_unaligned() })
    }

    /// Reads `count` elements.
    ///
    /// # Errors
    /// When the pointer is null and `count` is not zero.
    pub fn read_many(self, count: usize) -> Result<Vec<T>, NullPointer> {
        if count > MOST {
            return Err(NullPointer);
        }
        (0..count).map(|index| self.read_at(index)).collect()
    }
}

impl In<u8> {
    /// Appends `count` bytes to `buffer`.
    ///
    /// # Errors
    /// When the pointer is null and `count` is not zero.
    pub fn append_to(self, buffer: &mut Vec<u8>, count: usize) -> Result<(), NullPointer> {
        if count == 0 {
            return Ok(());
        }
        if !is_possible(self.0) || count > MOST_BYTES {
            return Err(NullPointer);
        }
        // SAFETY: non-null, and the caller promises `count` readable bytes.
        buffer.extend_from_slice(unsafe { std::slice::from_raw_parts(self.0 as *const u8, count) });
        Ok(())
    }
}

impl Text {
    /// The string at `address`.
    #[must_use]
    pub const fn new(address: usize) -> Self {
        Self(address)
    }

    /// The address itself.
    #[must_use]
    pub const fn address(self) -> usize {
        self.0
    }

    /// The text, with anything that is not UTF-8 replaced.
    ///
    /// # Errors
    /// When the pointer is null.
    pub fn read(self) -> Result<String, NullPointer> {
        if !is_possible(self.0) {
            return Err(NullPointer);
        }
        // SAFETY: non-null, and the caller promises a zero-terminated string.
        Ok(unsafe { CStr::from_ptr(self.0 as *const std::ffi::c_char) }.to_string_lossy().into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn null_is_an_error_and_values_arrive() {
        let mut place = 7i32;
        let out = Out::<i32>::new(&raw mut place as usize);
        assert_eq!(out.write(9), Ok(()));
        assert_eq!(out.read(), Ok(9));
        assert_eq!(place, 9);
        assert_eq!(Out::<i32>::new(0).write(1), Err(NullPointer));
        assert_eq!(In::<i32>::new(0).read(), Err(NullPointer));
        assert_eq!(In::<i32>::new(64).read(), Err(NullPointer));
        assert_eq!(In::<i32>::new(usize::MAX - 8).read(), Err(NullPointer));
        assert_eq!(In::<i32>::new(&raw const place as usize).read_many(usize::MAX), Err(NullPointer));
        assert_eq!(Text::new(0).read(), Err(NullPointer));
        assert_eq!(Text::new(c"abc".as_ptr() as usize).read().as_deref(), Ok("abc"));
    }

    #[test]
    fn text_is_cut_to_the_buffer() {
        let mut buffer = [1u8; 4];
        let out = Out::<u8>::new(buffer.as_mut_ptr() as usize);
        out.write_text("hello", 4).expect("not null");
        assert_eq!(&buffer, b"hel\0");
    }
}
