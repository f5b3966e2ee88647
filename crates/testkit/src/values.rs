//! Packing of operator arguments, the reverse of `trompe_trace::values::decode`.

use trompe_base::DType;
use trompe_trace::values::{Tensor, Value};

/// A contiguous tensor on the device at `address`.
#[must_use]
pub fn tensor(dtype: DType, sizes: &[u64], address: u64) -> Value {
    let mut strides: Vec<i64> = Vec::new();
    let mut stride = 1;
    for size in sizes.iter().rev() {
        strides.insert(0, stride);
        stride *= (*size).max(1) as i64;
    }
    strided(dtype, sizes, &strides, address)
}

/// A tensor on the device with the given strides.
#[must_use]
pub fn strided(dtype: DType, sizes: &[u64], strides: &[i64], address: u64) -> Value {
    Value::Tensor(Tensor {
        dtype: Some(dtype),
        address,
        sizes: sizes.to_vec(),
        strides: strides.to_vec(),
        contiguous: true,
        requires_grad: false,
        on_device: true,
        channels_last: false,
    })
}

/// Packs values.
#[must_use]
pub fn encode(values: &[Value]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for value in values {
        put(value, &mut bytes);
    }
    bytes
}

fn put(value: &Value, bytes: &mut Vec<u8>) {
    match value {
        Value::Tensor(tensor) => put_tensor(tensor, bytes),
        Value::Undefined => bytes.push(b'U'),
        Value::None => bytes.push(b'n'),
        Value::Opaque => bytes.push(b'?'),
        Value::Int(n) => {
            bytes.push(b'i');
            bytes.extend(n.to_le_bytes());
        }
        Value::Float(f) => {
            bytes.push(b'd');
            bytes.extend(f.to_le_bytes());
        }
        Value::Bool(b) => bytes.extend([b'b', u8::from(*b)]),
        Value::Text(text) => {
            bytes.push(b's');
            bytes.extend((text.len() as u16).to_le_bytes());
            bytes.extend(text.as_bytes());
        }
        Value::List(list) => {
            bytes.push(b'L');
            bytes.extend((list.len() as u32).to_le_bytes());
            for value in list {
                put(value, bytes);
            }
        }
    }
}

fn put_tensor(tensor: &Tensor, bytes: &mut Vec<u8>) {
    let flags = [tensor.contiguous, tensor.requires_grad, tensor.on_device, tensor.channels_last];
    let flags = flags.iter().enumerate().map(|(bit, set)| u8::from(*set) << bit).sum();
    let number = tensor.dtype.and_then(|d| (0..=u8::MAX).find(|n| DType::from_torch(*n) == Some(d)));
    bytes.extend([b'T', number.unwrap_or(u8::MAX), tensor.sizes.len() as u8, flags]);
    bytes.extend(tensor.address.to_le_bytes());
    for size in &tensor.sizes {
        bytes.extend(size.to_le_bytes());
    }
    for stride in &tensor.strides {
        bytes.extend(stride.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_survive_packing() {
        let values = vec![
            tensor(DType::Bf16, &[8, 1024], 64),
            Value::List(vec![Value::Int(-3), Value::None, Value::Undefined]),
            Value::Float(0.5),
            Value::Bool(true),
            Value::Text("text".into()),
            Value::Opaque,
        ];
        assert_eq!(trompe_trace::values::decode(&encode(&values)), values);
    }
}
