//! docs/fidelity/*.csv: every figure behind the page, a row each.

use super::{BACKGROUND, Judged};
use mmtwin_report::fidelity::balancing::{COUNTERS, balanced};
use mmtwin_report::fidelity::{Count, Row, reclaim};

/// A file: its name, the names of its columns, and its rows.
pub struct Csv {
    /// Name of the file.
    pub name: &'static str,
    /// Names of the columns.
    columns: Vec<String>,
    /// Cells of the rows.
    rows: Vec<Vec<String>>,
}

impl Csv {
    /// An empty one.
    pub(super) fn new(name: &'static str, columns: &str) -> Csv {
        Csv { name, columns: columns.split(',').map(str::to_string).collect(), rows: Vec::new() }
    }

    pub(super) fn push(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// The text of the file: a cell with a comma or a quotation mark is quoted.
    pub fn text(&self) -> String {
        let quoted = |cell: &String| match cell.contains([',', '"']) {
            true => format!("\"{}\"", cell.replace('"', "\"\"")),
            false => cell.clone(),
        };
        let line = |cells: &Vec<String>| cells.iter().map(quoted).collect::<Vec<_>>().join(",") + "\n";
        std::iter::once(&self.columns).chain(&self.rows).map(line).collect()
    }
}

/// All files of the cells.
pub fn files(judged: &[Judged]) -> Vec<Csv> {
    vec![
        cells(judged),
        quantities(judged),
        curves(judged),
        pages(judged),
        numa_balancing(judged),
        of_reclaim(judged),
        events(judged),
    ]
}

/// Whose row it is.
fn owner(Judged { cell, .. }: &Judged) -> [String; 3] {
    [cell.name.clone(), cell.kernel.clone(), cell.mode.to_string()]
}

fn shown<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

/// With one digit behind the point.
fn tenths(value: Option<f64>) -> String {
    shown(value.map(|value| format!("{value:.1}")))
}

/// Rounded to one digit, as tables show it.
fn rounded(value: f64) -> f64 {
    (10.0 * value).round() / 10.0
}

/// Whether a counter is as it should be.
fn verdict(count: &Count) -> String {
    let verdict = match count.good {
        Some(true) => "within",
        Some(false) => "beyond",
        None => "few",
    };
    verdict.into()
}

fn cells(judged: &[Judged]) -> Csv {
    let columns = "scenario,kernel,mode,runs,quantities,inside,inside_or_within_5_percent,same_zone_sizes,not_in_twin,curves,curves_inside,median_error_percent";
    let mut csv = Csv::new("cells.csv", columns);
    for of in judged {
        let compared: Option<Vec<String>> =
            of.fidelity.as_ref().filter(|_| of.cell.name != BACKGROUND).map(|fidelity| {
                let ((inside, near, all), (within, curves)) = (fidelity.counts(), fidelity.curves_inside());
                let zones = fidelity.rows.iter().filter(|row| row.is_zone_as_it_is()).count();
                let counts =
                    [all, inside, near, zones, fidelity.unknown, curves, within].map(|count| count.to_string());
                counts.into_iter().chain([tenths(Some(fidelity.median_error()))]).collect()
            });
        csv.push(owner(of).into_iter().chain([of.runs.to_string()]).chain(compared.unwrap_or(vec![String::new(); 8])));
    }
    csv
}

fn quantities(judged: &[Judged]) -> Csv {
    let columns = "scenario,kernel,mode,quantity,kernel_median,least,greatest,background,twin,error_percent,verdict";
    let mut csv = Csv::new("quantities.csv", columns);
    for of in judged {
        // Without a workload there is nothing that the twin could do.
        let idle = of.cell.name == BACKGROUND;
        let shown_row = |row: &&Row| if idle { !row.name.starts_with("zone ") } else { !row.is_zone_as_it_is() };
        for row in of.fidelity.iter().flat_map(|fidelity| &fidelity.rows).filter(shown_row) {
            let of_kernel = [Some(row.of_kernel()), row.kernel.first().copied(), row.kernel.last().copied()].map(shown);
            let verdict = if row.inside() { "inside" } else { "outside" };
            let of_twin = [
                shown(row.background),
                shown(Some(row.of_twin())),
                tenths(row.error_percent().map(rounded)),
                verdict.into(),
            ];
            let of_twin = if idle { Default::default() } else { of_twin };
            csv.push(owner(of).into_iter().chain([row.name.clone()]).chain(of_kernel).chain(of_twin));
        }
    }
    csv
}

fn curves(judged: &[Judged]) -> Csv {
    let mut csv = Csv::new("curves.csv", "scenario,kernel,mode,counter,twin_percent,kernel_percent");
    for of in judged.iter().filter(|of| of.cell.name != BACKGROUND) {
        for row in of.fidelity.iter().flat_map(|fidelity| &fidelity.curves) {
            let [twin, kernel] =
                [row.distance, Some(row.spread)].map(|share| shown(share.map(|share| (1000.0 * share).round() / 10.0)));
            csv.push(owner(of).into_iter().chain([row.name.clone(), twin, kernel]));
        }
    }
    csv
}

fn pages(judged: &[Judged]) -> Csv {
    let columns = "scenario,kernel,mode,pages,elsewhere,by_thread,numa_counters,off,watermarks,other_watermarks";
    let mut csv = Csv::new("pages.csv", columns);
    for (of, found) in judged.iter().filter_map(|of| Some((of, of.pages.as_ref()?))) {
        let of_pages = [found.pages, found.elsewhere, found.by_thread];
        let counts = [found.counters, found.counted_otherwise, found.watermarks, found.other_watermarks];
        csv.push(owner(of).into_iter().chain(of_pages.into_iter().chain(counts).map(|count| count.to_string())));
    }
    csv
}

fn numa_balancing(judged: &[Judged]) -> Csv {
    let counters = COUNTERS.map(|name| format!("{name}_error_percent,{name}_verdict")).join(",");
    let places = "settled_error_percent,settled_own_percent,elsewhere_points,elsewhere_own_points";
    let mut csv = Csv::new("numa-balancing.csv", &format!("scenario,kernel,mode,{counters},{places}"));
    for (of, found) in judged.iter().filter_map(|of| Some((of, balanced(of.fidelity.as_ref()?)?))) {
        let one = |count: &Option<Count>| {
            [tenths(count.map(|of| of.error)), count.as_ref().map_or_else(String::new, verdict)]
        };
        let counts = found.counts.iter().flat_map(one);
        let places = [found.settled, of.apart.0, found.elsewhere, of.apart.1].map(tenths);
        csv.push(owner(of).into_iter().chain(counts).chain(places));
    }
    csv
}

fn of_reclaim(judged: &[Judged]) -> Csv {
    let mut csv = Csv::new("reclaim.csv", "scenario,kernel,mode,counter,error_percent,verdict");
    for of in judged {
        for (name, count) in of.fidelity.iter().flat_map(reclaim::counters) {
            csv.push(owner(of).into_iter().chain([name.to_string(), tenths(Some(count.error)), verdict(&count)]));
        }
    }
    csv
}

fn events(judged: &[Judged]) -> Csv {
    let columns = "scenario,kernel,mode,seed,first,aligned_percent,own_first,own_aligned_percent";
    let mut csv = Csv::new("reclaim-events.csv", columns);
    for of in judged {
        for found in &of.in_order {
            let [twin, own] = [&found.twin, &found.own].map(|of| [of.first.to_string(), tenths(Some(of.percent()))]);
            csv.push(owner(of).into_iter().chain([found.seed.to_string()]).chain(twin).chain(own));
        }
    }
    csv
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_with_commas_are_quoted() {
        let mut csv = Csv::new("x.csv", "a,b");
        csv.push(["1".into(), "2, \"3\"".into()]);
        assert_eq!(csv.text(), "a,b\n1,\"2, \"\"3\"\"\"\n");
    }
}
