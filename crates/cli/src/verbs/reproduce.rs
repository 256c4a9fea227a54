//! `mmtwin reproduce`.

use super::print_tables;
use crate::args::{Format, Reproduce, TableStyle};
use crate::commit::commit;
use crate::{Failure, terminal};
use mmtwin_report::model::{Finding, InputInfo};
use mmtwin_trace::output::FileOutput;
use mmtwin_validate::Error;
use mmtwin_validate::reproduce::{
    ALL, Known, Reproduction, Request, Study, Variant, by_patch, reproduce_as, sensitivity,
};
use std::path::Path;

/// Runs the verb.
pub fn run(arguments: Reproduce) -> Result<i32, Failure> {
    let studies: Vec<&Study> = match arguments.names.is_empty() {
        true => ALL.iter().collect(),
        false => arguments.names.iter().map(|name| named(name)).collect::<Result<_, _>>()?,
    };
    if arguments.write_docs {
        return write_docs(&studies, &arguments);
    }
    let historic = arguments.style == TableStyle::Historic;
    if historic && (arguments.printing.format != Format::Table || !arguments.printing.tables.is_empty()) {
        return Err(Failure::Usage("--style historic is text of all tables: without --format and --table".into()));
    }
    // The one column: what stands beside the published figures.
    let input = InputInfo { name: "twin".into(), arm: "twin".into(), ..InputInfo::default() };
    if arguments.sensitivity {
        let tables =
            studies.iter().filter_map(|study| sensitivity(study, &[]).transpose()).collect::<Result<Vec<_>, _>>()?;
        if tables.is_empty() {
            return Err(Failure::Usage(format!(
                "no ranges of constants are stated for {}",
                arguments.names.join(", ")
            )));
        }
        return print_tables(input, tables, Vec::new(), &arguments.printing);
    }
    let variant = arguments.variant.as_deref().map(Variant::load).transpose()?;
    let reproductions = all(&studies, &arguments, variant.as_ref())?;
    if historic {
        let text: String = reproductions.iter().map(Reproduction::cover_letter).collect();
        terminal::show(text.as_bytes(), true)?;
        return Ok(0);
    }
    let mut tables = Vec::new();
    for reproduction in &reproductions {
        // Of all studies the quantities are too many to print unasked.
        let details = !arguments.names.is_empty() || !arguments.printing.tables.is_empty();
        match arguments.by_patch {
            true => tables.extend(reproduction.changes_table(None).filter(|_| details)),
            false => tables.extend(reproduction.tables()),
        }
        if let Some(variant) = variant.as_ref().filter(|_| !arguments.by_patch) {
            tables.extend(reproduction.changes_table(Some(&variant.patch())));
        }
    }
    // Last, as it is the answer.
    tables.extend(by_patch(&reproductions));
    let remarks = reproductions.iter().flat_map(|reproduction| {
        let idle = variant.iter().filter_map(|variant| reproduction.unexercised(variant));
        let idle = idle.map(|sentence| ("variant_unexercised", sentence));
        let halted = reproduction.halted().map(|sentence| ("run_ended_early", sentence));
        reproduction.remarks().map(|sentence| ("soft_lockup", sentence)).chain(idle).chain(halted)
    });
    let finding =
        |(key, sentence): (&str, String)| Finding { key: key.into(), severity: 50, sentence, ..Finding::default() };
    print_tables(input, tables, remarks.map(finding).collect(), &arguments.printing)
}

/// Writes today's figures into the pages of the series.
fn write_docs(studies: &[&Study], arguments: &Reproduce) -> Result<i32, Failure> {
    let with_pages: Vec<&Study> = studies.iter().copied().filter(|study| study.page.is_some()).collect();
    if with_pages.is_empty() {
        return Err(Failure::Usage(format!("no page tells of {}", arguments.names.join(", "))));
    }
    let (commit, date) = commit();
    for (study, reproduction) in with_pages.iter().zip(all(&with_pages, arguments, None)?) {
        let file = Path::new(study.page.unwrap_or_default());
        let failed = |message: String| Failure::Error(format!("{}: {message}", file.display()));
        let page = std::fs::read_to_string(file).map_err(|error| failed(error.to_string()))?;
        let page = reproduction.rewritten(&page, &commit, &date);
        let page = page.ok_or_else(|| failed(format!("no comments between which {} is to be written", study.name)))?;
        FileOutput::open(file, true, 0o666)?.write(page.as_bytes())?;
    }
    Ok(0)
}

/// Runs the studies. Of all studies those are passed over that a variant does not concern, or that have no patches where
/// only patches are asked for.
fn all(studies: &[&Study], arguments: &Reproduce, variant: Option<&Variant>) -> Result<Vec<Reproduction>, Failure> {
    let seeds = arguments.by_patch.then_some(arguments.seeds);
    let known = Known::default();
    let request = Request { seeds, variant, known: Some(&known), ..Request::default() };
    let mut reproductions = Vec::new();
    let mut other = None;
    for study in studies {
        match reproduce_as(study, &request) {
            Ok(reproduction) => reproductions.push(reproduction),
            Err(error @ Error::NoBase { .. }) if arguments.names.is_empty() => other = Some(error),
            Err(error) => return Err(error.into()),
        }
    }
    match other {
        Some(error) if reproductions.is_empty() => Err(error.into()),
        _ => Ok(reproductions),
    }
}

fn named(name: &str) -> Result<&'static Study, Failure> {
    ALL.iter().find(|study| study.name == name).ok_or_else(|| {
        let all = ALL.iter().map(|study| study.name).collect::<Vec<_>>().join(", ");
        Failure::Usage(format!("no published study {name}; studies: {all}"))
    })
}
