//! Files of cases: CSV whose header has keys and whose lines have their values.

/// The lines of a file of cases.
#[derive(Debug)]
pub(super) struct Cases {
    /// Keys of the header.
    pub keys: Vec<String>,
    /// Values of each line, as many as there are keys, and the number of the line in the file, from 1.
    pub lines: Vec<(Vec<String>, usize)>,
}

/// Reads the text of a file; blank lines are skipped.
///
/// # Errors
/// Everything that is wrong, each with the number of its line.
pub(super) fn read(text: &str) -> Result<Cases, Vec<(usize, String)>> {
    let mut faults = Vec::new();
    let mut rows = Vec::new();
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        match fields(line) {
            Ok(fields) => rows.push((fields, number + 1)),
            Err(message) => faults.push((number + 1, message)),
        }
    }
    if !faults.is_empty() {
        return Err(faults);
    }
    if rows.len() < 2 {
        return Err(vec![(1, "expected a line of keys, and a line of values for each case".into())]);
    }
    let (keys, header) = rows.remove(0);
    for (at, key) in keys.iter().enumerate() {
        if key.is_empty() {
            faults.push((header, format!("key {} is empty", at + 1)));
        } else if keys[..at].contains(key) {
            faults.push((header, format!("key {key} is there twice")));
        }
    }
    for (values, line) in &rows {
        if values.len() != keys.len() {
            faults.push((*line, format!("{} values for {} keys", values.len(), keys.len())));
        } else if let Some(empty) = values.iter().position(String::is_empty) {
            faults.push((*line, format!("no value of {}", keys[empty])));
        }
    }
    if faults.is_empty() { Ok(Cases { keys, lines: rows }) } else { Err(faults) }
}

/// Fields of a line (RFC 4180; none has a line break).
fn fields(line: &str) -> Result<Vec<String>, String> {
    let (mut fields, mut field, mut rest) = (Vec::new(), String::new(), line.chars().peekable());
    let mut quoted = false;
    while let Some(c) = rest.next() {
        match c {
            '"' if quoted && rest.peek() == Some(&'"') => {
                rest.next();
                field.push('"');
            }
            '"' if quoted => quoted = false,
            '"' if field.trim().is_empty() => {
                field.clear();
                quoted = true;
            }
            ',' if !quoted => fields.push(std::mem::take(&mut field).trim().to_owned()),
            c => field.push(c),
        }
    }
    fields.push(field.trim().to_owned());
    if quoted { Err("a quote is not closed".into()) } else { Ok(fields) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_keep_their_numbers() {
        let cases = read("\u{feff}kernel.thp, a.b\r\n\nalways,\"1,5\"\n\n\"say \"\"x\"\"\", 2\n").unwrap();
        assert_eq!(cases.keys, ["kernel.thp", "a.b"]);
        let line = |values: [&str; 2], at| (values.map(String::from).to_vec(), at);
        assert_eq!(cases.lines, [line(["always", "1,5"], 3), line(["say \"x\"", "2"], 5)]);
    }

    #[test]
    fn faults_have_the_line() {
        let faults = |text: &str| read(text).expect_err(text);
        assert_eq!(faults("a,b\n\n1\n1,\n"), [(3, "1 values for 2 keys".into()), (4, "no value of b".into())]);
        assert_eq!(faults("a,a,\n1,2,3\n"), [(1, "key a is there twice".into()), (1, "key 3 is empty".into())]);
        assert_eq!(faults("a\n\n\"x\n"), [(3, "a quote is not closed".into())]);
        assert_eq!(faults("a\n").len(), 1);
    }
}
