//! What a trace.dat of a recording's events needs beside them: the recording's texts under trace-cmd's names.
//!
//! Not modelled, for a trace.dat has no place for it: counters, thread groups and cgroups of tasks, the manifest beyond
//! kernel, machine, clock and losses. Validated by `trace-cmd report` on files made from recordings.

use super::{Recording, text};
use crate::dat::{FormatText, Meta, Opt, Origin, id};
use crate::files;
use crate::map::{Mapped, map};
use crate::{Error, Place};
use mmtwin_event::era::{Era, header_event};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;

/// Texts of `formats/` beside the formats themselves.
pub(super) struct Texts {
    pub header_page: String,
    header_event: Option<String>,
    /// Mapped: it has some megabytes, and most readers need it but once.
    pub kallsyms: Option<Mapped>,
    pub printk: Vec<u8>,
}

impl Texts {
    /// Reads them; only `header_page` must be there.
    pub fn read(formats: &Path) -> Result<Texts, Error> {
        let utf8 = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        let page = formats.join("header_page");
        let missing = || Error::at(Place::file(&page.to_string_lossy()), "missing, so pages cannot be read");
        let kallsyms = formats.join("kallsyms");
        let name = kallsyms.to_string_lossy();
        Ok(Texts {
            header_page: utf8(text(&page)?.ok_or_else(missing)?),
            header_event: text(&formats.join("header_event"))?.map(utf8),
            kallsyms: match files::open(&kallsyms)? {
                None => None,
                Some(file) => map(&name, &file)?,
            },
            printk: text(&formats.join("printk_formats"))?.unwrap_or_default(),
        })
    }
}

impl Recording {
    /// What [`crate::dat::DatWriter`] needs for the events of this recording; `None` without event tracing.
    pub fn origin(&self) -> Option<Origin<'_>> {
        let (tracing, texts) = (self.manifest.tracing.as_ref()?, self.texts.as_ref()?);
        let page_size = u32::try_from(tracing.sub_buffer).ok()?;
        let cpus = tracing.cpus.iter().chain(&self.manifest.evidence.cpus).max().map_or(0, |c| c.saturating_add(1));
        let cpus = cpus.min(super::MAX_CPUS as u32);
        let meta = Meta {
            big_endian: tracing.big_endian,
            long_size: tracing.long_size,
            page_size,
            cpus,
            header_page: texts.header_page.clone(),
            // trace-cmd only wants it to be there: no kernel has another.
            header_event: texts.header_event.clone().unwrap_or_else(|| header_event(Era::V6_18)),
            formats: FormatText::all(&self.formats),
            kallsyms: Cow::Borrowed(texts.kallsyms.as_deref().unwrap_or_default()),
            printk: Cow::Borrowed(&texts.printk),
            cmdlines: Cow::Owned(self.cmdlines()),
            options: self.options(),
        };
        Some(Origin { meta, page_size, instance: String::new() })
    }

    /// A line `PID NAME` per task, with the name it had last.
    fn cmdlines(&self) -> Vec<u8> {
        let names: BTreeMap<_, _> = self.tasks.iter().map(|t| (t.pid, t.comm.replace('\n', " "))).collect();
        names.iter().map(|(pid, comm)| format!("{pid} {comm}\n")).collect::<String>().into()
    }

    fn options(&self) -> Vec<Opt> {
        let text = |id, text: String| Opt { id, data: [text.as_bytes(), b"\0"].concat() };
        let uname = &self.manifest.evidence.uname;
        let mut options = vec![text(id::TRACECLOCK, format!("[{}]\n", self.manifest.clock))];
        if !uname.release.is_empty() {
            // The host's name is not part of a recording.
            let uname = format!("{} (none) {} {}", uname.sysname, uname.release, uname.machine);
            options.push(text(id::UNAME, uname));
        }
        for losses in self.end.iter().flat_map(|e| &e.losses) {
            let (overrun, commit, dropped) = (losses.overrun, losses.commit_overrun, losses.dropped);
            let cpu = losses.cpu;
            let stat = format!("CPU: {cpu}\noverrun: {overrun}\ncommit overrun: {commit}\ndropped events: {dropped}\n");
            options.push(text(id::CPUSTAT, stat));
        }
        options
    }
}
