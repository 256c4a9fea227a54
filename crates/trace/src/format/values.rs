//! Single fields of a record, for tables: their words and their bytes.

use super::expr::Expr;
use super::scope::Rules;
use super::{FieldDef, Format, Formats, Out};

impl Format {
    /// The words that `print fmt` shows in place of a numeric field, such as flags; `None`: it shows the number, or
    /// words that depend on other fields too.
    pub fn words(&self, formats: &Formats, field: &str, raw: &[u8]) -> Option<Vec<u8>> {
        let scope = formats.scope(self.kind, &self.fields, Rules::C);
        let shown = self.print.get().ok()?.arguments.iter().filter(|a| shows_words(a) && reads_only(a, field));
        let text = shown.filter_map(|a| scope.text(a).ok()).next()?;
        let mut out = Out::default();
        text.print(raw, formats.env(Rules::C), &mut out);
        Some(out.into())
    }

    /// The bytes of a field that is no number, of those a record holds; for characters up to the first NUL. `None`:
    /// the record ends before the field.
    pub fn bytes<'r>(&self, formats: &Formats, field: &FieldDef, raw: &'r [u8]) -> Option<&'r [u8]> {
        if field.offset as usize + field.size as usize > raw.len() {
            return None;
        }
        let bytes = formats.scope(self.kind, &self.fields, Rules::C).memory(field).ok()?.of(raw, formats.big_endian());
        if field.is_chars() { bytes.split(|&b| b == 0).next() } else { Some(bytes) }
    }
}

/// The expression has a list of words.
fn shows_words(expr: &Expr) -> bool {
    match expr {
        Expr::Cast(_, inner) => shows_words(inner),
        Expr::Cond(_, a, b) => shows_words(a) || shows_words(b),
        Expr::Call(function, _) => function.starts_with("__print_flags") || function.starts_with("__print_symbolic"),
        _ => false,
    }
}

/// No other field than this decides what the expression shows.
fn reads_only(expr: &Expr, field: &str) -> bool {
    let only = |e: &Expr| reads_only(e, field);
    match expr {
        Expr::Field(name) => name == field,
        Expr::Number(..) | Expr::Text(_) | Expr::Name(_) | Expr::SizeOf(_) => true,
        Expr::Cast(_, inner) | Expr::Unary(_, inner) => only(inner),
        Expr::Binary(_, a, b) | Expr::Index(a, b) => only(a) && only(b),
        Expr::Cond(condition, a, b) => only(condition) && only(a) && only(b),
        Expr::Call(_, parts) | Expr::List(parts) => parts.iter().all(only),
    }
}
