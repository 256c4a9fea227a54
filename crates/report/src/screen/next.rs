//! Where to go on: the topics that have something to say.

use super::{Line, Subject, at_most};
use crate::format::grid::Tone;
use crate::topics::{TOPICS, has_content};

/// Topics that the screen itself is about.
const HERE: [&str; 1] = ["findings"];

pub(super) fn lines(subject: &Subject<'_>, width: usize) -> Vec<Line> {
    let topics = TOPICS.iter().filter(|topic| !HERE.contains(&topic.name) && has_content(topic, subject.report));
    let names: Vec<&str> = topics.map(|topic| topic.name).collect();
    let name = subject.name(width);
    let text = match (subject.kept, names.is_empty()) {
        (true, false) => format!("more: mmtwin report {name} TOPIC: {}; --all", names.join(", ")),
        (true, true) => format!("more: mmtwin report {name} --all"),
        (false, _) => format!("more: mmtwin run {name} --all; -o REC keeps a recording for `mmtwin report REC`"),
    };
    at_most(&text, width, 3).into_iter().map(|text| Line::new(Tone::Faint, text)).collect()
}
