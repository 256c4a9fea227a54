//! The extension module of the Python package `mmtwin`: what the library does, as Python objects.
//!
//! `trace` opens and reads, `report` is what was read, `compare` puts several side by side, `scenario` and `run` are the
//! twin's, `sweep` drives many runs, `fleet` reads many recordings, `fidelity` puts the twin beside real kernels. Tables
//! leave as Arrow streams (`table`, `stream`). What takes long is done on another thread without Python's lock, while the
//! caller's thread looks for signals and tells progress (`wait`).
//! The rest of the package is Python: `crates/python/python/mmtwin`.

#![cfg(feature = "extension")]

mod compare;
mod error;
mod fidelity;
mod fleet;
mod key;
mod report;
mod run;
mod scenario;
mod stream;
mod sweep;
mod table;
mod trace;
mod wait;

use pyo3::prelude::*;

/// Program and version, as the command line names them in files.
const VERSION: &str = concat!("mmtwin ", env!("MMTWIN_VERSION"));

/// What Python imports.
#[pymodule]
fn _mmtwin(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("VERSION", VERSION)?;
    error::add(module)?;
    module.add_class::<trace::Trace>()?;
    module.add_class::<report::Report>()?;
    module.add_class::<report::Finding>()?;
    module.add_class::<compare::Comparison>()?;
    module.add_class::<scenario::Scenario>()?;
    module.add_class::<run::Run>()?;
    module.add_class::<fidelity::Fidelity>()?;
    module.add_class::<fleet::Reading>()?;
    module.add_class::<fleet::Fleet>()?;
    module.add_class::<table::Table>()?;
    module.add_class::<stream::Events>()?;
    module.add_class::<sweep::Driver>()?;
    module.add_class::<sweep::Sweep>()?;
    module.add_function(wrap_pyfunction!(compare::compare, module)?)?;
    module.add_function(wrap_pyfunction!(fidelity::fidelity, module)?)?;
    module.add_function(wrap_pyfunction!(fleet::read_task, module)?)?;
    module.add_function(wrap_pyfunction!(run::run, module)?)?;
    module.add_function(wrap_pyfunction!(sweep::run_task, module)?)?;
    module.add_function(wrap_pyfunction!(sweep::read_sweep, module)?)?;
    module.add_function(wrap_pyfunction!(sweep::known, module)?)?;
    module.add_function(wrap_pyfunction!(sweep::expand, module)?)?;
    module.add_function(wrap_pyfunction!(sweep::number, module)?)
}
