//! Every example of docs/reference/scenario.md is a scenario, and every preset and bundle is in it.

use mmtwin_scenario::{bundle_names, parse, preset_names};
use std::path::Path;

fn document() -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/scenario.md"))
        .expect("the document")
}

/// Fenced blocks: the info string after the fence, and the text.
fn blocks(document: &str) -> Vec<(&str, String)> {
    let mut blocks: Vec<(&str, String)> = Vec::new();
    let mut open = false;
    for line in document.lines() {
        match line.strip_prefix("```") {
            Some(kind) => {
                open = !open;
                if open {
                    blocks.push((kind, String::new()));
                }
            }
            None if open => {
                let (_, text) = blocks.last_mut().expect("an open block");
                text.push_str(line);
                text.push('\n');
            }
            None => {}
        }
    }
    blocks
}

/// The text with the tables that a scenario needs, behind it so that lines keep their numbers.
fn whole(text: &str) -> String {
    let mut whole = text.to_string();
    if !text.contains("[machine]") {
        whole.push_str("[machine]\npreset = \"broadwell-2s\"\n");
    }
    if !text.contains("[kernel]") {
        whole.push_str("[kernel]\nrelease = \"6.1\"\n");
    }
    whole
}

#[test]
fn every_example_is_a_scenario() {
    let document = document();
    let blocks = blocks(&document);
    let mut good = 0;
    for (i, (kind, text)) in blocks.iter().enumerate() {
        let result = parse("s.toml", &whole(text), Path::new(""), &[]);
        match *kind {
            "toml" => {
                result.unwrap_or_else(|faults| panic!("{text}\n{faults}"));
                good += 1;
            }
            "toml wrong" => {
                let faults = result.expect_err("an example of faults").to_string();
                assert_eq!(("text", format!("{faults}\n")), blocks[i + 1].clone());
            }
            _ => {}
        }
    }
    assert!(good >= 7, "{good} examples");
}

#[test]
fn every_preset_and_bundle_is_named() {
    let document = document();
    // The four postings are written as a range.
    let left_out = ["2014-v2", "2014-v3"];
    for name in preset_names().chain(bundle_names()).filter(|name| !left_out.contains(name)) {
        assert!(document.contains(&format!("`{name}`")), "{name}");
    }
}
