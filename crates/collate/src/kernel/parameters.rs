//! The parameter values of one launch, as the preloaded library copied them.

use crate::operator::{MOST_ELEMENTS, product};

/// Values one after the other, with the size of each.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Parameters<'a> {
    sizes: &'a [u16],
    values: &'a [u8],
}

impl<'a> Parameters<'a> {
    /// Takes the bytes of a launch; when they are not as many as the sizes say, nothing is known.
    pub(crate) fn new(sizes: &'a [u16], values: &'a [u8]) -> Self {
        let total: usize = sizes.iter().map(|size| usize::from(*size)).sum();
        if total == values.len() { Self { sizes, values } } else { Self::default() }
    }

    /// The bytes of parameter `index`.
    pub(crate) fn bytes(&self, index: usize) -> Option<&'a [u8]> {
        let size = usize::from(*self.sizes.get(index)?);
        let start: usize = self.sizes[..index].iter().map(|size| usize::from(*size)).sum();
        self.values.get(start..start + size)
    }

    /// Parameter `index` as a non-negative integer of 4 or 8 bytes that can count elements.
    pub(crate) fn count_at(&self, index: usize) -> Option<u64> {
        let bytes = self.bytes(index)?;
        let number = match bytes.len() {
            4 => int(bytes, 0).map(i64::from)?,
            8 => long(bytes, 0)?,
            _ => return None,
        };
        u64::try_from(number).ok().filter(|n| *n <= MOST_ELEMENTS)
    }

    /// All parameters.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &'a [u8]> + '_ {
        (0..self.sizes.len()).filter_map(|index| self.bytes(index))
    }
}

impl Parameters<'_> {
    /// Elements of the tensor that parameter `index`, a `TensorInfo`, describes: address, 25 sizes, 25 strides (4 or 8
    /// bytes each) and the number of dimensions (`ATen/cuda/detail/TensorInfo.cuh`).
    pub(crate) fn tensor_elements(&self, index: usize) -> Option<u64> {
        const DIMENSIONS: usize = 25;
        let bytes = self.bytes(index)?;
        let width = match bytes.len() {
            216 => 4,
            416 => 8,
            _ => return None,
        };
        let dims = usize::try_from(int(bytes, 8 + 2 * DIMENSIONS * width)?).ok()?;
        if dims == 0 || dims > DIMENSIONS {
            return None;
        }
        let size = |dim: usize| {
            if width == 4 { int(bytes, 8 + 4 * dim).map(i64::from) } else { long(bytes, 8 + 8 * dim) }
        };
        let sizes: Option<Vec<u64>> = (0..dims).map(|dim| u64::try_from(size(dim)?).ok()).collect();
        product(&sizes?)
    }
}

/// The `i32` at byte `at`.
pub(crate) fn int(bytes: &[u8], at: usize) -> Option<i32> {
    Some(i32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// The `i64` at byte `at`.
pub(crate) fn long(bytes: &[u8], at: usize) -> Option<i64> {
    Some(i64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

/// The `u16` at byte `at`.
pub(crate) fn half(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_by_their_sizes() {
        let mut values = 7u32.to_le_bytes().to_vec();
        values.extend(9u64.to_le_bytes());
        values.extend([1, 2]);
        let parameters = Parameters::new(&[4, 8, 2], &values);
        assert_eq!((parameters.count_at(0), parameters.count_at(1)), (Some(7), Some(9)));
        assert_eq!(
            (parameters.bytes(2), parameters.count_at(2), parameters.bytes(3)),
            (Some(&[1u8, 2][..]), None, None)
        );
        assert_eq!(Parameters::new(&[4, 8], &values).iter().count(), 0, "cut values are not trusted");
        assert_eq!(Parameters::new(&[4], &(-1i32).to_le_bytes()).count_at(0), None);
    }
}
