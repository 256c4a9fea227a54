//! Copied tracefs directories: raw pages of every CPU and the texts that explain them.

use super::everything::{format_of, reported};
use crate::{Random, Seen, mutate, parts, samples, scratch};
use mmtwin_trace::input::InputFile;
use std::collections::BTreeMap;

/// The sample as the directory it was recorded from, with some of its formats and pages.
pub fn seeds() -> Vec<Vec<u8>> {
    let recorded = samples::recorded();
    let mut files = BTreeMap::from([
        ("events/header_page".into(), recorded.header_page.clone().into_bytes()),
        ("saved_cmdlines".into(), recorded.cmdlines.clone()),
        ("saved_tgids".into(), b"1 1\n77 70\n".to_vec()),
        ("trace_clock".into(), b"[local] global mono\n".to_vec()),
        ("printk_formats".into(), b"0xffffffff81000000 : \"text\"\n".to_vec()),
        ("kallsyms".into(), b"ffffffff81000000 T _text\nffffffff81001000 t two\n".to_vec()),
        ("buffer_subbuf_size_kb".into(), b"4\n".to_vec()),
    ]);
    for (system, text) in recorded.texts.iter().take(9) {
        let event = text.lines().next().and_then(|line| line.strip_prefix("name: ")).unwrap_or("none");
        files.insert(format!("events/{system}/{event}/format"), text.clone().into_bytes());
    }
    for (cpu, pages) in &recorded.cpus {
        let some = pages[..pages.len().min(2 * recorded.layout.page_size)].to_vec();
        files.insert(format!("per_cpu/cpu{cpu}/trace_pipe_raw"), some);
        let stats =
            b"entries: 9\noverrun: 3\ncommit overrun: 0\nbytes: 500\nread events: 4\ndropped events: 1\n".to_vec();
        files.insert(format!("per_cpu/cpu{cpu}/stats"), stats);
    }
    let without = |name: &str| {
        let mut files = files.clone();
        files.remove(name);
        parts::join(&samples::named(files))
    };
    vec![without(""), without("buffer_subbuf_size_kb")]
}

/// Texts by words, pages by bytes.
pub fn mutate(input: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    parts::mutate(input, other, random, |_, part, lent, random| {
        inside(part, random, |name, bytes, random| match name.ends_with("_raw") {
            true => mutate::bytes(bytes, lent, random),
            false => mutate::text(bytes, lent, random),
        });
    });
}

/// Changes what is in a file, seldom its name.
pub fn inside(part: &mut Vec<u8>, random: &mut Random, change: impl Fn(&str, &mut Vec<u8>, &mut Random)) {
    let end = part.iter().position(|&byte| byte == 0);
    let Some(end) = end.filter(|_| !random.one_in(30)) else { return mutate::text(part, b"", random) };
    let name = String::from_utf8_lossy(&part[..end]).into_owned();
    let mut bytes = part.split_off(end + 1);
    change(&name, &mut bytes, random);
    part.extend(bytes);
}

/// Reads and reports a directory.
pub fn run(input: &[u8]) -> Seen {
    let files = samples::unnamed(parts::split(input));
    scratch::directory(files, |top| reported(InputFile::open(top), format_of(input)))
}
