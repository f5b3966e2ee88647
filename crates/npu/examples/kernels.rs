//! Writes the kernels of [`trompe_npu::kernels`] as program files, for tests against independent references and for
//! trying `trompe npu run` out: `cargo run -p trompe-npu --example kernels -- FOLDER`.

use std::path::PathBuf;

use trompe_npu::kernels::{
    Attention, Matmul, RowKernel, all_reduce, attention, matmul, mix, rotation, row_kernel, top_k, vector_add,
};
use trompe_npu::{ElementType, Program};

const SMALL: Matmul = Matmul {
    m: 256,
    n: 128,
    k: 256,
    tile: [64, 64, 64],
    split_k: 1,
    cores: 1,
    dtype: ElementType::F16,
    slots: 1,
};

fn all() -> Vec<(&'static str, Program)> {
    vec![
        ("vector_add", vector_add(10_001, 1024, 4)),
        ("matmul_1_core", matmul(&SMALL)),
        ("matmul_4_cores", matmul(&Matmul { cores: 4, slots: 2, ..SMALL })),
        ("matmul_32_cores", matmul(&Matmul { m: 512, n: 256, cores: 32, slots: 2, ..SMALL })),
        ("matmul_split_k", matmul(&Matmul { cores: 4, slots: 2, split_k: 2, ..SMALL })),
        ("matmul_f32", matmul(&Matmul { dtype: ElementType::F32, slots: 2, ..SMALL })),
        ("matmul_bf16", matmul(&Matmul { dtype: ElementType::Bf16, slots: 2, ..SMALL })),
        ("matmul_f8e4m3", matmul(&Matmul { dtype: ElementType::F8e4m3, slots: 2, ..SMALL })),
        ("matmul_f8e5m2", matmul(&Matmul { dtype: ElementType::F8e5m2, slots: 2, ..SMALL })),
        ("matmul_i8", matmul(&Matmul { dtype: ElementType::I8, slots: 2, ..SMALL })),
        ("mix", mix(1024, 4)),
        ("softmax", row_kernel(RowKernel::Softmax, 256, 2)),
        ("layer_norm", row_kernel(RowKernel::LayerNorm, 256, 2)),
        ("rms_norm", row_kernel(RowKernel::RmsNorm, 256, 2)),
        ("attention", attention(&Attention { queries: 256, keys: 384, cores: 2 })),
        ("top_k", top_k()),
        ("all_reduce", all_reduce(4, 3)),
        ("rotation", rotation(2, 4)),
    ]
}

fn main() -> std::io::Result<()> {
    let folder = PathBuf::from(std::env::args_os().nth(1).unwrap_or_else(|| "kernels".into()));
    std::fs::create_dir_all(&folder)?;
    for (name, program) in all() {
        std::fs::write(folder.join(format!("{name}.json")), program.to_json())?;
    }
    println!("{} programs in {}", all().len(), folder.display());
    Ok(())
}
