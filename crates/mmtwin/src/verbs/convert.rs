//! `mmtwin convert`.

use crate::cli::{Compression, Convert, Target};
use crate::{Failure, reading};
use mmtwin_trace::Outcome;
use mmtwin_trace::dat::{Codec, DatWriter, Version};
use mmtwin_trace::input::{Input, Options};
use mmtwin_trace::write::{Columns, Header, ParquetWriter, TextStyle, TextWriter};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// Runs the verb.
pub fn run(arguments: Convert) -> Result<i32, Failure> {
    let output = &arguments.output;
    let target = match arguments.to {
        Some(target) => target,
        None => target_of(output)
            .ok_or_else(|| Failure::Usage(format!("{}: cannot tell the format; say --to", output.display())))?,
    };
    if output.exists() && !arguments.force {
        return Err(Failure::Error(format!("{}: exists; -f replaces it", output.display())));
    }
    let mut file = reading::open(&arguments.input)?;
    let input = file.input(&Options::default())?;
    let outcome = match target {
        Target::Text => text(input, output)?,
        Target::Dat => dat(input, output, version(&arguments))?,
        Target::Parquet => parquet(input, output, arguments.force)?,
    };
    reading::warn(&outcome);
    Ok(0)
}

fn target_of(output: &Path) -> Option<Target> {
    let name = output.to_string_lossy();
    let stem = [".gz", ".zst"].iter().find_map(|s| name.strip_suffix(s)).unwrap_or(&name);
    if stem.ends_with(".dat") {
        Some(Target::Dat)
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

/// Writes a file under another name first, so that nothing half-written looks whole.
fn whole<T>(output: &Path, write: impl FnOnce(File) -> Result<T, Failure>) -> Result<T, Failure> {
    let partial = PathBuf::from(format!("{}.partial", output.display()));
    let failed = |e: std::io::Error| Failure::Error(format!("{}: {e}", output.display()));
    let result = File::create(&partial).map_err(failed).and_then(write);
    match result {
        Ok(done) => std::fs::rename(&partial, output).map_err(failed).map(|()| done),
        Err(failure) => {
            // What cannot be removed is left under the name that says it is partial.
            let _ = std::fs::remove_file(&partial);
            Err(failure)
        }
    }
}

fn text(input: Input<'_>, output: &Path) -> Result<Outcome, Failure> {
    let name = output.to_string_lossy();
    let columns = Columns::of_release(input.source.kernel.as_deref());
    let style = TextStyle::Kernel(columns, Some(Header { entries: None, cpus: input.source.cpus }));
    let failed = |e: std::io::Error| Failure::Error(format!("{name}: {e}"));
    // What a compressor keeps until its end can fail too.
    whole(output, |file| match output.extension().and_then(|e| e.to_str()) {
        Some("gz") => {
            let to = flate2::write::GzEncoder::new(file, flate2::Compression::default());
            let (outcome, to) = lines(input, to, &name, style)?;
            to.finish().map_err(failed)?;
            Ok(outcome)
        }
        Some("zst") => {
            let (outcome, to) = lines(input, zstd::Encoder::new(file, 3)?, &name, style)?;
            to.finish().map_err(failed)?;
            Ok(outcome)
        }
        _ => Ok(lines(input, file, &name, style)?.0),
    })
}

fn lines<W: Write>(input: Input<'_>, to: W, name: &str, style: TextStyle) -> Result<(Outcome, W), Failure> {
    let mut writer = TextWriter::new(to, name, style, input.formats.clone());
    let outcome = input.read(&mut writer)?;
    Ok((outcome, writer.close()?))
}

fn dat(input: Input<'_>, output: &Path, version: Version) -> Result<Outcome, Failure> {
    let name = output.to_string_lossy();
    let directory = output.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    whole(output, |file| {
        let mut writer = DatWriter::new(version, input.origin.clone(), directory)?;
        let mut outcome = input.read(&mut writer)?;
        let mut file = BufWriter::new(file);
        let written = writer.close(&name, &mut file)?;
        outcome.warnings.append(written.left_out);
        Ok(outcome)
    })
}

fn parquet(input: Input<'_>, output: &Path, force: bool) -> Result<Outcome, Failure> {
    let mut writer = ParquetWriter::create(output, input.formats.clone(), force)?;
    let outcome = input.read(&mut writer)?;
    writer.close()?;
    Ok(outcome)
}
