//! Format texts: the kernel's `events/SYSTEM/EVENT/format`, `header_page` and `header_event`.
//!
//! Generated from the tables. Kernels expand macros in the print format and may leave enum names in it; here every flag
//! and word has its number, so that a reader needs no other table.

use super::{Definition, Era, Field, find};
use std::fmt::Write;

/// The format text of an event with number `id`, common fields included. `None`: the era does not have the event.
pub fn format_text(era: Era, event: &str, id: u16) -> Option<String> {
    Some(find(era, event)?.format_text(id))
}

impl Definition {
    /// The format text of the event with number `id`.
    pub fn format_text(&self, id: u16) -> String {
        let mut text = format!("name: {}\nID: {id}\nformat:\n", self.name);
        let mut line = |declaration: &str, offset, size, signed| {
            let _ =
                writeln!(text, "\tfield:{declaration};\toffset:{offset};\tsize:{size};\tsigned:{};", u8::from(signed));
        };
        line("unsigned short common_type", 0, 2, false);
        line("unsigned char common_flags", 2, 1, false);
        line("unsigned char common_preempt_count", 3, 1, false);
        line("int common_pid", 4, 4, true);
        if let Some(fifth) = self.era.fifth_common_field() {
            line(&format!("int {fifth}"), 8, 4, true);
        }
        text.push('\n');
        for field in &self.fields {
            let signed = u8::from(field.signed);
            let _ = writeln!(
                text,
                "\tfield:{};\toffset:{};\tsize:{};\tsigned:{signed};",
                field.declaration(),
                field.offset,
                field.size
            );
        }
        let _ = write!(text, "\nprint fmt: \"{}\"", self.format);
        for arg in &self.args {
            text.push_str(", ");
            text.push_str(&arg.c_text(&self.fields));
        }
        text.push('\n');
        text
    }
}

impl Field {
    fn declaration(&self) -> String {
        match (self.c_type, self.array) {
            ("string", _) => format!("__data_loc char[] {}", self.name),
            (c_type, Some(size)) => format!("{c_type} {}[{size}]", self.name),
            (c_type, None) => format!("{c_type} {}", self.name),
        }
    }
}

/// The `header_page` text: the places of timestamp, commit and data in a ring-buffer page of `page_size` bytes of a
/// kernel whose `long` has `long_size` bytes (4 or 8).
pub fn header_page(era: Era, long_size: u8, page_size: u32) -> String {
    let data = 8 + u32::from(long_size);
    format!(
        "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
         \tfield: local_t commit;\toffset:8;\tsize:{long_size};\tsigned:1;\n\
         \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
         \tfield: char data;\toffset:{data};\tsize:{};\tsigned:{};\n",
        page_size.saturating_sub(data),
        u8::from(era.signed_char()),
    )
}

/// The `header_event` text: the bits of a record's first word. Absolute time stamps exist from 4.17 on.
pub fn header_event(era: Era) -> String {
    let mut text = "# compressed entry header\n".to_string();
    for (name, bits) in [("type_len", 5), ("time_delta", 27), ("array", 32)] {
        let _ = writeln!(text, "\t{name:<12}: {bits:>4} bits");
    }
    text.push('\n');
    let mut types = vec![("padding     ", 29), ("time_extend ", 30)];
    if era >= Era::V6_1 {
        types.push(("time_stamp ", 31));
    }
    for (name, number) in types {
        let _ = writeln!(text, "\t{name}: type == {number}");
    }
    text.push_str("\tdata max type_len  == 28\n");
    text
}
