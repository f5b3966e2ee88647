//! `.npy` files: the content of tensors, in and out.
//!
//! Types that the format lacks (bfloat16 and the 8-bit floats) are kept as unsigned integers of their width.

use npyz::{DType, Order, TypeChar, WriterBuilder};

use crate::element::ElementType;
use crate::error::LoadError;
use crate::run::Input;

/// Reads the bytes of a `.npy` file for the tensor called `tensor`.
///
/// # Errors
/// When they are no `.npy` file, are cut short, are in column order or have an element type without a counterpart.
pub fn read(tensor: &str, bytes: &[u8]) -> Result<Input, LoadError> {
    let refuse = |problem: String| LoadError::Array { tensor: tensor.to_owned(), problem };
    let file = npyz::NpyFile::new(bytes).map_err(|error| refuse(format!("is no .npy file: {error}")))?;
    let dtype = element(&file.dtype()).ok_or_else(|| {
        refuse(format!(
            "has elements of type {}; save f2, f4, b1 or integers, little endian",
            file.dtype().descr()
        ))
    })?;
    if file.order() == Order::Fortran && file.shape().len() > 1 {
        return Err(refuse("is in column order; save `numpy.ascontiguousarray` of it".to_owned()));
    }
    let shape = file.shape().to_vec();
    let wanted = shape.iter().product::<u64>() as usize * dtype.size();
    let start = bytes.len().checked_sub(wanted);
    let header = header_length(bytes).ok_or_else(|| refuse("is no .npy file".to_owned()))?;
    match start {
        Some(start) if start >= header => {
            Ok(Input { dtype, shape, bytes: bytes[header..header + wanted].to_vec() })
        }
        _ => Err(refuse(format!("is cut short: {wanted} bytes of data are missing some; save it again"))),
    }
}

/// Bytes before the data: magic, version, the header's length (two bytes in version 1, four later), the header.
fn header_length(bytes: &[u8]) -> Option<usize> {
    let version = *bytes.get(6)?;
    let (length, first) = if version == 1 {
        (u64::from(u16::from_le_bytes(bytes.get(8..10)?.try_into().ok()?)), 10)
    } else {
        (u64::from(u32::from_le_bytes(bytes.get(8..12)?.try_into().ok()?)), 12)
    };
    usize::try_from(length).ok().map(|length| first + length)
}

fn element(dtype: &DType) -> Option<ElementType> {
    let DType::Plain(kind) = dtype else { return None };
    if kind.endianness() == npyz::Endianness::Big {
        return None;
    }
    match (kind.type_char(), kind.size_field()) {
        (TypeChar::Float, 2) => Some(ElementType::F16),
        (TypeChar::Float, 4) => Some(ElementType::F32),
        (TypeChar::Bool, 1) => Some(ElementType::Bool),
        (TypeChar::Int, size) => match size {
            1 => Some(ElementType::I8),
            2 => Some(ElementType::I16),
            4 => Some(ElementType::I32),
            8 => Some(ElementType::I64),
            _ => None,
        },
        (TypeChar::Uint, size) => match size {
            1 => Some(ElementType::U8),
            2 => Some(ElementType::U16),
            4 => Some(ElementType::U32),
            8 => Some(ElementType::U64),
            _ => None,
        },
        _ => None,
    }
}

/// The bytes of a `.npy` file with this content.
///
/// # Panics
/// Never: writing to memory does not fail.
#[must_use]
pub fn write(content: &Input) -> Vec<u8> {
    fn save<T: npyz::Serialize + npyz::AutoSerialize>(content: &Input, of: impl Fn(&[u8]) -> T) -> Vec<u8> {
        let mut out = Vec::new();
        let mut writer = npyz::WriteOptions::<T>::new()
            .default_dtype()
            .shape(&content.shape)
            .writer(&mut out)
            .begin_nd()
            .expect("writing to memory does not fail");
        for raw in content.bytes.chunks_exact(content.dtype.size()) {
            writer.push(&of(raw)).expect("writing to memory does not fail");
        }
        writer.finish().expect("as many elements as the shape has");
        out
    }
    macro_rules! integer {
        ($kind:ty) => {
            save(content, |raw| <$kind>::from_le_bytes(raw.try_into().expect("the element's size")))
        };
    }
    match content.dtype {
        ElementType::F16 => save(content, |raw| half::f16::from_le_bytes([raw[0], raw[1]])),
        ElementType::F32 => integer!(f32),
        ElementType::Bool => save(content, |raw| raw[0] != 0),
        ElementType::I8 => integer!(i8),
        ElementType::U8 | ElementType::F8e4m3 | ElementType::F8e5m2 => integer!(u8),
        ElementType::I16 => integer!(i16),
        ElementType::U16 | ElementType::Bf16 => integer!(u16),
        ElementType::I32 => integer!(i32),
        ElementType::U32 => integer!(u32),
        ElementType::I64 => integer!(i64),
        ElementType::U64 => integer!(u64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        for dtype in ElementType::ALL {
            let bytes: Vec<u8> = (0..6 * dtype.size())
                .map(|at| if dtype == ElementType::Bool { at as u8 % 2 } else { at as u8 })
                .collect();
            let content = Input { dtype, shape: vec![2, 3], bytes: bytes.clone() };
            let file = write(&content);
            let back = read("x", &file).unwrap();
            assert_eq!((back.shape, back.bytes), (vec![2, 3], bytes));
            assert_eq!(back.dtype.size(), dtype.size());
            assert!(read("x", &file[..file.len() - 1]).unwrap_err().to_string().contains("cut short"));
        }
        assert!(read("x", b"PNG").unwrap_err().to_string().contains("no .npy file"));
    }
}
