//! Texts of strangers, made harmless for a terminal and for HTML.

/// `text` on one line and without characters that steer a terminal: each becomes a visible stand-in.
pub(crate) fn line(text: &str) -> String {
    text.chars().map(|c| if is_control(c) { stand_in(c) } else { c }).collect()
}

/// A text as a sentence of its own: a first word of plain small letters gets a capital (an identifier does not).
pub(crate) fn sentence(text: &str) -> String {
    let word = text.split([' ', ',', ':']).next().unwrap_or_default();
    let plain = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase());
    if plain { text[..1].to_ascii_uppercase() + &text[1..] } else { text.to_owned() }
}

/// `text` as the content of an HTML element or of an attribute in double quotes.
pub(crate) fn html(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// JSON as the content of a `<script>` element: nothing in it can end the element or start a comment.
pub(crate) fn script_json(json: &str) -> String {
    // Outside of its strings JSON has none of these characters, and inside of them an escape means the same.
    json.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

/// Whether a terminal may act on `c`: the C0 and C1 controls, and the marks that turn the direction of writing.
fn is_control(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn stand_in(c: char) -> char {
    match c {
        '\t' | '\n' | '\r' => ' ',
        // Unicode has a picture of every C0 control.
        '\0'..='\u{1f}' => char::from_u32(0x2400 + c as u32).unwrap_or('\u{fffd}'),
        _ => '\u{fffd}',
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminals() {
        let check = |text, expect: &str| assert_eq!(line(text), expect);
        check("plain ünïcode 中", "plain ünïcode 中");
        check("two\nlines\tand\r", "two lines and ");
        check("\x1b[31mred", "\u{241b}[31mred");
        check("\u{9b}2J", "\u{fffd}2J");
        check("\u{202e}gpj.exe", "\u{fffd}gpj.exe");
    }

    #[test]
    fn sentences() {
        let check = |text, expect: &str| assert_eq!(sentence(text), expect);
        check("run again, or not", "Run again, or not");
        check("stop", "Stop");
        check("train.py failed", "train.py failed");
        check("`--host` is off", "`--host` is off");
        check("ünder", "ünder");
        check("", "");
    }

    #[test]
    fn elements() {
        assert_eq!(html(r#"<a href="x" b='y'>&"#), "&lt;a href=&quot;x&quot; b=&#39;y&#39;&gt;&amp;");
    }

    #[test]
    fn data_blocks() {
        let json = script_json(r#"{"a":"</script><!--&"}"#);
        assert!(!json.contains(['<', '>', '&']), "{json}");
        let value: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(value["a"], "</script><!--&");
    }
}
