//! `mmtwin reproduce`.

use super::print_tables;
use crate::Failure;
use crate::args::Reproduce;
use mmtwin_report::model::{Finding, InputInfo};
use mmtwin_validate::reproduce::{ALL, Study, reproduce};

/// Runs the verb.
pub fn run(arguments: Reproduce) -> Result<i32, Failure> {
    let studies: Vec<&Study> = match arguments.names.is_empty() {
        true => ALL.iter().collect(),
        false => arguments.names.iter().map(|name| named(name)).collect::<Result<_, _>>()?,
    };
    let (mut tables, mut findings) = (Vec::new(), Vec::new());
    for study in &studies {
        let reproduction = reproduce(study)?;
        tables.extend(reproduction.tables());
        findings.extend(reproduction.remarks().map(|sentence| Finding {
            key: "soft_lockup".into(),
            severity: 50,
            sentence,
            detail: String::new(),
            command: String::new(),
            ..Finding::default()
        }));
    }
    // The one column: what stands beside the published figures.
    let input = InputInfo { name: "twin".into(), arm: "twin".into(), ..InputInfo::default() };
    print_tables(input, tables, findings, &arguments.printing)
}

fn named(name: &str) -> Result<&'static Study, Failure> {
    ALL.iter().find(|study| study.name == name).ok_or_else(|| {
        let all = ALL.iter().map(|study| study.name).collect::<Vec<_>>().join(", ");
        Failure::Usage(format!("no published study {name}; studies: {all}"))
    })
}
