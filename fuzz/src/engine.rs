//! The coverage-guided engine: libFuzzer on the target that `MMTWIN_FUZZ_TARGET` names.
#![no_main]

use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};
use mmtwin_fuzz::{Random, Seen, Shape, Target, parts, targets, watch};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

#[global_allocator]
static ALLOCATOR: watch::Limited = watch::Limited;

static TARGET: LazyLock<&'static Target> = LazyLock::new(|| {
    let name = std::env::var("MMTWIN_FUZZ_TARGET").unwrap_or_default();
    let known = || targets::TARGETS.iter().map(|target| target.name).collect::<Vec<_>>().join(", ");
    targets::named(&name).unwrap_or_else(|| panic!("MMTWIN_FUZZ_TARGET is `{name}`; targets: {}", known()))
});

/// Good inputs, which lend pieces.
static SEEDS: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| (TARGET.seeds)());

fuzz_target!(init: begin(), |input: &[u8]| {
    let target = *TARGET;
    let seen = watch::within(target.name, "this input", target.seconds, || (target.run)(input));
    count(seen);
});

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    let target = *TARGET;
    let mut random = Random(seed.into());
    let mut input = data[..size].to_vec();
    if target.shape == Shape::Plain && random.one_in(2) {
        return fuzzer_mutate(data, size, max_size);
    }
    if target.shape == Shape::Parts && random.one_in(2) {
        one_part(&mut input, max_size, &mut random);
    } else {
        let none = Vec::new();
        let other = random.of(&SEEDS).unwrap_or(&none);
        (target.mutate)(&mut input, other, &mut random);
    }
    input.truncate(max_size);
    data[..input.len()].copy_from_slice(&input);
    input.len()
});

/// Leaves the target's good inputs in the folder `MMTWIN_FUZZ_SEEDS`, which libFuzzer reads then.
fn begin() {
    let Some(folder) = std::env::var_os("MMTWIN_FUZZ_SEEDS").map(std::path::PathBuf::from) else { return };
    for (number, seed) in SEEDS.iter().enumerate() {
        std::fs::write(folder.join(format!("seed-{number}")), seed).expect("the folder of seeds can be written");
    }
}

/// Lets libFuzzer change one part, so that lengths stay right.
fn one_part(input: &mut Vec<u8>, max_size: usize, random: &mut Random) {
    let mut parts = parts::split(input);
    let (at, room) = (random.below(parts.len()), max_size.saturating_sub(input.len()).min(4096));
    let Some((_, part)) = parts.get_mut(at) else { return };
    let size = part.len();
    part.resize(size + room, 0);
    let most = part.len();
    let size = fuzzer_mutate(part, size, most);
    part.truncate(size);
    *input = parts::join(&parts);
}

/// Keeps the numbers of inputs and of those that were accepted in the file `MMTWIN_FUZZ_COUNTS`, once a second.
fn count(seen: Seen) {
    static COUNTS: [AtomicU64; 2] = [AtomicU64::new(0), AtomicU64::new(0)];
    static WRITTEN: std::sync::Mutex<Option<Instant>> = std::sync::Mutex::new(None);
    let all = COUNTS[0].fetch_add(1, Ordering::Relaxed) + 1;
    let accepted = COUNTS[1].fetch_add(seen.accepted.into(), Ordering::Relaxed) + u64::from(seen.accepted);
    let Some(file) = std::env::var_os("MMTWIN_FUZZ_COUNTS") else { return };
    let Ok(mut written) = WRITTEN.lock() else { return };
    if written.is_none_or(|at| at.elapsed() > Duration::from_secs(1)) {
        *written = Some(Instant::now());
        let _ = std::fs::write(file, format!("{all} {accepted}\n"));
    }
}
