//! Many changed inputs of one target, without coverage: some ten times as many in the same time.
//!
//! `mmtwin-sweep TARGET SECONDS SEED FINDS [CORPUS...]`: inputs are the target's seeds and the files in the folders of
//! corpora, changed once to four times by choices from the seed. What panics is kept in the folder FINDS; a hang or too
//! much memory ends the program, with the input kept there. Prints inputs, accepted ones, seconds and finds.
//!
//! `mmtwin-sweep TARGET FILE`: prints what the reader gets of the input in a file, and gives it to the target.

use mmtwin_fuzz::{Random, Target, targets, watch};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::time::{Duration, Instant};

#[global_allocator]
static ALLOCATOR: watch::Limited = watch::Limited;

/// Finds after which it ends: more of them tell no more.
const ENOUGH: u64 = 10;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let target = |name: &str| targets::named(name).unwrap_or_else(|| panic!("no target `{name}`"));
    let (target, seconds, seed, finds, corpora) = match &arguments[..] {
        [name, file] => return repeat(target(name), file),
        [name, seconds, seed, finds, corpora @ ..] => (target(name), seconds, seed, finds, corpora),
        _ => panic!("usage: mmtwin-sweep TARGET FILE | TARGET SECONDS SEED FINDS [CORPUS...]"),
    };
    let (seconds, seed): (u64, u64) = (seconds.parse().expect("seconds"), seed.parse().expect("a seed"));
    let finds = PathBuf::from(finds);
    let mut corpus = (target.seeds)();
    for folder in corpora {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let mut files: Vec<_> = entries.map(|entry| entry.path()).collect();
        files.sort();
        corpus.extend(files.iter().filter_map(|file| std::fs::read(file).ok()));
    }
    let begun = Instant::now();
    let (mut inputs, mut accepted, mut found) = (0u64, 0u64, 0u64);
    // A hang and too much memory end the program: its input must be there by then. Behind its length lie bytes of others.
    let last = finds.join(format!("{}-sweep-{}.last", target.name, std::process::id()));
    let kept = File::create(&last).expect("the folder of finds can be written");
    while begun.elapsed() < Duration::from_secs(seconds) && found < ENOUGH {
        let mut random = Random(seed.wrapping_add(inputs));
        let mut input = corpus[random.below(corpus.len())].clone();
        for _ in 0..1 + random.below(4) {
            let other = &corpus[random.below(corpus.len())];
            (target.mutate)(&mut input, other, &mut random);
        }
        let length = (input.len() as u64).to_le_bytes();
        kept.write_all_at(&[&length, &input[..]].concat(), 0).expect("the folder of finds can be written");
        let run = || {
            watch::within(target.name, format!("seed {}", seed.wrapping_add(inputs)), target.seconds, || {
                (target.run)(&input)
            })
        };
        match catch_unwind(AssertUnwindSafe(run)) {
            Ok(seen) => accepted += u64::from(seen.accepted),
            Err(_) => {
                found += 1;
                let kept = finds.join(format!("{}-sweep-{}-{found}", target.name, seed));
                std::fs::write(kept, &input).expect("the folder of finds can be written");
            }
        }
        inputs += 1;
    }
    let _ = std::fs::remove_file(&last);
    println!("{inputs} {accepted} {} 0 {found}", begun.elapsed().as_secs());
}

/// One input of a file.
fn repeat(target: &Target, file: &str) {
    let mut input = std::fs::read(file).expect("the input can be read");
    if file.ends_with(".last") {
        let length: Vec<u8> = input.drain(..8).collect();
        input.truncate(u64::from_le_bytes(length.try_into().expect("eight bytes")) as usize);
    }
    std::io::Write::write_all(&mut std::io::stdout(), &(target.built)(&input)).expect("a place to print to");
    let seen = watch::within(target.name, file, target.seconds, || (target.run)(&input));
    eprintln!("{}", if seen.accepted { "accepted" } else { "refused" });
}
