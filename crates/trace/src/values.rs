//! The packed list of operator arguments in [`crate::record::Record::OperatorBegin`] and `OperatorEnd`.
//!
//! Each value is a tag byte and a little-endian body:
//!
//! | tag | body |
//! |---|---|
//! | `T` tensor | dtype `u8` (c10 number), ndim `u8`, flags `u8` (1 contiguous, 2 requires grad, 4 on a GPU, 8 channels-last), address `u64`, sizes `i64 × ndim`, strides `i64 × ndim` |
//! | `U` undefined tensor, `n` none, `?` something else | – |
//! | `L` list | count `u32`, then that many values |
//! | `i` integer | `i64` |
//! | `d` float | `f64` |
//! | `b` boolean | `u8` |
//! | `s` string | length `u16`, bytes |

use trompe_base::DType;

/// One argument or result.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A tensor.
    Tensor(Tensor),
    /// An undefined tensor (an optional one that was not given).
    Undefined,
    /// A list.
    List(Vec<Value>),
    /// An integer.
    Int(i64),
    /// A float.
    Float(f64),
    /// A boolean.
    Bool(bool),
    /// A string.
    Text(String),
    /// None.
    None,
    /// A value of a type that is not carried.
    Opaque,
}

/// Shape and type of a tensor.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    /// Element type; `None` for types that [`DType`] lacks.
    pub dtype: Option<DType>,
    /// Address of the first element, or zero.
    pub address: u64,
    /// Extents.
    pub sizes: Vec<u64>,
    /// Strides in elements.
    pub strides: Vec<i64>,
    /// Dense in row-major order.
    pub contiguous: bool,
    /// Needs a gradient.
    pub requires_grad: bool,
    /// Lives on a GPU.
    pub on_device: bool,
    /// Dense with channels last.
    pub channels_last: bool,
}

impl Tensor {
    /// Number of elements.
    #[must_use]
    pub fn elements(&self) -> u64 {
        self.sizes.iter().product()
    }

    /// Bytes of all elements; zero when the type is unknown.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.elements() * self.dtype.map_or(0, DType::size)
    }
}

/// Decodes a packed list; what follows a damaged value is left out.
#[must_use]
pub fn decode(mut bytes: &[u8]) -> Vec<Value> {
    let mut values = Vec::new();
    while !bytes.is_empty() {
        let Some(value) = value(&mut bytes, 0) else { break };
        values.push(value);
    }
    values
}

/// Lists nest at most this deep.
const MAX_DEPTH: u32 = 8;

fn value(bytes: &mut &[u8], depth: u32) -> Option<Value> {
    Some(match take::<1>(bytes)?[0] {
        b'T' => Value::Tensor(tensor(bytes)?),
        b'U' => Value::Undefined,
        b'n' => Value::None,
        b'?' => Value::Opaque,
        b'i' => Value::Int(i64::from_le_bytes(take(bytes)?)),
        b'd' => Value::Float(f64::from_le_bytes(take(bytes)?)),
        b'b' => Value::Bool(take::<1>(bytes)?[0] != 0),
        b's' => {
            let len = u16::from_le_bytes(take(bytes)?) as usize;
            let (text, rest) = bytes.split_at_checked(len)?;
            *bytes = rest;
            Value::Text(String::from_utf8_lossy(text).into_owned())
        }
        b'L' if depth < MAX_DEPTH => {
            let count = u32::from_le_bytes(take(bytes)?) as usize;
            // Each value takes at least a byte: a damaged count cannot ask for more than there is.
            let mut list = Vec::with_capacity(count.min(bytes.len()));
            for _ in 0..count {
                list.push(value(bytes, depth + 1)?);
            }
            Value::List(list)
        }
        _ => return None,
    })
}

fn tensor(bytes: &mut &[u8]) -> Option<Tensor> {
    let [dtype, ndim, flags] = take::<3>(bytes)?;
    let address = u64::from_le_bytes(take(bytes)?);
    let mut dims =
        || -> Option<Vec<i64>> { (0..ndim).map(|_| Some(i64::from_le_bytes(take(bytes)?))).collect() };
    let sizes = dims()?.into_iter().map(|n| u64::try_from(n).unwrap_or(0)).collect();
    let strides = dims()?;
    let flag = |bit: u8| flags & bit != 0;
    Some(Tensor {
        dtype: DType::from_torch(dtype),
        address,
        sizes,
        strides,
        contiguous: flag(1),
        requires_grad: flag(2),
        on_device: flag(4),
        channels_last: flag(8),
    })
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (head, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(*head)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn packed_tensor() -> Vec<u8> {
        let mut bytes = vec![b'T', 15, 2, 0b101];
        bytes.extend(7u64.to_le_bytes());
        for n in [3i64, 4, 4, 1] {
            bytes.extend(n.to_le_bytes());
        }
        bytes
    }

    #[test]
    fn values_decode() {
        let mut bytes = packed_tensor();
        bytes.push(b'L');
        bytes.extend(2u32.to_le_bytes());
        bytes.push(b'i');
        bytes.extend((-5i64).to_le_bytes());
        bytes.push(b'n');
        bytes.extend([b's', 2, 0, b'h', b'i', b'b', 1]);
        let values = decode(&bytes);
        let Value::Tensor(t) = &values[0] else { panic!("{values:?}") };
        assert_eq!((t.dtype, t.elements(), t.bytes()), (Some(DType::Bf16), 12, 24));
        assert!(t.contiguous && t.on_device && !t.requires_grad && !t.channels_last);
        assert_eq!(values[1], Value::List(vec![Value::Int(-5), Value::None]));
        assert_eq!(values[2..], [Value::Text("hi".into()), Value::Bool(true)]);
    }

    proptest! {
        #[test]
        fn garbage_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = decode(&bytes);
        }

        #[test]
        fn a_cut_list_keeps_what_is_whole(cut in 1usize..40) {
            let mut bytes = packed_tensor();
            bytes.extend(packed_tensor());
            bytes.truncate(bytes.len() - cut);
            prop_assert_eq!(decode(&bytes).len(), 1);
        }
    }
}
