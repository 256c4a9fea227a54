//! Calls of a library that panics on damaged input instead of saying so.
//!
//! The crate `parquet` trusts what a file says of its own pages: of mutated files some in ten thousand end in an index
//! out of bounds, a slice that is too short or an overflow, deep in its decoders. Such a panic is caught, its message,
//! which is for that crate's developers, is not printed, and the file is said to be damaged.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    /// This thread's panics are caught and not printed.
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Calls something that may panic; a panic's message instead of its result. What was called is not used afterwards.
pub(super) fn contained<T>(call: impl FnOnce() -> T) -> Result<T, String> {
    static HOOK: Once = Once::new();
    // All other panics are printed as before.
    HOOK.call_once(|| {
        let before = take_hook();
        set_hook(Box::new(move |panic| {
            if !QUIET.get() {
                before(panic);
            }
        }));
    });
    let outer = QUIET.replace(true);
    let result = catch_unwind(AssertUnwindSafe(call));
    QUIET.set(outer);
    result.map_err(|panic| message(&*panic))
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("no reason given").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_error_and_what_follows_goes_on() {
        let list: Vec<u8> = Vec::new();
        assert_eq!(contained(|| 7), Ok(7));
        let index = list.len() + 3;
        assert_eq!(contained(|| list[index]), Err("index out of bounds: the len is 0 but the index is 3".into()));
        assert!(!QUIET.get());
    }
}
