// The kinds of work in their order, with the names that people read.

const KINDS = {
  gemm: "matrix products",
  attention: "attention",
  convolution: "convolution",
  norm: "normalisation",
  elementwise: "element-wise",
  reduction: "reductions",
  embedding: "embedding",
  loss: "loss",
  optimizer: "optimizer",
  other: "other kernels",
  copy: "copies",
  communication: "communication",
  bubble: "waiting for ranks",
  host_bound: "waiting for the host",
};
const IDLE = new Set(["bubble", "host_bound"]);
const OWNERS = {
  parameters: ["parameters", "gemm"],
  gradients: ["gradients", "convolution"],
  optimizer_state: ["optimizer state", "optimizer"],
  activations: ["activations", "attention"],
  inputs: ["inputs", "copy"],
  workspace: ["workspace", "elementwise"],
  unknown: ["other", "other"],
};
const METHODS = {
  measured: "measured on this device with these shapes",
  learned: "a regression trained on measurements, inside its range",
  simulated: "the kernel's program, run cycle by cycle on a model of the device's cores",
  physics: "a model bounded by what the hardware can do",
  fallback: "a rule of thumb: kernel or sizes were not understood",
};
// Element types whose name in `report.json` is shorter than the usual one.
const DTYPES = { f64: "fp64", f32: "fp32", f16: "fp16", f8e4m3: "fp8", f8e5m2: "fp8" };
