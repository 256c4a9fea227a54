//! Events of the tracer itself, which the kernel prints without a name: markers, stack traces, function calls.
//!
//! Models the system `ftrace` of tracefs: `print`, `bputs`, `kernel_stack`, `user_stack` and `function`; trace-cmd has
//! its own form of kernel stacks alone. Not supported: the function graph tracer, whose lines have other columns, and the
//! packed arguments of `bprint`. Validated against the text of a 6.18 kernel and trace-cmd 3.1.6.

use super::eval::{Memory, Num, number_of};
use super::out::Out;
use super::scope::{Rules, Scope};
use super::text::PrintContext;

/// How such an event is printed.
#[derive(Clone, Debug, PartialEq)]
pub enum Native {
    /// The payload alone.
    Payload,
    /// `<stack trace>`, then a line per caller: its symbols, or its addresses in user space.
    Stack(Memory, bool),
    /// `function <-parent`.
    Function(Num, Num),
}

/// The form of an event of the tracer itself.
pub fn of(system: &str, name: &str, scope: &Scope<'_>) -> Option<Native> {
    let number = |field: &str| Some(scope.number(&super::expr::Expr::Field(field.into())).ok()?.num);
    // Stacks may have more callers than the array of the format, or fewer.
    let callers = || Some(Memory::Rest(scope.field("caller").ok()?.offset));
    match (system, name) {
        ("ftrace", "print" | "bputs") => Some(Native::Payload),
        ("ftrace", "kernel_stack") => Some(Native::Stack(callers()?, false)),
        ("ftrace", "user_stack") => Some(Native::Stack(callers()?, true)),
        ("ftrace", "function") => Some(Native::Function(number("ip")?, number("parent_ip")?)),
        _ => None,
    }
}

impl Native {
    /// Prints what stands in a line instead of name and payload. False: name or payload are still to be printed.
    pub fn print(&self, raw: &[u8], env: PrintContext<'_>, out: &mut Out) -> bool {
        match (self, env.rules) {
            (Native::Stack(callers, user), Rules::C) => {
                out.extend(if *user { b"<user stack trace>\n".as_slice() } else { b"<stack trace>\n" });
                for address in addresses(*callers, raw, env) {
                    out.extend(b" => ");
                    if *user {
                        out.extend(b" <");
                        out.hex_digits(address, usize::from(env.long_size) * 2);
                        out.push(b'>');
                    } else {
                        symbol(address, env, out);
                    }
                    out.push(b'\n');
                }
                true
            }
            (Native::Stack(callers, false), Rules::TraceCmd) => {
                out.extend(b"kernel_stack:         <stack trace >\n");
                for address in addresses(*callers, raw, env) {
                    out.extend(b"=> ");
                    symbol(address, env, out);
                    out.extend(b" (");
                    out.hex(address);
                    out.extend(b")\n");
                }
                true
            }
            (Native::Function(function, parent), Rules::C) => {
                symbol(function.eval(raw, env.big_endian), env, out);
                out.extend(b" <-");
                symbol(parent.eval(raw, env.big_endian), env, out);
                true
            }
            _ => false,
        }
    }
}

/// The callers of a stack, up to the mark at its end.
fn addresses<'a>(callers: Memory, raw: &'a [u8], env: PrintContext<'_>) -> impl Iterator<Item = u64> + use<'a> {
    let (long, big_endian) = (usize::from(env.long_size), env.big_endian);
    let end = u64::MAX >> (64 - 8 * long);
    let all = callers.of(raw, big_endian).chunks_exact(long).map(move |bytes| number_of(bytes, big_endian));
    all.take_while(move |&address| address != 0 && address != end)
}

fn symbol(address: u64, env: PrintContext<'_>, out: &mut Out) {
    match env.symbols.find(address) {
        Some(found) => out.extend(found.name.as_bytes()),
        None => {
            out.extend(b"0x");
            out.hex(address);
        }
    }
}
