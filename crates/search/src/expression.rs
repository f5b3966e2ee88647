//! The language of derived values, constraints and templates: Jinja's expressions, as `minijinja` evaluates them.
//!
//! `gpus // (tp * pp)`, `seq_length % tp == 0 or not sequence_parallel`, `8 if large else 4`, `mode in ["a", "b"]`,
//! `min(tp, 8)`. Names are knobs, derived values and facts about the cluster; a name that is none of them is found
//! when the space file is read, before anything runs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::ValueKind;
use minijinja::{Environment, Expression as Compiled, UndefinedBehavior};

use crate::{Value, Values};

static LANGUAGE: LazyLock<Environment<'static>> = LazyLock::new(language);

/// Functions of our own beside the language's.
const FUNCTIONS: [&str; 6] = ["min", "max", "ceil", "floor", "log2", "range"];

fn language() -> Environment<'static> {
    let mut language = Environment::new();
    language.set_undefined_behavior(UndefinedBehavior::Strict);
    let syntax = SyntaxConfig::builder().keep_trailing_newline(true).build();
    language.set_syntax(syntax.expect("Jinja's own marks do not contradict each other"));
    language.add_function("min", |a: f64, b: f64| a.min(b));
    language.add_function("max", |a: f64, b: f64| a.max(b));
    language.add_function("ceil", f64::ceil);
    language.add_function("floor", f64::floor);
    language.add_function("log2", f64::log2);
    language
}

/// An expression that has been read.
#[derive(Debug)]
pub struct Expression {
    /// The text as written.
    pub source: String,
    compiled: Compiled<'static, 'static>,
    /// Names that it mentions.
    pub names: BTreeSet<String>,
}

impl Expression {
    /// Reads an expression.
    ///
    /// # Errors
    /// What is wrong with it, in one line.
    pub fn read(source: &str) -> Result<Self, String> {
        let compiled = LANGUAGE.compile_expression_owned(source.to_owned()).map_err(|error| line(&error))?;
        let mut names: BTreeSet<String> = compiled.undeclared_variables(false).into_iter().collect();
        names.retain(|name| !FUNCTIONS.contains(&name.as_str()));
        Ok(Self { source: source.to_owned(), compiled, names })
    }

    /// Its value; `None` for `none`.
    ///
    /// # Errors
    /// Why it has none (a division by zero, text where a number belongs), in one line.
    pub fn evaluate(&self, values: &Values) -> Result<Option<Value>, String> {
        // Only what it mentions: turning all values into the language's own takes most of the time otherwise.
        let needed = self.names.iter().filter_map(|name| Some((name, values.get(name)?)));
        let context = context(needed);
        let value = self.compiled.eval(context).map_err(|error| line(&error))?;
        match value.kind() {
            ValueKind::None => Ok(None),
            ValueKind::Bool => Ok(Some(Value::Boolean(value.is_true()))),
            ValueKind::Number => {
                let number = f64::try_from(value.clone()).map_err(|error| line(&error))?;
                match i64::try_from(value) {
                    Ok(whole) => Ok(Some(Value::Integer(whole))),
                    Err(_) if number.is_finite() => Ok(Some(Value::of_number(number))),
                    Err(_) => Err("it divides by zero".to_owned()),
                }
            }
            ValueKind::String => Ok(value.as_str().map(Value::from)),
            other => Err(format!("its value is a {other}; a number, a boolean or text is needed")),
        }
    }

    /// Whether it holds.
    ///
    /// # Errors
    /// Why that cannot be said.
    pub fn holds(&self, values: &Values) -> Result<bool, String> {
        match self.evaluate(values)? {
            Some(Value::Boolean(value)) => Ok(value),
            None => Ok(false),
            Some(value) => Err(format!("its value is {value}, not true or false")),
        }
    }
}

/// Values as the language has them.
fn context<'a>(values: impl IntoIterator<Item = (&'a String, &'a Value)>) -> minijinja::Value {
    let pairs = values.into_iter().map(|(name, value)| {
        let value = match value {
            Value::Boolean(value) => minijinja::Value::from(*value),
            Value::Integer(value) => minijinja::Value::from(*value),
            Value::Real(value) => minijinja::Value::from(*value),
            Value::Text(value) => minijinja::Value::from(value.as_str()),
        };
        (name.clone(), value)
    });
    pairs.collect::<BTreeMap<String, minijinja::Value>>().into()
}

/// Fills `text`, a Jinja template (`{{ tp }}`, `{% if sp %}…{% endif %}`).
///
/// # Errors
/// What is wrong with the template.
pub(crate) fn fill(text: &str, values: &Values) -> Result<String, String> {
    LANGUAGE.render_str(text, context(values)).map_err(|error| line(&error))
}

/// The names that a Jinja template mentions.
///
/// # Errors
/// What is wrong with the template.
pub(crate) fn names_in(text: &str) -> Result<BTreeSet<String>, String> {
    let template = LANGUAGE.template_from_str(text).map_err(|error| line(&error))?;
    let mut names: BTreeSet<String> = template.undeclared_variables(false).into_iter().collect();
    names.retain(|name| !FUNCTIONS.contains(&name.as_str()));
    Ok(names)
}

/// An error without the place in a file that expressions do not have.
fn line(error: &minijinja::Error) -> String {
    let text = error.detail().map_or_else(|| error.kind().to_string(), str::to_owned);
    text.lines().next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values() -> Values {
        let pairs: [(&str, Value); 5] = [
            ("tp", Value::Integer(4)),
            ("gpus", Value::Integer(16)),
            ("sp", Value::Boolean(true)),
            ("mode", Value::from("full")),
            ("zero", Value::Integer(0)),
        ];
        pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }

    #[track_caller]
    fn check(source: &str, expect: &str) {
        let found = match Expression::read(source).and_then(|expression| expression.evaluate(&values())) {
            Ok(Some(value)) => value.to_string(),
            Ok(None) => "none".to_owned(),
            Err(error) => format!("error: {error}"),
        };
        assert_eq!(found, expect, "{source}");
    }

    #[test]
    fn expressions_have_the_values_of_their_language() {
        check("gpus / tp", "4");
        check("gpus // 3", "5");
        check("gpus / 32", "0.5");
        check("gpus % tp == 0 and sp", "true");
        check("mode in ['full', 'none']", "true");
        check("tp if sp else none", "4");
        check("none if sp else 1", "none");
        check("min(tp, 2)", "2");
        check("'--x ' ~ tp", "--x 4");
    }

    #[test]
    fn what_has_no_value_says_why() {
        for source in ["gpus / zero", "gpus // zero", "tp +", "missing + 1", "[1, 2]"] {
            let result = Expression::read(source).and_then(|expression| expression.evaluate(&values()));
            assert!(result.is_err(), "{source}: {result:?}");
        }
        assert!(Expression::read("tp + 1").unwrap().holds(&values()).is_err());
    }

    #[test]
    fn names_are_those_of_knobs_alone() {
        let names = Expression::read("min(tp, max(pp, 2)) * log2(dp)").unwrap().names;
        assert_eq!(names.into_iter().collect::<Vec<_>>(), ["dp", "pp", "tp"]);
        assert_eq!(
            names_in("{% if sp %}{{ tp }}{% endif %}").unwrap(),
            BTreeSet::from(["sp".into(), "tp".into()])
        );
    }
}
