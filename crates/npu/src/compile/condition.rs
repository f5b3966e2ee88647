//! Conditions: `||` binds weakest, then `&&`, then `!`, then one comparison of two leaves; parentheses group.

use super::Operand;

/// A condition.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Condition {
    Truth(Operand),
    Compare(Comparison, Operand, Operand),
    Not(Box<Condition>),
    And(Box<Condition>, Box<Condition>),
    Or(Box<Condition>, Box<Condition>),
}

/// How two numbers are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Comparison {
    Lt,
    Le,
    Gt,
    Ge,
    Eq,
    Ne,
}

impl Comparison {
    /// In the order of the words `LT|LE|GT|GE|EQ|NE`.
    pub(crate) const ALL: [Self; 6] = [Self::Lt, Self::Le, Self::Gt, Self::Ge, Self::Eq, Self::Ne];

    pub(crate) fn holds<T: PartialOrd>(self, a: &T, b: &T) -> bool {
        match self {
            Self::Lt => a < b,
            Self::Le => a <= b,
            Self::Gt => a > b,
            Self::Ge => a >= b,
            Self::Eq => a == b,
            Self::Ne => a != b,
        }
    }
}

/// Reads `text`; `leaf` resolves a name or a literal.
pub(super) fn parse(
    text: &str,
    leaf: &mut dyn FnMut(&str) -> Result<Operand, String>,
) -> Result<Condition, String> {
    let tokens = tokens(text)?;
    let mut parser = Parser { tokens: &tokens, at: 0, leaf };
    let condition = parser.or()?;
    match parser.peek() {
        None => Ok(condition),
        Some(left) => {
            Err(format!("`{left}` in `{text}` is not expected; write one comparison between leaves"))
        }
    }
}

fn tokens(text: &str) -> Result<Vec<&str>, String> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let two = ["||", "&&", "==", "!=", "<=", ">="].into_iter().find(|token| rest.starts_with(token));
        let length = if let Some(token) = two {
            token.len()
        } else if rest.starts_with(['!', '<', '>', '(', ')']) {
            1
        } else {
            let signed =
                usize::from(rest.starts_with('-') && starts_leaf(&rest[1..]) && after_operator(&tokens));
            let mut bracket = false;
            let length = rest[signed..]
                .find(|c: char| {
                    bracket = (bracket || c == '[') && c != ']';
                    !(c.is_alphanumeric() || matches!(c, '_' | '.' | '[' | ']') || bracket)
                })
                .unwrap_or(rest.len() - signed);
            if length == 0 {
                let sign = rest.chars().next().unwrap_or(' ');
                return Err(format!(
                    "`{sign}` in `{text}`: conditions take no arithmetic; compute it into a variable first"
                ));
            }
            signed + length
        };
        tokens.push(&rest[..length]);
        rest = rest[length..].trim_start();
    }
    Ok(tokens)
}

fn starts_leaf(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit() || c == '.')
}

fn after_operator(tokens: &[&str]) -> bool {
    tokens.last().is_none_or(|token| token.starts_with(['|', '&', '!', '=', '<', '>', '(']))
}

struct Parser<'a> {
    tokens: &'a [&'a str],
    at: usize,
    leaf: &'a mut dyn FnMut(&str) -> Result<Operand, String>,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<&'a str> {
        self.tokens.get(self.at).copied()
    }

    fn take(&mut self, token: &str) -> bool {
        let found = self.peek() == Some(token);
        self.at += usize::from(found);
        found
    }

    fn or(&mut self) -> Result<Condition, String> {
        let mut left = self.and()?;
        while self.take("||") {
            left = Condition::Or(Box::new(left), Box::new(self.and()?));
        }
        Ok(left)
    }

    fn and(&mut self) -> Result<Condition, String> {
        let mut left = self.not()?;
        while self.take("&&") {
            left = Condition::And(Box::new(left), Box::new(self.not()?));
        }
        Ok(left)
    }

    fn not(&mut self) -> Result<Condition, String> {
        if self.take("!") {
            return Ok(Condition::Not(Box::new(self.not()?)));
        }
        if self.take("(") {
            let inner = self.or()?;
            return if self.take(")") { Ok(inner) } else { Err("a `)` is missing".to_owned()) };
        }
        let left = self.leaf()?;
        let comparison = match self.peek() {
            Some("<") => Comparison::Lt,
            Some("<=") => Comparison::Le,
            Some(">") => Comparison::Gt,
            Some(">=") => Comparison::Ge,
            Some("==") => Comparison::Eq,
            Some("!=") => Comparison::Ne,
            _ => return Ok(Condition::Truth(left)),
        };
        self.at += 1;
        Ok(Condition::Compare(comparison, left, self.leaf()?))
    }

    fn leaf(&mut self) -> Result<Operand, String> {
        let token = self.peek().ok_or("the condition ends early")?;
        self.at += 1;
        (self.leaf)(token)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Condition, String> {
        parse(text, &mut |leaf| {
            leaf.parse().map(Operand::Int).or_else(|_| match leaf {
                "x" => Ok(Operand::Variable(0)),
                "y" => Ok(Operand::Variable(1)),
                other => Err(format!("unknown `{other}`")),
            })
        })
    }

    #[test]
    fn precedence() {
        let x = || Box::new(Condition::Truth(Operand::Variable(0)));
        let y = || Box::new(Condition::Truth(Operand::Variable(1)));
        assert_eq!(read("x || y && x"), Ok(Condition::Or(x(), Box::new(Condition::And(y(), x())))));
        assert_eq!(read("!x && y"), Ok(Condition::And(Box::new(Condition::Not(x())), y())));
        assert_eq!(read("!(x && y)"), Ok(Condition::Not(Box::new(Condition::And(x(), y())))));
        let compare = Condition::Compare(Comparison::Ge, Operand::Variable(0), Operand::Int(-3));
        assert_eq!(read("x >= -3"), Ok(compare));
    }

    #[test]
    fn what_is_refused() {
        let check = |text: &str, part: &str| {
            let error = read(text).unwrap_err();
            assert!(error.contains(part), "`{text}`: {error}");
        };
        check("x + 1 < y", "no arithmetic");
        check("x-1 < y", "no arithmetic");
        check("x % 2 == 0", "no arithmetic");
        check("x < y < 3", "not expected");
        check("x <", "ends early");
        check("z == 1", "unknown `z`");
        check("(x", "`)` is missing");
    }
}
