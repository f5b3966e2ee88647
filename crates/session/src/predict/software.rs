//! The software that ran, from the facts of the trace.

use std::collections::BTreeMap;

use trompe_results::{NamedValue, Software};

use crate::run_facts::RunFacts;

/// Software as the job itself reported it.
pub(super) fn software(facts: &BTreeMap<String, String>, run: &RunFacts) -> Software {
    let fact = |key: &str| facts.get(key).filter(|value| !value.is_empty() && *value != "None").cloned();
    let named = |values: BTreeMap<String, String>| {
        values.into_iter().map(|(name, value)| NamedValue { name, value }).collect()
    };
    // Python, PyTorch and CUDA have fields of their own.
    let versions: Option<BTreeMap<String, String>> =
        facts.get("python.packages").and_then(|text| serde_json::from_str(text).ok());
    let packages = versions.unwrap_or_default().into_iter().filter(|(name, _)| name != "torch").collect();
    let environment = facts.get("environment").and_then(|text| serde_json::from_str(text).ok());
    Software {
        python: fact("python.version"),
        torch: fact("torch.version"),
        cuda: fact("torch.cuda"),
        system: run.system.clone(),
        packages: named(packages),
        environment: named(environment.unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_become_software() {
        let facts = [
            ("python.version", "3.11.7"),
            ("torch.version", "2.15.0+cu132"),
            ("torch.cuda", "None"),
            ("environment", r#"{"OMP_NUM_THREADS":"4"}"#),
            ("python.packages", r#"{"torch":"2.15.0+cu132","triton":"3.6.0"}"#),
        ];
        let facts = facts.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
        let software = software(&facts, &RunFacts::default());
        assert_eq!(software.torch.as_deref(), Some("2.15.0+cu132"));
        assert_eq!(software.cuda, None);
        assert_eq!(software.environment[0].name, "OMP_NUM_THREADS");
        assert_eq!(software.packages.len(), 1);
        assert_eq!(software.packages[0].value, "3.6.0");
    }
}
