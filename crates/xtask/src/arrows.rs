//! Which crate may use which: the picture in ARCHITECTURE.md as data.
//!
//! Dependencies for tests alone are free (`testkit`).

/// Crate folder and the crate folders that it may use.
pub(crate) const ALLOWED: &[(&str, &[&str])] = &[
    // Vocabulary.
    ("base", &[]),
    ("results", &["base"]),
    // Mechanisms.
    ("engine", &["base"]),
    ("hardware", &["base"]),
    ("trace", &["base"]),
    ("fatbin", &["base"]),
    ("rendezvous", &["base"]),
    // Models.
    ("collate", &["base", "trace"]),
    ("estimate", &["base", "trace", "hardware"]),
    ("measure", &["base", "trace", "hardware", "estimate"]),
    ("network", &["base", "engine", "hardware"]),
    ("cluster", &["base", "engine", "trace", "hardware", "estimate", "network", "results"]),
    ("npu", &["base", "engine", "estimate", "results"]),
    ("interop", &["base", "trace", "results"]),
    ("report", &["base", "results"]),
    ("search", &["base", "results"]),
    // The emulated GPU.
    ("cuda-abi", &[]),
    ("device", &["base", "trace", "hardware", "cuda-abi", "fatbin"]),
    ("shim", &["base", "trace", "hardware", "cuda-abi", "device", "fatbin"]),
    // Applications.
    (
        "session",
        &[
            "base",
            "cluster",
            "collate",
            "engine",
            "estimate",
            "fatbin",
            "hardware",
            "interop",
            "measure",
            "network",
            "npu",
            "rendezvous",
            "report",
            "results",
            "search",
            "trace",
        ],
    ),
    ("cli", &["session", "report", "results"]),
    ("testkit", &["base", "trace", "results", "hardware", "estimate"]),
    ("xtask", &["cuda-abi", "results"]),
];
