//! Two-dimensional convolutions.

use trompe_base::DType;
use trompe_trace::descriptor::{Convolution, Descriptor, ImageLayout};

use super::{Found, one};
use crate::row::Row;

pub(super) fn operations(row: &Row<'_>) -> Result<Vec<Found>, String> {
    let dtype = row.dtype()?;
    let direction = row.direction()?;
    let input = vec![row.size("in_h")?, row.size("in_w")?];
    let kernel = vec![row.size("kernel_h")?, row.size("kernel_w")?];
    let pair = |name: &str, default: u64| -> Vec<u64> {
        ["h", "w"].iter().map(|side| row.whole(&format!("{name}_{side}")).unwrap_or(default)).collect()
    };
    let stride: Vec<u64> = pair("stride", 1).into_iter().map(|x| x.max(1)).collect();
    let padding = pair("pad", 0);
    let mut output = Vec::new();
    for i in 0..2 {
        let room = (input[i] + 2 * padding[i])
            .checked_sub(kernel[i])
            .ok_or_else(|| "a kernel that is larger than its image".to_owned())?;
        output.push(room / stride[i] + 1);
    }
    let storage = if dtype == DType::Tf32 { DType::F32 } else { dtype };
    let operation = Descriptor::Convolution(Convolution {
        direction,
        batch: row.size("batch")?,
        in_channels: row.size("in_channels")?,
        out_channels: row.size("out_channels")?,
        groups: row.whole("groups").unwrap_or(1).max(1),
        input,
        output,
        kernel,
        stride,
        padding,
        dilation: vec![1, 1],
        dtype: storage,
        compute: if dtype == DType::Tf32 { DType::Tf32 } else { DType::F32 },
        layout: if row.text("layout") == "NHWC" {
            ImageLayout::ChannelsLast
        } else {
            ImageLayout::ChannelsFirst
        },
    });
    let direction = if row.text("direction").is_empty() { "fwd" } else { row.text("direction") };
    one(row, operation, format!("{dtype} {direction}"))
}
