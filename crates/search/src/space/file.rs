//! The space file: TOML as written, turned into a [`Space`].
//!
//! What the file may hold is described in `docs/search.md`. Keys that are not known are errors, so a misspelt one is
//! never silently without effect.

use std::collections::BTreeMap;
use std::hash::Hasher;

use serde::Deserialize;
use siphasher::sip::SipHasher13;
use toml::Spanned;

use super::batch::{GLOBAL_BATCH, MICRO_BATCHES};
use super::knob::Range;
use super::{
    Batch, Constraint, Derived, Effect, FileTemplate, JobTemplate, Knob, Limits, MemoryTrend, Objective,
    Prices, Reach, Replicas, Rule, Sampling, Space, TrialSettings, When, derived,
};
use crate::Value;
use crate::expression::Expression;
use crate::template::{self, Template};

/// What is wrong with a space file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SpaceError {
    /// It is no TOML, or holds a key that is not known.
    #[error("the space file cannot be read: {reason}")]
    Syntax {
        /// What is wrong, with line and column.
        reason: String,
    },
    /// A part makes no sense.
    #[error("{place}: {reason}")]
    Part {
        /// Where.
        place: String,
        /// What is wrong.
        reason: String,
    },
    /// A name that is no knob, derived value or fact.
    #[error(
        "{place} names `{name}`, which is no knob, derived value or fact about the cluster{}",
        maybe(suggestion)
    )]
    UnknownName {
        /// Where.
        place: String,
        /// The name.
        name: String,
        /// A name that is like it.
        suggestion: Option<String>,
    },
    /// Derived values that need each other.
    #[error("the derived values {} need each other in a circle", circle.join(" → "))]
    Circle {
        /// Their names.
        circle: Vec<String>,
    },
}

fn maybe(suggestion: &Option<String>) -> String {
    suggestion.as_ref().map(|name| format!("; did you mean `{name}`?")).unwrap_or_default()
}

type Ordered<T> = BTreeMap<Spanned<String>, T>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    name: String,
    command: Words,
    directory: Option<String>,
    #[serde(default)]
    knobs: Ordered<KnobText>,
    #[serde(default)]
    hardware: HardwareText,
    #[serde(default)]
    derived: Ordered<Formula>,
    #[serde(default)]
    constraints: Vec<ConstraintText>,
    batch: Option<BatchText>,
    #[serde(default)]
    arguments: Ordered<Formula>,
    #[serde(default)]
    environment: Ordered<Formula>,
    #[serde(default)]
    files: Ordered<FileText>,
    objective: Option<OneOrMore>,
    #[serde(default)]
    limits: LimitsText,
    price_per_gpu_hour: Option<PriceText>,
    #[serde(default)]
    prune: Vec<RuleText>,
    sampling: Option<SamplingText>,
    #[serde(default)]
    trial: TrialText,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Words {
    Line(String),
    List(Vec<String>),
}

#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMore {
    One(String),
    More(Vec<String>),
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Formula {
    Text(String),
    Boolean(bool),
    Whole(i64),
    Real(f64),
}

impl Formula {
    fn text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Boolean(value) => value.to_string(),
            Self::Whole(value) => value.to_string(),
            Self::Real(value) => value.to_string(),
        }
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
enum KnobText {
    List(Vec<Value>),
    Word(String),
    Table(KnobTable),
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct KnobTable {
    values: Option<Vec<Value>>,
    from: Option<f64>,
    to: Option<f64>,
    step: Option<f64>,
    times: Option<f64>,
    memory: Option<String>,
    ordered: Option<bool>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct HardwareText {
    cluster: Option<Vec<String>>,
    nodes: Option<Vec<i64>>,
    #[serde(default)]
    reuse_trace: bool,
    replicas: Option<ReplicasText>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReplicasText {
    degree: String,
    apart: Formula,
    #[serde(rename = "if")]
    condition: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum ConstraintText {
    Rule(String),
    Table { rule: String, because: String },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BatchText {
    global: Formula,
    sequence: Option<Formula>,
    micro: Formula,
    data_parallel: Formula,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileText {
    #[serde(default)]
    ending: String,
    content: String,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct LimitsText {
    memory_gib: Option<f64>,
    step_seconds: Option<f64>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum PriceText {
    One(f64),
    ByName(BTreeMap<String, f64>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleText {
    name: String,
    knob: String,
    tried: Option<Value>,
    then: Option<Value>,
    others: Option<String>,
    when: String,
    effect: String,
    #[serde(rename = "if")]
    condition: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SamplingText {
    first: Formula,
    second: Formula,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct TrialText {
    host: Option<String>,
    steps: Option<String>,
    ranks: Option<String>,
    timeout_seconds: Option<f64>,
    #[serde(default)]
    code: Vec<String>,
}

fn wrong(place: impl Into<String>, reason: impl Into<String>) -> SpaceError {
    SpaceError::Part { place: place.into(), reason: reason.into() }
}

fn expression(place: &str, text: &str) -> Result<Expression, SpaceError> {
    Expression::read(text).map_err(|reason| wrong(place, format!("`{text}`: {reason}")))
}

/// The entries of a table in the order in which they are written.
fn in_order<T>(table: Ordered<T>) -> impl Iterator<Item = (String, T)> {
    let mut entries: Vec<_> = table.into_iter().collect();
    entries.sort_by_key(|(name, _)| name.span().start);
    entries.into_iter().map(|(name, value)| (name.into_inner(), value))
}

/// Reads a file without checking that its names exist.
pub(super) fn read(text: &str) -> Result<Space, SpaceError> {
    let file: File =
        toml::from_str(text).map_err(|error| SpaceError::Syntax { reason: error.to_string() })?;
    let knobs = knobs(file.knobs, file.hardware.cluster, file.hardware.nodes)?;
    let mut formulas = Vec::new();
    for (name, formula) in in_order(file.derived) {
        let value = expression(&format!("`{name}` in [derived]"), &formula.text())?;
        formulas.push(Derived { name, value });
    }
    let mut constraints = Vec::new();
    for text in file.constraints {
        let (rule, because) = match text {
            ConstraintText::Rule(rule) => (rule.clone(), rule),
            ConstraintText::Table { rule, because } => (rule, because),
        };
        constraints.push(Constraint { rule: expression("a constraint", &rule)?, because });
    }
    let batch = file.batch.map(|text| batch(&text, &mut formulas, &mut constraints)).transpose()?;
    let rules = rules(file.prune, &knobs)?;
    let mut digest = SipHasher13::new();
    digest.write(text.as_bytes());
    Ok(Space {
        name: if file.name.is_empty() { "search".to_owned() } else { file.name },
        derived: derived::ordered(formulas).map_err(|circle| SpaceError::Circle { circle })?,
        constraints,
        batch,
        job: JobTemplate {
            command: command(file.command)?,
            arguments: arguments(file.arguments)?,
            environment: environment(file.environment)?,
            files: in_order(file.files)
                .map(|(name, file)| FileTemplate { name, ending: file.ending, content: file.content })
                .collect(),
            directory: file.directory,
        },
        objectives: objectives(file.objective)?,
        limits: Limits {
            memory_bytes: file.limits.memory_gib.map(|gib| (gib * f64::from(1 << 30)) as u64),
            step_seconds: file.limits.step_seconds,
        },
        prices: match file.price_per_gpu_hour {
            None => Prices::default(),
            Some(PriceText::One(price)) => Prices { default: Some(price), ..Prices::default() },
            Some(PriceText::ByName(mut by_name)) => Prices { default: by_name.remove("default"), by_name },
        },
        rules,
        sampling: file.sampling.map(|text| sampling(&text)).transpose()?,
        trial: TrialSettings {
            host: file.trial.host,
            steps: file.trial.steps,
            ranks: file.trial.ranks.as_deref().map(ranks).transpose()?,
            timeout: file.trial.timeout_seconds,
            code: file.trial.code,
        },
        reuse_trace: file.hardware.reuse_trace,
        replicas: file.hardware.replicas.map(replicas).transpose()?,
        digest: digest.finish(),
        knobs,
    })
}

fn knobs(
    texts: Ordered<KnobText>,
    clusters: Option<Vec<String>>,
    nodes: Option<Vec<i64>>,
) -> Result<Vec<Knob>, SpaceError> {
    let mut knobs = Vec::new();
    for (name, text) in in_order(texts) {
        knobs.push(knob(name, text)?);
    }
    let hardware = |name: &str, values: Vec<Value>, ordered| Knob {
        name: name.to_owned(),
        values,
        ordered,
        memory: None,
        hardware: true,
    };
    if let Some(clusters) = clusters {
        let values = clusters.into_iter().map(Value::Text).collect();
        knobs.push(hardware("cluster", values, false));
    }
    if let Some(nodes) = nodes {
        knobs.push(hardware("nodes", nodes.into_iter().map(Value::Integer).collect(), true));
    }
    Ok(knobs)
}

fn knob(name: String, text: KnobText) -> Result<Knob, SpaceError> {
    let place = format!("the knob `{name}`");
    let whole = |value: Value| match value {
        Value::Real(number) => Value::of_number(number),
        other => other,
    };
    let table = match text {
        KnobText::List(values) => KnobTable { values: Some(values), ..KnobTable::default() },
        KnobText::Word(word) if word == "boolean" => {
            KnobTable { values: Some(vec![false.into(), true.into()]), ..KnobTable::default() }
        }
        KnobText::Word(word) => {
            return Err(wrong(
                place,
                format!(
                    "`{word}` is no kind of knob; write `\"boolean\"`, a list of values, or `{{ from = 1, to = 8 }}`"
                ),
            ));
        }
        KnobText::Table(table) => table,
    };
    let values = match (table.values, table.from, table.to) {
        (Some(values), None, None) if table.step.is_none() && table.times.is_none() => {
            values.into_iter().map(whole).collect()
        }
        (None, Some(from), Some(to)) if table.step.is_none() || table.times.is_none() => {
            let range = Range {
                from,
                to,
                step: table.times.or(table.step).unwrap_or(1.0),
                geometric: table.times.is_some(),
            };
            range.values().map_err(|reason| wrong(&*place, reason))?
        }
        _ => {
            return Err(wrong(
                place,
                "give either `values`, or `from` and `to` with at most one of `step` and `times`",
            ));
        }
    };
    let memory = match table.memory.as_deref() {
        None => None,
        Some("increases") => Some(MemoryTrend::Increases),
        Some("decreases") => Some(MemoryTrend::Decreases),
        Some(other) => {
            return Err(wrong(
                place,
                format!("memory = `{other}`: it `increases` or `decreases` along the values"),
            ));
        }
    };
    let ordered =
        table.ordered.unwrap_or_else(|| values.iter().all(|value| !matches!(value, Value::Text(_))));
    Ok(Knob { name, values, ordered, memory, hardware: false })
}

fn batch(
    text: &BatchText,
    formulas: &mut Vec<Derived>,
    constraints: &mut Vec<Constraint>,
) -> Result<Batch, SpaceError> {
    let read = |name: &str, formula: &Formula| expression(&format!("`{name}` in [batch]"), &formula.text());
    let batch = Batch {
        global: read("global", &text.global)?,
        sequence: text.sequence.as_ref().map(|formula| read("sequence", formula)).transpose()?,
        micro: read("micro", &text.micro)?,
        data_parallel: read("data_parallel", &text.data_parallel)?,
    };
    formulas
        .push(Derived { name: GLOBAL_BATCH.to_owned(), value: expression("[batch]", &batch.global.source)? });
    formulas.push(Derived {
        name: MICRO_BATCHES.to_owned(),
        value: expression("[batch]", &batch.micro_batches())?,
    });
    constraints.push(Constraint {
        rule: expression("[batch]", &batch.divides())?,
        because: "the global batch divides evenly among data-parallel ranks and micro-batches".to_owned(),
    });
    Ok(batch)
}

fn command(words: Words) -> Result<Vec<Template>, SpaceError> {
    let place = "the command";
    let words = match words {
        Words::Line(line) => template::words(&line).map_err(|reason| wrong(place, reason))?,
        Words::List(words) => words,
    };
    if words.is_empty() {
        return Err(wrong(place, "it is empty"));
    }
    words.iter().map(|word| Template::read(word).map_err(|reason| wrong(place, reason))).collect()
}

fn ranks(text: &str) -> Result<Template, SpaceError> {
    Template::read(text).map_err(|reason| wrong("`ranks` in [trial]", reason))
}

fn arguments(texts: Ordered<Formula>) -> Result<Vec<(String, Expression)>, SpaceError> {
    in_order(texts)
        .map(|(name, formula)| {
            let value = expression(&format!("`{name}` in [arguments]"), &formula.text())?;
            Ok((name, value))
        })
        .collect()
}

fn environment(texts: Ordered<Formula>) -> Result<Vec<(String, Template)>, SpaceError> {
    in_order(texts)
        .map(|(name, formula)| {
            let place = format!("`{name}` in [environment]");
            let value = Template::read(&formula.text()).map_err(|reason| wrong(place, reason))?;
            Ok((name, value))
        })
        .collect()
}

fn objectives(text: Option<OneOrMore>) -> Result<Vec<Objective>, SpaceError> {
    let names = match text {
        None => vec![Objective::StepTime.name().to_owned()],
        Some(OneOrMore::One(name)) => vec![name],
        Some(OneOrMore::More(names)) => names,
    };
    let one = |name: &String| {
        Objective::ALL.into_iter().find(|objective| objective.name() == name).ok_or_else(|| {
            let all = Objective::ALL.map(|objective| format!("`{}`", objective.name())).join(", ");
            wrong("objective", format!("`{name}` cannot be sought; choose from {all}"))
        })
    };
    if names.is_empty() {
        return Err(wrong("objective", "the list is empty"));
    }
    names.iter().map(one).collect()
}

fn rules(texts: Vec<RuleText>, knobs: &[Knob]) -> Result<Vec<Rule>, SpaceError> {
    let mut rules = Vec::new();
    for (index, knob) in knobs.iter().enumerate() {
        let Some(trend) = knob.memory else { continue };
        let reach = match trend {
            MemoryTrend::Increases => Reach::Later,
            MemoryTrend::Decreases => Reach::Earlier,
        };
        let name = format!("out of memory with less needed by `{}`", knob.name);
        rules.push(Rule {
            name,
            knob: index,
            reach,
            when: When::OutOfMemory,
            effect: Effect::OutOfMemory,
            condition: None,
        });
    }
    for text in texts {
        rules.push(rule(text, knobs)?);
    }
    Ok(rules)
}

fn rule(text: RuleText, knobs: &[Knob]) -> Result<Rule, SpaceError> {
    let place = format!("the pruning rule `{}`", text.name);
    let knob = knobs.iter().position(|knob| knob.name == text.knob);
    let knob = knob.ok_or_else(|| wrong(&*place, format!("there is no knob `{}`", text.knob)))?;
    let position = |value: &Value| {
        let found = knobs[knob].values.iter().position(|other| other == value);
        found.ok_or_else(|| wrong(&*place, format!("the knob `{}` has no value {value}", text.knob)))
    };
    let reach = match (&text.tried, &text.then, text.others.as_deref()) {
        (Some(tried), Some(then), None) => Reach::Pair(position(tried)?, position(then)?),
        (None, None, Some("later")) => Reach::Later,
        (None, None, Some("earlier")) => Reach::Earlier,
        _ => {
            return Err(wrong(
                place,
                "give either `tried` and `then` (two values), or `others` (`later` or `earlier`)",
            ));
        }
    };
    let when = match text.when.as_str() {
        "out_of_memory" => When::OutOfMemory,
        "fits" => When::Fits,
        other => return Err(wrong(place, format!("when = `{other}`: write `out_of_memory` or `fits`"))),
    };
    let effect = match text.effect.as_str() {
        "out_of_memory" => Effect::OutOfMemory,
        "same" => Effect::Same,
        "no_better" => Effect::NoBetter,
        other => {
            return Err(wrong(
                place,
                format!("effect = `{other}`: write `out_of_memory`, `same` or `no_better`"),
            ));
        }
    };
    let condition = text.condition.as_deref().map(|condition| expression(&place, condition)).transpose()?;
    Ok(Rule { name: text.name, knob, reach, when, effect, condition })
}

fn replicas(text: ReplicasText) -> Result<Replicas, SpaceError> {
    let place = "`replicas` in [hardware]";
    Ok(Replicas {
        apart: expression(place, &text.apart.text())?,
        condition: text.condition.as_deref().map(|text| expression(place, text)).transpose()?,
        degree: text.degree,
    })
}

fn sampling(text: &SamplingText) -> Result<Sampling, SpaceError> {
    Ok(Sampling {
        first: expression("`first` in [sampling]", &text.first.text())?,
        second: expression("`second` in [sampling]", &text.second.text())?,
    })
}
