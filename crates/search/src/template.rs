//! Words of a command with places for values: `--tensor-model-parallel-size {tp}`, `{gpus // tp}`.
//!
//! A place is an expression in single braces; `{{` and `}}` are the braces themselves. A command is split into words as
//! a shell would before values are put in, so a value with spaces stays one word.

use std::collections::BTreeSet;

use crate::Values;
use crate::expression::Expression;

/// A text with places.
#[derive(Debug)]
pub struct Template {
    /// The text as written.
    pub source: String,
    pieces: Vec<Piece>,
}

#[derive(Debug)]
enum Piece {
    Text(String),
    Place(Expression),
}

impl Template {
    /// Reads a text with places.
    ///
    /// # Errors
    /// What is wrong with it, in one line.
    pub fn read(source: &str) -> Result<Self, String> {
        let mut pieces = Vec::new();
        let mut text = String::new();
        let mut rest = source;
        while let Some(at) = rest.find(['{', '}']) {
            text.push_str(&rest[..at]);
            let brace = &rest[at..=at];
            let after = &rest[at + 1..];
            if let Some(after) = after.strip_prefix(brace) {
                text.push_str(brace);
                rest = after;
            } else if brace == "{" {
                let end = after.find('}').ok_or("a `{` is never closed; write `{{` for the brace itself")?;
                let inside = after[..end].trim();
                if inside.is_empty() {
                    return Err(
                        "there is nothing between `{` and `}`; write `{{}}` for the braces".to_owned()
                    );
                }
                let place = Expression::read(inside).map_err(|error| format!("`{{{inside}}}`: {error}"))?;
                if !text.is_empty() {
                    pieces.push(Piece::Text(std::mem::take(&mut text)));
                }
                pieces.push(Piece::Place(place));
                rest = &after[end + 1..];
            } else {
                return Err("a `}` was never opened; write `}}` for the brace itself".to_owned());
            }
        }
        text.push_str(rest);
        if !text.is_empty() {
            pieces.push(Piece::Text(text));
        }
        Ok(Self { source: source.to_owned(), pieces })
    }

    /// The names in its places.
    #[must_use]
    pub fn names(&self) -> BTreeSet<String> {
        let places = self.pieces.iter().filter_map(|piece| match piece {
            Piece::Text(_) => None,
            Piece::Place(place) => Some(&place.names),
        });
        places.flatten().cloned().collect()
    }

    /// The text with values in its places. A place whose value is `none` is empty.
    ///
    /// # Errors
    /// Which place has no value, and why.
    pub fn fill(&self, values: &Values) -> Result<String, String> {
        let mut text = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Text(piece) => text.push_str(piece),
                Piece::Place(place) => {
                    let value = place.evaluate(values);
                    let value = value.map_err(|error| format!("`{{{}}}`: {error}", place.source))?;
                    text.extend(value.map(|value| value.to_string()));
                }
            }
        }
        Ok(text)
    }
}

/// Splits a command into words as a shell does; places stay whole.
///
/// # Errors
/// When a quote or a brace is never closed.
pub(crate) fn words(command: &str) -> Result<Vec<String>, String> {
    // Places may hold spaces and quotes, which must not split: they are put aside under marks of private use.
    const MARK: char = '\u{f0000}';
    let mut kept = Vec::new();
    let mut text = String::new();
    let mut rest = command;
    while let Some(at) = rest.find('{') {
        text.push_str(&rest[..at]);
        let length = if rest[at + 1..].starts_with('{') {
            2
        } else {
            rest[at..].find('}').ok_or("a `{` is never closed; write `{{` for the brace itself")? + 1
        };
        text.push(MARK);
        kept.push(&rest[at..at + length]);
        rest = &rest[at + length..];
    }
    text.push_str(rest);
    let words = shell_words::split(&text).map_err(|_| "a quote is never closed".to_owned())?;
    let mut kept = kept.into_iter();
    let restored = words.iter().map(|word| {
        let mut whole = String::new();
        for letter in word.chars() {
            if letter == MARK { whole.extend(kept.next()) } else { whole.push(letter) }
        }
        whole
    });
    Ok(restored.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Value;

    fn values() -> Values {
        let pairs: [(&str, Value); 3] =
            [("tp", Value::Integer(4)), ("name", Value::from("a b")), ("sp", Value::Boolean(true))];
        pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }

    #[track_caller]
    fn check(source: &str, expect: &[&str]) {
        let words = words(source).and_then(|words| {
            words.iter().map(|word| Template::read(word)?.fill(&values())).collect::<Result<Vec<_>, _>>()
        });
        assert_eq!(
            words.as_deref(),
            Ok(expect.iter().map(ToString::to_string).collect::<Vec<_>>().as_slice())
        );
    }

    #[test]
    fn values_are_put_in_places() {
        check("python x.py --tp {tp} --name={name}", &["python", "x.py", "--tp", "4", "--name=a b"]);
        check("x 'a {tp} b' {tp * 2 if sp else 1}", &["x", "a 4 b", "8"]);
        check("x '{{\"tp\": {tp}}}'", &["x", "{\"tp\": 4}"]);
    }

    #[test]
    fn broken_templates_say_what_is_wrong() {
        let check = |source: &str, expect: &str| {
            let error = Template::read(source).unwrap_err();
            assert!(error.contains(expect), "{source}: {error}");
        };
        check("{tp", "never closed");
        check("tp}", "never opened");
        check("{}", "nothing between");
        check("{tp +}", "`{tp +}`");
        assert!(words("a 'b").unwrap_err().contains("quote"));
        assert!(words("a {b").unwrap_err().contains("never closed"));
    }
}
