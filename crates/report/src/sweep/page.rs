//! A sweep as one HTML file: its table, and curves as SVG. It has no script and loads nothing.

use super::curve::with_drawing;
use super::lines::differs;
use super::model::{Sweep, short_keys};
use super::{CurveError, lines, svg};
use crate::format::Style;
use crate::html::escaped;
use std::fmt::Write;

/// Columns of the table.
const WIDTH: usize = 140;

/// The page, with curves by their names as [`super::curve`] takes them; without names, of each key that has several values.
///
/// # Errors
/// Those of [`super::curve`] for a curve with a name.
pub fn page(sweep: &Sweep, curves: &[String]) -> Result<String, CurveError> {
    let cases = sweep.cases();
    let drawn: Vec<String> = match curves {
        [] => {
            let own = sweep.keys.iter().enumerate().filter(|(at, _)| differs(&cases, *at));
            // A workload without a figure has no curves of its own.
            own.filter_map(|(_, name)| with_drawing(sweep, name, svg::chart).ok()).collect()
        }
        names => names.iter().map(|name| with_drawing(sweep, name, svg::chart)).collect::<Result<_, _>>()?,
    };
    let title = escaped(&format!("mmtwin sweep: {}", sweep.scenario));
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta \
         http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; base-uri 'none'; form-action 'none'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{title}</title>\n</head>\n\
         <body>\n<h1>{title}</h1>\n"
    );
    for chart in drawn {
        page.push_str(&chart);
    }
    let table = lines(sweep, &Style { width: WIDTH, ..Style::default() }, true).join("\n");
    let keys = short_keys(&sweep.keys).join(", ");
    let _ = write!(
        page,
        "<h2>Cases by {}</h2>\n<pre>{}</pre>\n<p>{}</p>\n</body>\n</html>\n",
        escaped(&keys),
        // Lines end in the text itself, where `escaped` has blanks for what is not printed.
        table.lines().map(escaped).collect::<Vec<_>>().join("\n"),
        escaped(&sweep.version)
    );
    Ok(page)
}
