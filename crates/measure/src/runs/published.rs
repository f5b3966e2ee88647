//! What is published about training runs beside their tables: the shape of models that a table only names, and settings
//! of the frameworks' own scripts (`published.toml`).
//!
//! Only empty cells are filled, and what filled them is named, so that a reader can tell a table's own numbers from
//! those.

use serde::Deserialize;

use super::RunRow;

/// What a model is made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Biases, layer norms, GELU, learned positions.
    #[default]
    Gpt,
    /// No biases, RMS norms, gated SiLU, rotary positions.
    Llama,
    /// No biases, layer norms, squared ReLU, rotary positions.
    Nemotron,
    /// As [`Kind::Llama`], with keys and values through a low rank and experts beside a shared one.
    DeepSeek,
}

/// A published model.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Model {
    names: Vec<String>,
    /// What it is made of.
    pub kind: Kind,
    hidden: u64,
    layers: u64,
    heads: u64,
    kv_heads: Option<u64>,
    ffn: u64,
    vocab: u64,
    experts: Option<u64>,
    /// Experts that a token goes to.
    pub experts_per_token: Option<u64>,
    /// Width inside an expert.
    pub expert_ffn: Option<u64>,
    /// Width inside the experts that all tokens go to, together.
    pub shared_ffn: Option<u64>,
    /// Layers in front that have no experts.
    #[serde(default)]
    pub dense_layers: u64,
    stated_by: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Run {
    framework: String,
    model: String,
    heads: Option<u64>,
    kv_heads: Option<u64>,
    micro_batch: Option<u64>,
    vp: Option<u64>,
    #[serde(default)]
    recompute: String,
    #[serde(default)]
    arguments: Vec<String>,
    stated_by: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct System {
    source: String,
    node: String,
    stated_by: String,
}

/// All that is known.
#[derive(Debug, Deserialize)]
pub struct Published {
    system: Vec<System>,
    model: Vec<Model>,
    run: Vec<Run>,
}

/// A row with its empty cells filled.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Completed {
    /// The row.
    pub row: RunRow,
    /// Its model, where it is a published one.
    pub model: Option<Model>,
    /// The node's sheet, where one is stated.
    pub node: Option<String>,
    /// Further arguments of the framework that its script gives.
    pub arguments: Vec<String>,
    /// What was filled, and who states it.
    pub assumed: Vec<String>,
}

impl Published {
    /// The built-in list.
    ///
    /// # Panics
    /// When it is malformed, which a test rules out.
    #[must_use]
    pub fn builtin() -> Self {
        toml::from_str(include_str!("../../published.toml")).expect("published.toml is well formed")
    }

    /// The model of that name.
    #[must_use]
    pub fn model(&self, name: &str) -> Option<&Model> {
        let name = plain(name);
        self.model.iter().find(|model| model.names.iter().any(|other| plain(other) == name))
    }

    /// `row` with what is published in place of empty cells.
    #[must_use]
    pub fn complete(&self, row: &RunRow) -> Completed {
        let mut row = row.clone();
        let (mut assumed, mut arguments) = (Vec::new(), Vec::new());
        let system = self.system.iter().find(|system| row.source == system.source);
        let same =
            |run: &&Run| row.framework.starts_with(&run.framework) && plain(&run.model) == plain(&row.model);
        let run = self.run.iter().find(same);
        if let Some(run) = run {
            arguments.clone_from(&run.arguments);
            if row.recompute.is_empty() && !run.recompute.is_empty() {
                row.recompute.clone_from(&run.recompute);
                assumed.push(format!("recomputation {} ({})", run.recompute, run.stated_by));
            }
        }
        let mut fill = |cell: &mut Option<u64>, value: Option<u64>, name: &str, stated_by: &str| {
            if let (None, Some(value)) = (*cell, value) {
                *cell = Some(value);
                assumed.push(format!("{name} {value} ({stated_by})"));
            }
        };
        if let Some(run) = run {
            fill(&mut row.heads, run.heads, "heads", &run.stated_by);
            fill(&mut row.kv_heads, run.kv_heads, "heads of keys", &run.stated_by);
            fill(&mut row.micro_batch, run.micro_batch, "micro batch", &run.stated_by);
            fill(&mut row.vp, run.vp, "virtual stages", &run.stated_by);
        }
        let model = self.model(&row.model).cloned();
        if let Some(model) = &model {
            let by = &model.stated_by;
            fill(&mut row.hidden, Some(model.hidden), "width", by);
            fill(&mut row.layers, Some(model.layers), "layers", by);
            fill(&mut row.heads, Some(model.heads), "heads", by);
            fill(&mut row.kv_heads, model.kv_heads, "heads of keys", by);
            fill(&mut row.ffn, Some(model.ffn), "inner width", by);
            fill(&mut row.vocab, Some(model.vocab), "vocabulary", by);
            fill(&mut row.n_experts, model.experts, "experts", by);
        }
        if row.global_batch.is_none()
            && let (Some(count), Some(micro)) = (noted_micro_batches(&row.notes), row.micro_batch)
            && let Some(dp) = replicas(&row)
        {
            fill(
                &mut row.global_batch,
                Some(count * micro * dp),
                "batch",
                "the row's note of its micro batches",
            );
        }
        if let Some(system) = system {
            assumed.push(format!("nodes as {} ({})", system.node, system.stated_by));
        }
        Completed { row, model, node: system.map(|system| system.node.clone()), arguments, assumed }
    }
}

/// A name without what people write differently.
fn plain(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase()
}

/// Data parallelism of a row, stated or what is left of the devices.
fn replicas(row: &RunRow) -> Option<u64> {
    let model = row.tp.unwrap_or(1) * row.pp.unwrap_or(1) * row.cp.unwrap_or(1);
    row.dp.or_else(|| row.n_gpus.filter(|gpus| gpus % model.max(1) == 0).map(|gpus| gpus / model.max(1)))
}

/// Micro batches per step that a remark states (`mbc=8`, micro batch count).
fn noted_micro_batches(notes: &str) -> Option<u64> {
    let rest = notes.split("mbc=").nth(1)?;
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok().filter(|count| (1..1 << 20).contains(count))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(framework: &str, model: &str) -> RunRow {
        RunRow {
            framework: framework.to_owned(),
            model: model.to_owned(),
            n_gpus: Some(8),
            ..RunRow::default()
        }
    }

    #[test]
    fn a_named_model_has_its_shape_and_a_row_keeps_its_own() {
        let published = Published::builtin();
        let filled = published.complete(&RunRow { layers: Some(12), ..row("Megatron-LM", "LLAMA3 70B") });
        assert_eq!(
            (filled.row.hidden, filled.row.layers, filled.row.kv_heads),
            (Some(8192), Some(12), Some(8))
        );
        assert!(filled.assumed.iter().any(|line| line.starts_with("width 8192 (")), "{:?}", filled.assumed);
        let unknown = published.complete(&row("Megatron-LM", "my-own-3B"));
        assert_eq!((unknown.model, unknown.row.hidden, unknown.assumed.len()), (None, None, 0));
    }

    #[test]
    fn a_framework_s_script_states_the_micro_batch() {
        let published = Published::builtin();
        let filled = published.complete(&row("Megatron-LM 2021", "gpt-76B"));
        assert_eq!((filled.row.micro_batch, filled.row.vp, filled.row.heads), (Some(2), Some(3), Some(80)));
        assert_eq!(published.complete(&row("Megatron-LM 2022", "gpt-76B")).row.micro_batch, None);
        assert_eq!(published.complete(&row("Megatron-LM 2020", "gpt2-8B")).row.recompute, "full");
    }

    #[test]
    fn a_remark_states_the_batch() {
        let published = Published::builtin();
        let noted = RunRow {
            micro_batch: Some(1),
            tp: Some(2),
            notes: "micro-batch count mbc=4; x_mbc4".to_owned(),
            ..row("Megatron-LM", "llama3-70b")
        };
        assert_eq!(published.complete(&noted).row.global_batch, Some(16));
        let without = RunRow { notes: "mbc=x".to_owned(), ..noted };
        assert_eq!(published.complete(&without).row.global_batch, None);
    }
}
