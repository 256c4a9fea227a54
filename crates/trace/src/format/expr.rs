//! The C expressions that are the arguments of a `print fmt`, as trees.
//!
//! Covers what the kernel's TRACE_EVENT headers of 2.6.36 to 6.18 leave in format texts: `REC->field`, casts, sizeof,
//! all operators that compute a value, conditional expressions, array indices, calls, and `{value, "word"}` lists.
//! Not supported: assignment, the comma operator, structure members. Depth is limited, so no text overflows the stack.

use super::ctype::Int;
use super::lex::{Token, tokens};

/// Expressions nested deeper than this are refused; the deepest of Linux 6.18 (GFP flags) nests 30 levels.
const MAX_DEPTH: u32 = 200;

/// One expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expr {
    /// An integer literal.
    Number(u64, Int),
    /// A string literal.
    Text(Vec<u8>),
    /// `REC->name`.
    Field(String),
    /// Any other identifier: an enumerator the kernel did not resolve, or the argument of `__get_str`.
    Name(String),
    /// `(type) value`; the words of the type, `*` among them.
    Cast(String, Box<Expr>),
    /// `sizeof(type)`.
    SizeOf(String),
    /// `-`, `~`, `!`, `*` or `&` before a value.
    Unary(&'static str, Box<Expr>),
    /// An operator between two values.
    Binary(&'static str, Box<Expr>, Box<Expr>),
    /// `condition ? then : otherwise`.
    Cond(Box<Expr>, Box<Expr>, Box<Expr>),
    /// `array[index]`.
    Index(Box<Expr>, Box<Expr>),
    /// `name(arguments)`.
    Call(String, Vec<Expr>),
    /// `{value, "word"}`.
    List(Vec<Expr>),
}

/// A parsed `print fmt`: the format string and its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrintText {
    /// The format string, unescaped.
    pub format: Vec<u8>,
    /// The arguments, in order.
    pub arguments: Vec<Expr>,
}

/// Parses what follows `print fmt:`.
pub fn print_text(text: &str, long_size: u8) -> Result<PrintText, String> {
    let mut parser = Parser { tokens: tokens(text, long_size)?.into(), depth: 0 };
    let Some(Token::Text(format)) = parser.tokens.pop_front() else {
        return Err("print fmt does not begin with a string".into());
    };
    let mut arguments = Vec::new();
    while parser.eat(",") {
        arguments.push(parser.expression()?.0);
    }
    match parser.tokens.front() {
        None => Ok(PrintText { format, arguments }),
        Some(token) => Err(format!("unexpected {}", describe(token))),
    }
}

/// Words that only types have.
const TYPE_WORDS: &[&str] =
    &["unsigned", "signed", "const", "struct", "union", "enum", "void", "char", "short", "int", "long", "volatile"];

/// An expression and the depth of its tree.
type Deep = (Expr, u32);

struct Parser {
    tokens: std::collections::VecDeque<Token>,
    depth: u32,
}

impl Parser {
    fn eat(&mut self, op: &str) -> bool {
        let found = self.at(op);
        if found {
            self.tokens.pop_front();
        }
        found
    }

    fn at(&self, op: &str) -> bool {
        matches!(self.tokens.front(), Some(Token::Op(o)) if *o == op)
    }

    fn expect(&mut self, op: &str) -> Result<(), String> {
        if self.eat(op) {
            return Ok(());
        }
        Err(match self.tokens.front() {
            Some(token) => format!("`{op}` expected, found {}", describe(token)),
            None => format!("`{op}` expected at the end"),
        })
    }

    /// A whole expression, conditional ones included.
    fn expression(&mut self) -> Result<Deep, String> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(TOO_DEEP.into());
        }
        let condition = self.binary(0)?;
        let result = if self.eat("?") {
            let then = self.expression()?;
            self.expect(":")?;
            let otherwise = self.expression()?;
            let depth = deeper(&[condition.1, then.1, otherwise.1])?;
            (Expr::Cond(Box::new(condition.0), Box::new(then.0), Box::new(otherwise.0)), depth)
        } else {
            condition
        };
        self.depth -= 1;
        Ok(result)
    }

    /// Operators that bind at least as tightly as `least`.
    fn binary(&mut self, least: u8) -> Result<Deep, String> {
        let mut left = self.unary()?;
        while let Some(&Token::Op(op)) = self.tokens.front() {
            let Some(strength) = strength(op).filter(|&s| s >= least) else { break };
            self.tokens.pop_front();
            let right = self.binary(strength + 1)?;
            let depth = deeper(&[left.1, right.1])?;
            left = (Expr::Binary(op, Box::new(left.0), Box::new(right.0)), depth);
        }
        Ok(left)
    }

    fn unary(&mut self) -> Result<Deep, String> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(TOO_DEEP.into());
        }
        let result = self.prefixed()?;
        self.depth -= 1;
        Ok(result)
    }

    fn prefixed(&mut self) -> Result<Deep, String> {
        for op in ["-", "~", "!", "*", "&"] {
            if self.eat(op) {
                let (operand, depth) = self.unary()?;
                return Ok((Expr::Unary(op, Box::new(operand)), deeper(&[depth])?));
            }
        }
        if self.eat("+") {
            return self.unary();
        }
        if self.at("(")
            && let Some((type_name, count)) = self.cast()
        {
            self.tokens.drain(..count);
            let (operand, depth) = self.unary()?;
            return Ok((Expr::Cast(type_name, Box::new(operand)), deeper(&[depth])?));
        }
        self.postfixed()
    }

    /// If a cast stands here: its type and the number of its tokens.
    fn cast(&self) -> Option<(String, usize)> {
        let mut words: Vec<&str> = Vec::new();
        let mut end = None;
        for (i, token) in self.tokens.iter().enumerate().skip(1) {
            match token {
                Token::Name(word) => words.push(word),
                Token::Op("*") if !words.is_empty() => words.push("*"),
                Token::Op(")") if !words.is_empty() => {
                    end = Some(i + 1);
                    break;
                }
                _ => return None,
            }
        }
        let count = end?;
        let certain = words.len() > 1 || TYPE_WORDS.contains(&words[0]) || super::ctype::int_of(words[0], 8).is_some();
        // `(name) x` is a cast, `(NAME) | x` is not; `(name) -x` and the like are read as operators.
        let operand = matches!(
            self.tokens.get(count),
            Some(Token::Name(_) | Token::Number(..) | Token::Text(_) | Token::Op("(" | "~" | "!"))
        );
        let types = words.iter().all(|w| *w != "REC");
        (types && (certain || operand)).then(|| (words.join(" "), count))
    }

    fn postfixed(&mut self) -> Result<Deep, String> {
        let (mut value, mut depth) = self.primary()?;
        loop {
            if self.eat("[") {
                let (index, index_depth) = self.expression()?;
                self.expect("]")?;
                depth = deeper(&[depth, index_depth])?;
                value = Expr::Index(Box::new(value), Box::new(index));
            } else if self.eat("->") {
                let name = self.name()?;
                match value {
                    Expr::Name(record) if record == "REC" => value = Expr::Field(name),
                    _ => return Err(format!("`->{name}` of something that is not the record")),
                }
            } else if self.at(".") {
                return Err("members of structures are not supported".into());
            } else if self.at("(") {
                let Expr::Name(function) = value else { return Err("a call of something that is not a name".into()) };
                self.tokens.pop_front();
                let (arguments, arguments_depth) = self.arguments(")")?;
                depth = arguments_depth;
                value = Expr::Call(function, arguments);
            } else {
                return Ok((value, depth));
            }
        }
    }

    /// Expressions or lists up to `close`; a comma before `close` is allowed.
    fn arguments(&mut self, close: &str) -> Result<(Vec<Expr>, u32), String> {
        let mut all = Vec::new();
        let mut depths = vec![0];
        while !self.eat(close) {
            if !all.is_empty() {
                self.expect(",")?;
                if self.eat(close) {
                    break;
                }
            }
            let (expr, depth) = if self.eat("{") {
                self.depth += 1;
                if self.depth > MAX_DEPTH {
                    return Err(TOO_DEEP.into());
                }
                let (list, depth) = self.arguments("}")?;
                self.depth -= 1;
                (Expr::List(list), depth)
            } else {
                self.expression()?
            };
            all.push(expr);
            depths.push(depth);
        }
        Ok((all, deeper(&depths)?))
    }

    fn primary(&mut self) -> Result<Deep, String> {
        if self.eat("(") {
            let inner = self.expression()?;
            self.expect(")")?;
            return Ok(inner);
        }
        match self.tokens.pop_front() {
            Some(Token::Number(value, int)) => Ok((Expr::Number(value, int), 1)),
            Some(Token::Text(text)) => Ok((Expr::Text(text), 1)),
            Some(Token::Name(name)) if name == "sizeof" => {
                let Some((type_name, count)) = self.type_in_brackets() else {
                    return Err("sizeof of something that is not a type name".into());
                };
                self.tokens.drain(..count);
                Ok((Expr::SizeOf(type_name), 1))
            }
            Some(Token::Name(name)) => Ok((Expr::Name(name), 1)),
            Some(token) => Err(format!("a value expected, found {}", describe(&token))),
            None => Err("a value expected at the end".into()),
        }
    }

    /// `(type)` as it follows `sizeof`: the type and the number of tokens.
    fn type_in_brackets(&self) -> Option<(String, usize)> {
        let end = self.tokens.iter().position(|t| *t == Token::Op(")"))?;
        if !self.at("(") || end < 2 {
            return None;
        }
        let words = self.tokens.iter().take(end).skip(1).map(|token| match token {
            Token::Name(word) => Some(word.as_str()),
            Token::Op("*") => Some("*"),
            _ => None,
        });
        Some((words.collect::<Option<Vec<_>>>()?.join(" "), end + 1))
    }

    fn name(&mut self) -> Result<String, String> {
        match self.tokens.pop_front() {
            Some(Token::Name(name)) => Ok(name),
            _ => Err("a field name expected".into()),
        }
    }
}

const TOO_DEEP: &str = "an expression nested too deeply";

/// Depth of a tree whose root has children of these depths.
fn deeper(children: &[u32]) -> Result<u32, String> {
    let depth = children.iter().max().copied().unwrap_or(0) + 1;
    if depth > MAX_DEPTH { Err(TOO_DEEP.into()) } else { Ok(depth) }
}

/// How tightly a binary operator binds.
fn strength(op: &str) -> Option<u8> {
    Some(match op {
        "||" => 1,
        "&&" => 2,
        "|" => 3,
        "^" => 4,
        "&" => 5,
        "==" | "!=" => 6,
        "<" | ">" | "<=" | ">=" => 7,
        "<<" | ">>" => 8,
        "+" | "-" => 9,
        "*" | "/" | "%" => 10,
        _ => return None,
    })
}

fn describe(token: &Token) -> String {
    match token {
        Token::Name(name) => format!("`{name}`"),
        Token::Number(value, _) => format!("`{value}`"),
        Token::Text(_) => "a string".into(),
        Token::Op(op) => format!("`{op}`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> Result<Expr, String> {
        let mut arguments = print_text(&format!("\"\", {text}"), 8)?.arguments;
        assert_eq!(arguments.len(), 1);
        Ok(arguments.remove(0))
    }

    /// Fully bracketed text.
    fn show(e: &Expr) -> String {
        match e {
            Expr::Number(n, _) => n.to_string(),
            Expr::Text(t) => format!("{:?}", String::from_utf8_lossy(t)),
            Expr::Field(f) => format!("@{f}"),
            Expr::Name(n) => n.clone(),
            Expr::Cast(t, e) => format!("({t}){}", show(e)),
            Expr::SizeOf(t) => format!("sizeof {t}"),
            Expr::Unary(op, e) => format!("{op}{}", show(e)),
            Expr::Binary(op, a, b) => format!("({}{op}{})", show(a), show(b)),
            Expr::Cond(c, a, b) => format!("({}?{}:{})", show(c), show(a), show(b)),
            Expr::Index(a, i) => format!("{}[{}]", show(a), show(i)),
            Expr::Call(f, a) => format!("{f}({})", a.iter().map(show).collect::<Vec<_>>().join(",")),
            Expr::List(l) => format!("{{{}}}", l.iter().map(show).collect::<Vec<_>>().join(",")),
        }
    }

    #[test]
    fn precedence_and_casts() {
        let shown = |text| show(&one(text).unwrap());
        assert_eq!(shown("1+2*3<<4&5"), "(((1+(2*3))<<4)&5)");
        assert_eq!(shown("a==b?1:c?2:3"), "((a==b)?1:(c?2:3))");
        assert_eq!(shown("8-4-2"), "((8-4)-2)");
        assert_eq!(shown("( gfp_t)(1 << 3)|x"), "((gfp_t)(1<<3)|x)");
        assert_eq!(shown("((struct page *)vmemmap_base) + (REC->pfn)"), "((struct page *)vmemmap_base+@pfn)");
        assert_eq!(shown("(A)|(B)"), "(A|B)");
        assert_eq!(shown("(REC)->x - 1"), "(@x-1)");
        assert_eq!(shown("(xfs_ino_t) REC->x"), "(xfs_ino_t)@x");
        assert_eq!(shown("-1UL != REC->pfn"), "(-1!=@pfn)");
        assert_eq!(shown("((u8 *)__get_dynamic_array(a))[sizeof(u64)]"), "(u8 *)__get_dynamic_array(a)[sizeof u64]");
        assert_eq!(
            shown("__print_symbolic(REC->lru, {0, \"a\"}, { 1, \"b\" },)"),
            "__print_symbolic(@lru,{0,\"a\"},{1,\"b\"})"
        );
    }

    #[test]
    fn what_is_no_expression_is_an_error() {
        for text in ["", "1 +", "(1", "REC->", "a.b", "f(1", "1 2", "x->y", "{1}", "sizeof(1+1)", "a ? b"] {
            assert!(one(text).is_err(), "{text}");
        }
        assert!(print_text("REC->a", 8).is_err());
    }

    #[test]
    fn deep_nesting_is_refused() {
        let n = 20_000;
        for text in [
            "(".repeat(n),
            "-".repeat(n),
            "1+".repeat(n) + "1",
            "1?".repeat(n),
            "f(".repeat(n),
            "a".to_string() + &"[1]".repeat(n),
        ] {
            assert!(one(&text).is_err());
        }
        assert!(one(&("(".repeat(60) + "1" + &")".repeat(60))).is_ok());
    }
}
