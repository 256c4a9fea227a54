//! The event tables of the eras: their syntax and its parser.
//!
//! A table begins with events at the start of a line: names, then the letters of the eras that have them so.
//! Indented lines follow: C declarations separated by `;` (`string` is a `__data_loc` string), then the print format
//! in quotes and its arguments separated by spaces:
//!
//! | argument | prints |
//! |---|---|
//! | `f` | field `f` |
//! | `f:TABLE` | the words of a table of `words.txt` |
//! | `f:symbol` | the function at an address |
//! | `f:major`, `f:minor` | the parts of a device number |
//! | `f:page`, `f:page?` | address of the page frame `f`; with `?`, NULL for frame -1 |
//! | `f:pfn`, `f:pfn?` | frame number of the page at `f`; with `?`, 0 for NULL |
//! | `f:known` | a frame number, 0 for frame -1 |
//! | `f:limit` | 1 << `f` |
//! | `f:bytes` | `f` pages as bytes |
//! | `f:nodes` | the list of nodes in a bit map (two arguments of the kernel's) |
//! | `f?A:B`, `f&BITS?A:B` | `A` or `B` (`_`: a space), whether `f`, or bits of it, are set |
//! | `f==g`, `f<9`, `9` | a comparison, a constant |

use super::Era;

/// One entry of a table: an event in the eras that share it.
#[derive(Debug)]
pub(super) struct Entry {
    pub system: &'static str,
    pub names: Vec<&'static str>,
    pub eras: Vec<Era>,
    pub fields: Vec<Declaration>,
    pub format: &'static str,
    pub args: Vec<&'static str>,
}

/// A C declaration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Declaration {
    pub c_type: &'static str,
    pub name: &'static str,
    pub array: Option<u16>,
}

macro_rules! tables {
    ($($system:literal)*) => {
        &[$(($system, include_str!(concat!("data/", $system, ".txt")))),*]
    };
}

static TABLES: &[(&str, &str)] = tables! {
    "vmscan" "writeback" "kmem" "compaction" "migrate" "thp" "sched" "mmtwin" "exceptions" "oom" "vmalloc" "pagemap" "filemap" "huge_memory"
};

/// Every entry of every table.
pub(super) fn parse_all() -> Result<Vec<Entry>, String> {
    let mut entries = Vec::new();
    for &(system, text) in TABLES {
        parse(system, text, &mut entries)?;
    }
    Ok(entries)
}

fn parse(system: &'static str, text: &'static str, entries: &mut Vec<Entry>) -> Result<(), String> {
    for (number, line) in text.lines().enumerate() {
        let fail = |what: &str| Err(format!("{system}.txt:{}: {what}: {line}", number + 1));
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        let Some(body) = line.strip_prefix("    ") else {
            let mut names: Vec<&str> = line.split(' ').collect();
            let Some(eras) = names.pop().and_then(eras) else { return fail("no eras") };
            entries.push(Entry { system, names, eras, fields: Vec::new(), format: "", args: Vec::new() });
            continue;
        };
        let Some(entry) = entries.last_mut() else { return fail("fields without an event") };
        if let Some(print) = body.strip_prefix('"') {
            let Some((format, args)) = print.split_once('"') else { return fail("no closing quote") };
            entry.format = format;
            entry.args = args.split_ascii_whitespace().collect();
        } else {
            for declaration in body.split("; ") {
                let Some(declaration) = declaration_of(declaration) else { return fail("no declaration") };
                entry.fields.push(declaration);
            }
        }
    }
    Ok(())
}

/// Eras from their letters.
pub(super) fn eras(letters: &str) -> Option<Vec<Era>> {
    letters.chars().map(Era::of_letter).collect()
}

fn declaration_of(text: &'static str) -> Option<Declaration> {
    let (c_type, name) = text.rsplit_once(' ')?;
    match name.split_once('[') {
        None => Some(Declaration { c_type, name, array: None }),
        Some((name, size)) => Some(Declaration { c_type, name, array: Some(size.strip_suffix(']')?.parse().ok()?) }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_tables_parse() {
        let entries = parse_all().unwrap();
        assert!(entries.iter().all(|e| !e.names.is_empty() && !e.fields.is_empty() && !e.format.is_empty()));
    }

    #[test]
    fn errors_name_the_line() {
        let mut entries = Vec::new();
        assert_eq!(parse("x", "# c\nan_event Z\n", &mut entries).unwrap_err(), "x.txt:2: no eras: an_event Z");
        assert!(parse("x", "    int a\n", &mut entries).unwrap_err().contains("without an event"));
        assert!(parse("x", "e A\n    \"a=%d a\n", &mut entries).unwrap_err().contains("quote"));
        assert!(parse("x", "e A\n    int\n", &mut entries).unwrap_err().contains("no declaration"));
    }

    #[test]
    fn declarations() {
        let d = |c_type, name, array| Some(Declaration { c_type, name, array });
        assert_eq!(declaration_of("struct page * page"), d("struct page *", "page", None));
        assert_eq!(declaration_of("char comm[16]"), d("char", "comm", Some(16)));
        assert_eq!(declaration_of("char comm[x]"), None);
    }
}
