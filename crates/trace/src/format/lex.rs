//! Tokens of the C expressions in a `print fmt`.
//!
//! Names, numbers with their suffixes, character and string literals with escapes, operators. Not supported: comments and
//! floating point, which format texts do not have.

use super::ctype::Int;

/// One token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Token {
    /// An identifier or keyword.
    Name(String),
    /// An integer with its C type.
    Number(u64, Int),
    /// A string literal, unescaped. Neighbouring literals are one token.
    Text(Vec<u8>),
    /// An operator or a bracket.
    Op(&'static str),
}

/// Longer ones first: the first that fits is taken.
const OPERATORS: &[&str] = &[
    "...", "<<", ">>", "<=", ">=", "==", "!=", "&&", "||", "->", "(", ")", "[", "]", "{", "}", ",", "?", ":", "+", "-",
    "*", "/", "%", "&", "|", "^", "~", "!", "<", ">", "=", ".", ";",
];

/// Splits `text` into tokens. `long_size` decides the type of numbers with an `L`.
pub fn tokens(text: &str, long_size: u8) -> Result<Vec<Token>, String> {
    let bytes = text.as_bytes();
    let mut out = Vec::new();
    let mut at = 0;
    while let Some(&c) = bytes.get(at) {
        match c {
            _ if c.is_ascii_whitespace() => at += 1,
            b'"' => {
                let (text, end) = string(bytes, at + 1)?;
                match out.last_mut() {
                    Some(Token::Text(before)) => before.extend(text),
                    _ => out.push(Token::Text(text)),
                }
                at = end;
            }
            b'\'' => {
                let (value, len) = match bytes.get(at + 1..).unwrap_or_default() {
                    [b'\\', c, b'\'', ..] => (escape(*c), 4),
                    [c, b'\'', ..] => (*c, 3),
                    _ => return Err("an unterminated character literal".into()),
                };
                out.push(Token::Number(u64::from(value), Int::INT));
                at += len;
            }
            _ if c.is_ascii_digit() => {
                let len = word_length(&bytes[at..]);
                out.push(number(&text[at..at + len], long_size)?);
                at += len;
            }
            _ if c.is_ascii_alphabetic() || c == b'_' => {
                let len = word_length(&bytes[at..]);
                out.push(Token::Name(text[at..at + len].to_string()));
                at += len;
            }
            _ => {
                let mut fitting = OPERATORS.iter().filter(|op| op.as_bytes()[0] == c);
                let op = fitting.find(|op| bytes[at..].starts_with(op.as_bytes()));
                let op = op.ok_or_else(|| format!("unexpected character {:?}", char::from(c)))?;
                out.push(Token::Op(op));
                at += op.len();
            }
        }
    }
    Ok(out)
}

fn word_length(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|b| b.is_ascii_alphanumeric() || **b == b'_').count()
}

/// Reads a string literal whose first character is at `start`. Gives its characters and the index behind it.
fn string(bytes: &[u8], start: usize) -> Result<(Vec<u8>, usize), String> {
    let mut out = Vec::new();
    let mut at = start;
    loop {
        match bytes.get(at) {
            Some(b'"') => return Ok((out, at + 1)),
            Some(b'\\') => {
                let Some(&c) = bytes.get(at + 1) else { break };
                out.push(escape(c));
                at += 2;
            }
            Some(&c) => {
                out.push(c);
                at += 1;
            }
            None => break,
        }
    }
    Err("an unterminated string literal".into())
}

fn escape(c: u8) -> u8 {
    match c {
        b'n' => b'\n',
        b't' => b'\t',
        b'r' => b'\r',
        b'0' => 0,
        c => c,
    }
}

/// A literal such as `0x10u` or `1UL`. Its type is the first that holds it, as C has it.
fn number(word: &str, long_size: u8) -> Result<Token, String> {
    let lower = word.to_ascii_lowercase();
    let (radix, digits) = match lower.strip_prefix("0x") {
        Some(hex) => (16, hex),
        None if lower.starts_with('0') && lower.len() > 1 => (8, &lower[1..]),
        None => (10, lower.as_str()),
    };
    let end = digits.find(|c: char| !c.is_digit(radix)).unwrap_or(digits.len());
    let (digits, suffix) = digits.split_at(end);
    let value = if digits.is_empty() && radix == 8 { Ok(0) } else { u64::from_str_radix(digits, radix) };
    let value = value.map_err(|_| format!("`{word}` is not a 64-bit number"))?;
    let unsigned = suffix.contains('u');
    let bits = match suffix.trim_matches('u') {
        "" => 32,
        "l" => long_size * 8,
        "ll" => 64,
        _ => return Err(format!("`{word}` is not a number")),
    };
    let fits = |bits: u8, signed: bool| bits == 64 && !signed || value >> (bits - u8::from(signed)) == 0;
    let mut types = [32, 64].into_iter().filter(|&b| b >= bits).flat_map(|bits| [(bits, true), (bits, false)]);
    // A decimal literal without `u` never becomes unsigned, unless nothing else holds it.
    let allowed = |signed: bool| if unsigned { !signed } else { signed || radix != 10 };
    let found = types.find(|&(bits, signed)| allowed(signed) && fits(bits, signed));
    let (bits, signed) = found.unwrap_or((64, false));
    Ok(Token::Number(value, Int { bits, signed }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_c_types() {
        let of = |word| match number(word, 8) {
            Ok(Token::Number(value, int)) => (value, int.bits, int.signed),
            other => panic!("{other:?}"),
        };
        assert_eq!(of("0"), (0, 32, true));
        assert_eq!(of("017"), (15, 32, true));
        assert_eq!(of("0x0010u"), (16, 32, false));
        assert_eq!(of("1UL"), (1, 64, false));
        assert_eq!(of("0xffffffff"), (0xffff_ffff, 32, false));
        assert_eq!(of("4294967295"), (0xffff_ffff, 64, true));
        assert_eq!(of("8ull"), (8, 64, false));
        assert_eq!(number("1L", 4).unwrap(), Token::Number(1, Int::INT));
        assert!(number("12abc", 8).is_err());
        assert!(number("0x1ffffffffffffffff", 8).is_err());
    }

    #[test]
    fn strings_join_and_unescape() {
        let text = |t: &str| vec![Token::Text(t.as_bytes().to_vec())];
        assert_eq!(tokens(r#""a\n" "b\"c\"""#, 8).unwrap(), text("a\nb\"c\""));
        assert!(tokens("\"abc", 8).is_err());
        assert!(tokens("a @ b", 8).is_err());
        assert_eq!(tokens("'x'", 8).unwrap(), [Token::Number(120, Int::INT)]);
    }
}
