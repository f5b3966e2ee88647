//! What the sections of the text are written on: knows width and colours, keeps lines within them.

use textwrap::core::display_width;

use crate::clean;
use crate::quantity::NO_BREAK;
use crate::text::Style;

/// A colour by meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ink {
    Plain,
    Strong,
    Faint,
    Good,
    Warning,
    Bad,
}

impl Ink {
    /// The "select graphic rendition" parameters (ECMA-48).
    const fn code(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Strong => "1",
            Self::Faint => "2",
            Self::Good => "1;32",
            Self::Warning => "1;33",
            Self::Bad => "1;31",
        }
    }
}

/// Text that grows line by line.
#[derive(Debug)]
pub(crate) struct Paper {
    out: String,
    color: bool,
    width: usize,
}

/// Columns of the names at the left of a fact.
const LABEL: usize = 16;

impl Paper {
    pub(crate) fn new(style: Style) -> Self {
        let width = style.width.clamp(Style::NARROWEST, Style::WIDEST);
        Self { out: String::new(), color: style.color, width }
    }

    pub(crate) const fn width(&self) -> usize {
        self.width
    }

    pub(crate) fn blank(&mut self) {
        self.out.push('\n');
    }

    /// A line as it is; the caller keeps it within the width. Spaces that kept a number and its unit together have
    /// done their work and become plain ones.
    pub(crate) fn line(&mut self, text: &str) {
        self.out.push_str(&text.trim_end().replace(NO_BREAK, " "));
        self.out.push('\n');
    }

    /// A blank line and a title.
    pub(crate) fn section(&mut self, title: &str) {
        self.blank();
        let title = self.paint(Ink::Strong, title);
        self.line(&title);
    }

    /// A name and a fact about it; the fact is wrapped under itself.
    pub(crate) fn fact(&mut self, name: &str, fact: &str) {
        let label = format!("  {name:<LABEL$}");
        self.wrapped(&label, &" ".repeat(LABEL + 2), fact);
    }

    /// A paragraph: `first` before its first line, `rest` before the others. The text is cleaned and wrapped.
    pub(crate) fn wrapped(&mut self, first: &str, rest: &str, text: &str) {
        let text = clean::line(text);
        if text.is_empty() {
            return;
        }
        let room = self.width.saturating_sub(display_width(first)).max(20);
        // Prefixes may hold colours, which have no width: they are put on after the wrapping.
        for (index, line) in textwrap::wrap(&text, room).iter().enumerate() {
            let prefix = if index == 0 { first } else { rest };
            self.line(&format!("{prefix}{line}"));
        }
    }

    /// `text` in a colour, where colours are allowed.
    pub(crate) fn paint(&self, ink: Ink, text: &str) -> String {
        let code = ink.code();
        if self.color && !code.is_empty() { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    pub(crate) fn finish(self) -> String {
        self.out
    }
}

/// `text` cut or filled to exactly `columns`; what is cut is marked by an ellipsis.
pub(crate) fn fit(text: &str, columns: usize) -> String {
    let text = clean::line(text);
    let width = display_width(&text);
    if width <= columns {
        return text + &" ".repeat(columns - width);
    }
    let (mut kept, mut used) = (String::new(), 0);
    for c in text.chars() {
        let wide = display_width(c.encode_utf8(&mut [0; 4]));
        if used + wide + 1 > columns {
            break;
        }
        kept.push(c);
        used += wide;
    }
    kept + "…" + &" ".repeat(columns.saturating_sub(used + 1))
}

/// A bar that fills `share` of `columns` cells, to an eighth of a cell.
pub(crate) fn bar(share: f64, columns: usize) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = (share.clamp(0.0, 1.0) * columns as f64 * 8.0).round() as usize;
    "█".repeat(eighths / 8) + EIGHTHS[eighths % 8]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fitting() {
        let check = |text, columns, expect: &str| assert_eq!(fit(text, columns), expect);
        check("ab", 4, "ab  ");
        check("abcdef", 4, "abc…");
        check("中中中", 4, "中… ");
        check("", 0, "");
    }

    #[test]
    fn bars() {
        assert_eq!(bar(0.5, 4), "██");
        assert_eq!(bar(0.53, 4), "██▏");
        assert_eq!(bar(7.0, 2), "██");
    }

    #[test]
    fn no_line_is_wider_than_asked() {
        let mut paper = Paper::new(Style { color: false, width: 60 });
        paper.fact("name", &"many words ".repeat(30));
        paper.wrapped("  ! ", "    ", &"averyverylongwordwithoutanyspace".repeat(8));
        assert!(paper.finish().lines().all(|line| display_width(line) <= 60));
    }
}
