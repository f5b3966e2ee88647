//! From rows of the measurement files to operations.

use std::collections::BTreeMap;

use csv::StringRecord;
use trompe_base::{Bytes, DType, Flops};
use trompe_hardware::{Catalogue, DeviceSheet, FlopsPerSecond, HardwareError, Hertz};
use trompe_trace::descriptor::{
    Attention, AttentionKind, Convolution, Descriptor, Direction, Elementwise, Embedding, Epilogue, Gemm,
    ImageLayout, NormKind, Normalization, RowWise, Work,
};

/// Rows of these sources contain the launch: only long ones say something about the kernel.
const WITH_LAUNCH: [&str; 3] = ["neusight", "aceso", "triosim"];
const LONG: f64 = 100e-6;
/// NeuSight's convolution rows contain a quarter of a millisecond that other sources do not show.
const LONG_CONVOLUTION: f64 = 1e-3;

/// One measured operation.
pub(crate) struct Measured<'a> {
    /// Family, device, source and anything else that tells rows apart.
    pub(crate) group: String,
    /// Measured together: more than one for a forward and backward pass.
    pub(crate) operations: Vec<Descriptor>,
    pub(crate) device: &'a DeviceSheet,
    pub(crate) seconds: f64,
}

/// A CSV row addressed by column name.
pub(crate) struct Row<'a> {
    cells: BTreeMap<&'a str, &'a str>,
}

impl<'a> Row<'a> {
    pub(crate) fn new(headers: &'a StringRecord, record: &'a StringRecord) -> Self {
        Self { cells: headers.iter().zip(record.iter()).collect() }
    }

    pub(crate) fn text(&self, column: &str) -> &'a str {
        self.cells.get(column).copied().unwrap_or_default()
    }

    fn real(&self, column: &str) -> Option<f64> {
        self.text(column).parse().ok()
    }

    fn whole(&self, column: &str) -> Option<u64> {
        self.real(column).filter(|x| *x >= 0.0).map(|x| x as u64)
    }
}

/// The devices of the measurement files.
pub(crate) struct Devices(BTreeMap<&'static str, DeviceSheet>);

impl Devices {
    pub(crate) fn new() -> Result<Self, HardwareError> {
        let catalogue = Catalogue::builtin();
        let mut devices = BTreeMap::new();
        for (gpu, sheet) in [
            ("A100-SXM4-80GB", "a100-sxm4-80"),
            ("A100-PCIe-80GB", "a100-pcie-80"),
            ("A100-PCIe-40GB", "a100-sxm4-40"),
            ("H100-SXM5-80GB", "h100-sxm5-80"),
            ("H200", "h200-sxm-141"),
            ("B200", "b200-sxm-180"),
            ("L40S", "l40s"),
            ("A40", "a40"),
            ("V100-SXM2", "v100-sxm2-32"),
            ("V100-PCIe-32GB", "v100-sxm2-32"),
            ("RTX-3090", "rtx-3090"),
        ] {
            let mut device = catalogue.device(sheet)?;
            if gpu == "V100-PCIe-32GB" {
                // NVIDIA V100 datasheet, PCIe column.
                device.compute.boost_clock = Hertz(1.38e9);
                device.peaks.vector.fp32 = Some(FlopsPerSecond(14.0e12));
                device.peaks.tensor.fp16 = Some(FlopsPerSecond(112e12));
            }
            devices.insert(gpu, device);
        }
        Ok(Self(devices))
    }
}

/// The operation of `row`; `None` for rows that no device or family here covers.
pub(crate) fn measured<'a>(file: &str, row: &Row<'_>, devices: &'a Devices) -> Option<Measured<'a>> {
    let device = devices.0.get(row.text("gpu"))?;
    let seconds = row.real("time_us")? * 1e-6;
    let source = row.text("source").split('/').next().unwrap_or_default();
    let with_launch = WITH_LAUNCH.contains(&source) && file != "gemm" || source == "neusight";
    // The benchmark of other libraries' kernels has PyTorch's own as baseline.
    if source == "liger_kernel" && !matches!(row.text("impl"), "huggingface" | "torch") {
        return None;
    }
    let shortest = if file == "conv" { LONG_CONVOLUTION } else { LONG };
    if with_launch && seconds < shortest {
        return None;
    }
    let one = |(operation, what)| (vec![operation], what);
    let (operations, what) = match file {
        "gemm" => one(gemm(row)?),
        "attention" if row.text("direction") == "fwd_bwd" => {
            let (forward, what) = attention(row, Direction::Forward)?;
            (vec![forward, attention(row, Direction::Backward)?.0], what)
        }
        "attention" => one(attention(row, direction(row)?)?),
        "pointwise" => one(pointwise(row)?),
        _ => one(convolution(row)?),
    };
    let long = if with_launch { format!(", >= {:.0} us", shortest * 1e6) } else { String::new() };
    let group = format!("{} | {what} | {} | {source}{long}", operations.first()?.family(), row.text("gpu"));
    Some(Measured { group, operations, device, seconds })
}

fn dtype(name: &str) -> Option<DType> {
    Some(match name {
        "bfloat16" => DType::Bf16,
        "float16" => DType::F16,
        "float32" => DType::F32,
        "fp8" => DType::F8E4M3,
        _ => return None,
    })
}

fn direction(row: &Row<'_>) -> Option<Direction> {
    Some(match row.text("direction") {
        "fwd" | "unknown" => Direction::Forward,
        "bwd" | "dgrad" => Direction::Backward,
        "wgrad" => Direction::WeightGradient,
        _ => return None,
    })
}

fn gemm(row: &Row<'_>) -> Option<(Descriptor, String)> {
    let dtype = dtype(row.text("dtype"))?;
    let (m, n, k) = (row.whole("m")?, row.whole("n")?, row.whole("k")?);
    let batch = row.whole("batch")?;
    let result = if dtype.size() == 1 { DType::Bf16 } else { dtype };
    let operation = Descriptor::Gemm(Gemm {
        m,
        n,
        k,
        batch,
        transpose_a: false,
        transpose_b: false,
        a: dtype,
        b: dtype,
        c: result,
        compute: DType::F32,
        epilogue: Epilogue::None,
        accumulate: row.text("accumulate") == "1",
        leading: [m, k, m],
        strides: [0; 3],
    });
    let size = match (batch > 1, m >= 256 && n >= 512 && k >= 512) {
        (true, _) => "batched",
        (_, true) => "large",
        _ => "small",
    };
    Some((operation, format!("{dtype} {size}")))
}

fn attention(row: &Row<'_>, direction: Direction) -> Option<(Descriptor, String)> {
    let (seq_q, head_dim) = (row.whole("seq_q")?, row.whole("head_dim")?);
    let library = row.text("impl");
    let hopper = matches!(row.text("gpu"), "H100-SXM5-80GB" | "H200" | "B200");
    let kind = match library {
        "fa2" | "flash_attn" => AttentionKind::Flash,
        "cudnn" | "te" => AttentionKind::Cudnn,
        "vllm" | "sglang" | "trtllm" | "fa3" if hopper => AttentionKind::Flash3,
        "vllm" | "sglang" | "trtllm" => AttentionKind::Flash,
        "xformers" => AttentionKind::MemoryEfficient,
        _ => return None,
    };
    if row.whole("window").unwrap_or(0) > 0 || head_dim > 256 || seq_q < 64 {
        return None;
    }
    let operation = Descriptor::Attention(Attention {
        direction,
        kind,
        batch: row.whole("batch")?,
        heads: row.whole("heads")?,
        kv_heads: row.whole("kv_heads")?,
        seq_q,
        seq_kv: row.whole("seq_kv")?,
        head_dim,
        head_dim_v: row.whole("head_dim_v")?,
        causal: row.text("causal") == "1",
        dropout: false,
        dtype: dtype(row.text("dtype"))?,
    });
    let length = if seq_q >= 512 { "seq >= 512" } else { "seq < 512" };
    Some((operation, format!("{} {library} {length}", row.text("direction"))))
}

fn pointwise(row: &Row<'_>) -> Option<(Descriptor, String)> {
    let direction = direction(row)?;
    let dtype = dtype(row.text("dtype"))?;
    let (rows, cols) = (row.whole("rows")?, row.whole("cols")?);
    let bytes = row.whole("bytes_moved")?;
    let op = row.text("op");
    // All that the models need is the sum.
    let work = Work { read: Bytes(bytes), written: Bytes::ZERO, flops: Flops::ZERO };
    let elements = rows * cols;
    let operation = match op {
        "add" | "mul" | "div" | "add_scalar" | "mul_scalar" | "div_scalar" | "gelu" | "relu" | "tanh"
        | "pow" | "bias_gelu" => {
            Descriptor::Elementwise(Elementwise { elements, dtype, vectorized: true, work })
        }
        "silu_mul" | "rope" => {
            Descriptor::Elementwise(Elementwise { elements, dtype, vectorized: false, work })
        }
        "layer_norm" | "rms_norm" => {
            let kind = if op == "rms_norm" { NormKind::Rms } else { NormKind::Layer };
            Descriptor::Normalization(Normalization { kind, direction, rows, cols, dtype, work })
        }
        "softmax" | "masked_softmax" => Descriptor::Softmax(RowWise { direction, rows, cols, dtype, work }),
        "embedding" => Descriptor::Embedding(Embedding {
            direction,
            tokens: rows,
            width: cols,
            rows: 50_000,
            dtype,
            work,
        }),
        _ => return None,
    };
    let what = match op {
        "silu_mul" | "rope" | "layer_norm" | "rms_norm" | "gelu" | "masked_softmax" => op,
        _ => "",
    };
    Some((operation, format!("{dtype} {what}")))
}

fn convolution(row: &Row<'_>) -> Option<(Descriptor, String)> {
    let dtype = dtype(row.text("dtype"))?;
    let direction = direction(row)?;
    let pair = |name: &str| Some(vec![row.whole(&format!("{name}_h"))?, row.whole(&format!("{name}_w"))?]);
    let (input, kernel, stride, padding) = (pair("in")?, pair("kernel")?, pair("stride")?, pair("pad")?);
    let output = (0..2).map(|i| (input[i] + 2 * padding[i] - kernel[i]) / stride[i] + 1).collect();
    let operation = Descriptor::Convolution(Convolution {
        direction,
        batch: row.whole("batch")?,
        in_channels: row.whole("in_channels")?,
        out_channels: row.whole("out_channels")?,
        groups: 1,
        input,
        output,
        kernel,
        stride,
        padding,
        dilation: vec![1, 1],
        dtype,
        compute: DType::F32,
        layout: ImageLayout::ChannelsFirst,
    });
    Some((operation, format!("{dtype} {}", row.text("direction"))))
}
