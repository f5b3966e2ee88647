//! A tensor as a descriptor states it.

use trompe_base::DType;
use trompe_trace::descriptor::ImageLayout;

use super::backend::{Descriptor, attribute};

/// The product of extents; programs may state any, so it saturates.
pub(super) fn product(extents: &[u64]) -> u64 {
    extents.iter().fold(1, |total, extent| total.saturating_mul(*extent))
}

/// Shape, strides and type of a tensor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tensor {
    /// Extents, outermost first.
    pub dimensions: Vec<u64>,
    /// Distances in elements.
    pub strides: Vec<i64>,
    /// Element type, where known.
    pub dtype: Option<DType>,
    /// Lives only inside of a fused kernel.
    pub is_virtual: bool,
    /// Its name in the graph.
    pub uid: i64,
}

impl Tensor {
    /// Reads a backend tensor descriptor.
    #[must_use]
    pub fn of(descriptor: &Descriptor) -> Self {
        let extents = descriptor.integers(attribute::TENSOR_DIMENSIONS);
        Self {
            dimensions: extents.into_iter().map(|extent| u64::try_from(extent).unwrap_or(0)).collect(),
            strides: descriptor.integers(attribute::TENSOR_STRIDES),
            dtype: descriptor.number(attribute::TENSOR_DATA_TYPE).and_then(super::dtype),
            is_virtual: descriptor.flag(attribute::TENSOR_IS_VIRTUAL),
            uid: descriptor.integer(attribute::TENSOR_UNIQUE_ID).unwrap_or(0),
        }
    }

    /// Number of elements, at most all that a number can say.
    #[must_use]
    pub fn elements(&self) -> u64 {
        if self.dimensions.is_empty() { 0 } else { product(&self.dimensions) }
    }

    /// Bytes of all elements; an unknown type counts as four bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.elements().saturating_mul(self.dtype.map_or(4, DType::size))
    }

    /// Extent `index`, or 1.
    #[must_use]
    pub fn extent(&self, index: usize) -> u64 {
        self.dimensions.get(index).copied().unwrap_or(1)
    }

    /// Storage order of an image (batch, channels, spatial …): channels last when they are innermost and there is a
    /// spatial extent for which that makes a difference.
    #[must_use]
    pub fn layout(&self) -> ImageLayout {
        let innermost = self.strides.get(1) == Some(&1) && self.strides.len() > 2;
        let spatial = product(self.dimensions.get(2..).unwrap_or(&[]));
        if innermost && (spatial > 1 || self.extent(1) > 1) {
            ImageLayout::ChannelsLast
        } else {
            ImageLayout::ChannelsFirst
        }
    }

    /// For people: `bf16[8, 64, 56, 56]`.
    #[must_use]
    pub fn text(&self) -> String {
        let extents: Vec<String> = self.dimensions.iter().map(u64::to_string).collect();
        format!("{}[{}]", self.dtype.map_or("?", DType::name), extents.join(", "))
    }
}
