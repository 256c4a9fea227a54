//! `mmtwin convert`.

use super::openmetrics::{self, Counters};
use crate::args::{Compression, Convert, Target, Weight};
use crate::tidy;
use crate::{Failure, reading};
use mmtwin::{Extent, Filter};
use mmtwin_analysis::Analysis;
use mmtwin_event::Sink;
use mmtwin_report::stacks;
use mmtwin_trace::Outcome;
use mmtwin_trace::dat::{Codec, DatWriter, Version};
use mmtwin_trace::input::{Input, Options};
use mmtwin_trace::output::{self, FileOutput};
use mmtwin_trace::write::{Columns, Header, ParquetWriter, PerfettoWriter, TextStyle, TextWriter};
use std::io::{BufWriter, Write};
use std::path::Path;

/// Runs the verb.
pub fn run(mut arguments: Convert) -> Result<i32, Failure> {
    let source = &reading::named_or_newest(arguments.input.take())?;
    let output = &arguments.output;
    let target = match arguments.format {
        Some(target) => target,
        None => target_of(output)
            .ok_or_else(|| Failure::Usage(format!("{}: unknown output format; specify --format", output.display())))?,
    };
    if output::same(source, output) {
        return Err(Failure::Error(format!("{}: is the input and is not overwritten", output.display())));
    }
    let (force, mode) = (arguments.force, output::mode_of(source));
    match target {
        Target::Text | Target::Dat | Target::Folded | Target::Perfetto | Target::Openmetrics => {
            FileOutput::check(output, force)?
        }
        Target::Parquet => ParquetWriter::check(output, force)?,
    }
    let filter = arguments.filtering.filter()?;
    tidy::on_signals()?;
    let mut file = reading::open(source)?;
    let extent = Extent::of(&file);
    let epoch = file.recording().and_then(openmetrics::epoch);
    let input = Part { input: file.input(&Options::default())?, filter, extent };
    let outcome = match target {
        Target::Text => text(input, output, FileOutput::open(output, force, mode)?)?,
        Target::Dat => dat(input, output, FileOutput::open(output, force, mode)?, version(&arguments))?,
        Target::Parquet => parquet(input, output, force, mode)?,
        Target::Openmetrics => {
            let mut counters = Counters::new(arguments.samples, epoch);
            let outcome = input.read(&mut counters)?;
            FileOutput::open(output, force, mode)?.write(&counters.text()?)?;
            outcome
        }
        Target::Perfetto => perfetto(input, output, FileOutput::open(output, force, mode)?)?,
        Target::Folded => folded(input, FileOutput::open(output, force, mode)?, weight(&arguments))?,
    };
    reading::warn(&outcome);
    Ok(0)
}

fn target_of(output: &Path) -> Option<Target> {
    let name = output.to_string_lossy();
    let name = name.as_ref();
    let stem = [".gz", ".zst"].iter().find_map(|s| name.strip_suffix(s)).unwrap_or(name);
    if stem.ends_with(".dat") {
        Some(Target::Dat)
    } else if [".pftrace", ".perfetto-trace"].iter().any(|end| name.ends_with(end)) {
        Some(Target::Perfetto)
    } else if name.ends_with(".openmetrics") {
        Some(Target::Openmetrics)
    } else if name.ends_with(".folded") {
        Some(Target::Folded)
    } else if stem.ends_with(".txt") {
        Some(Target::Text)
    } else if stem.ends_with(".parquet") || stem.ends_with('/') {
        Some(Target::Parquet)
    } else {
        None
    }
}

fn version(arguments: &Convert) -> Version {
    let codec = match arguments.compression {
        Compression::None => Codec::None,
        Compression::Zlib => Codec::Zlib,
        Compression::Zstd => Codec::Zstd,
    };
    if arguments.dat_version == 6 { Version::V6 } else { Version::V7(codec) }
}

/// An input, and what of it is converted.
struct Part<'a> {
    input: Input<'a>,
    filter: Filter,
    extent: Extent,
}

impl Part<'_> {
    fn read(self, sink: &mut dyn Sink) -> Result<Outcome, Failure> {
        Ok(self.filter.read(self.input, self.extent, sink, &mut |_| {})?)
    }
}

fn text(part: Part<'_>, output: &Path, to: FileOutput) -> Result<Outcome, Failure> {
    let name = output.to_string_lossy();
    let columns = Columns::of_release(part.input.source.kernel.as_deref());
    let style = TextStyle::Kernel(columns, Some(Header { entries: None, cpus: part.input.source.cpus }));
    let failed = |e: std::io::Error| mmtwin_trace::Error::io(&name, e);
    let file = to.file();
    // What a compressor keeps until its end can fail too.
    let outcome = match output.extension().and_then(|e| e.to_str()) {
        Some("gz") => {
            let packed = flate2::write::GzEncoder::new(file, flate2::Compression::default());
            let (outcome, packed) = lines(part, packed, &name, style)?;
            packed.finish().map_err(failed)?;
            outcome
        }
        Some("zst") => {
            let (outcome, packed) = lines(part, zstd::Encoder::new(file, 3).map_err(failed)?, &name, style)?;
            packed.finish().map_err(failed)?;
            outcome
        }
        _ => lines(part, file, &name, style)?.0,
    };
    to.commit()?;
    Ok(outcome)
}

fn lines<W: Write>(part: Part<'_>, to: W, name: &str, style: TextStyle) -> Result<(Outcome, W), Failure> {
    let mut writer = TextWriter::new(to, name, style, part.input.formats.clone());
    let outcome = part.read(&mut writer)?;
    Ok((outcome, writer.close()?))
}

fn dat(part: Part<'_>, output: &Path, to: FileOutput, version: Version) -> Result<Outcome, Failure> {
    let mut writer = DatWriter::new(version, part.input.origin.clone(), &to.spool())?;
    let mut outcome = part.read(&mut writer)?;
    let written = writer.close(&output.to_string_lossy(), &mut BufWriter::new(to.file()))?;
    to.commit()?;
    outcome.warnings.append(written.left_out);
    Ok(outcome)
}

fn perfetto(part: Part<'_>, output: &Path, to: FileOutput) -> Result<Outcome, Failure> {
    let mut writer = PerfettoWriter::new(to.file(), &output.to_string_lossy(), part.input.formats.clone());
    let outcome = part.read(&mut writer)?;
    writer.close()?;
    to.commit()?;
    Ok(outcome)
}

fn weight(arguments: &Convert) -> stacks::Weight {
    match arguments.weight {
        Weight::Count => stacks::Weight::Count,
        Weight::Waited => stacks::Weight::Waited,
    }
}

fn folded(part: Part<'_>, to: FileOutput, weight: stacks::Weight) -> Result<Outcome, Failure> {
    let (mut analysis, name) = (Analysis::default(), part.input.source.name.clone());
    let outcome = part.read(&mut analysis)?;
    let lines = stacks::folded(&analysis, weight);
    if lines.is_empty() {
        return Err(Failure::Error(format!("{name}: no stacks with such a weight were recorded: mmtwin record -g")));
    }
    to.write(lines.iter().map(|line| format!("{line}\n")).collect::<String>().as_bytes())?;
    Ok(outcome)
}

fn parquet(part: Part<'_>, output: &Path, force: bool, mode: u32) -> Result<Outcome, Failure> {
    let mut writer = ParquetWriter::create(output, part.input.formats.clone(), force, mode)?;
    let outcome = part.read(&mut writer)?;
    writer.close()?;
    Ok(outcome)
}
