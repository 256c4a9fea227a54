//! Text of pages that are written.

/// Width of text.
pub(crate) const WIDTH: usize = 118;

/// Text in lines.
pub(crate) fn wrapped(text: &str) -> String {
    let (mut lines, mut length) = (String::new(), 0);
    for word in text.split_whitespace() {
        if length > 0 && length + 1 + word.chars().count() > WIDTH {
            lines.push('\n');
            length = 0;
        } else if length > 0 {
            lines.push(' ');
            length += 1;
        }
        lines.push_str(word);
        length += word.chars().count();
    }
    lines.push('\n');
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_comes_in_lines() {
        assert_eq!(wrapped("a  b\nc"), "a b c\n");
        let long = wrapped(&"word ".repeat(100));
        assert!(long.lines().count() == 5 && long.lines().all(|line| line.len() <= WIDTH && !line.ends_with(' ')));
    }
}
