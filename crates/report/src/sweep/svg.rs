//! Curves as SVG: all curves of a quantity in one chart, with intervals, and the values as tool tips.

use super::curve::{CURVES, Drawing, Group, places};
use super::plot::Point;
use crate::html::escaped;
use crate::side_by_side::change::figure;
use std::fmt::Write;

/// Pixels: of the drawing, and left, right, above and below the plot in it.
const SIZE: (f64, f64) = (760.0, 300.0);
const LEFT: f64 = 100.0;
const RIGHT: f64 = 20.0;
const ABOVE: f64 = 12.0;
const BELOW: f64 = 32.0;
/// Between lines of the legend.
const LINE: f64 = 18.0;
/// Pixels that a label of the lower axis needs.
const LABEL: f64 = 72.0;
/// Colours that people with any colour vision tell apart: Okabe and Ito, "Color Universal Design", 2008.
const COLOURS: [&str; CURVES] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"];

/// A heading and the chart.
pub(super) fn chart(drawing: &Drawing<'_>) -> String {
    let groups = drawing.groups();
    let (shown, more) = groups.split_at(groups.len().min(CURVES));
    let (low, high) = drawing.extent();
    let across = Across::of(drawing);
    let legend = if shown.len() > 1 { shown.len() + usize::from(!more.is_empty()) } else { 0 };
    let height = SIZE.1 + LINE * legend as f64;
    let mut svg = format!(
        "<h2>{}</h2>\n<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {height}\" width=\"{}\" \
         font-family=\"sans-serif\" font-size=\"12\" role=\"img\">\n",
        escaped(&drawing.title()),
        SIZE.0,
        SIZE.0
    );
    let y = |value: f64| {
        let share = if high > low { ((value - low) / (high - low)).clamp(0.0, 1.0) } else { 0.5 };
        SIZE.1 - BELOW - share * (SIZE.1 - ABOVE - BELOW)
    };
    for value in [low, (low + high) / 2.0, high] {
        let (at, right) = (y(value), SIZE.0 - RIGHT);
        let _ = writeln!(svg, "<path d=\"M{LEFT} {at:.1}H{right}\" stroke=\"#ccc\"/>");
        text(&mut svg, (LEFT - 8.0, at + 4.0), "end", &figure(value, &drawing.row.unit));
    }
    across.labels(&mut svg);
    for (group, colour) in shown.iter().zip(COLOURS) {
        curve(&mut svg, drawing, group, &across, colour, &y);
    }
    if legend > 0 {
        for (number, (group, colour)) in shown.iter().zip(COLOURS).enumerate() {
            let at = SIZE.1 + LINE * number as f64;
            let _ = writeln!(svg, "<path d=\"M{LEFT} {at}h24\" stroke=\"{colour}\" stroke-width=\"2\"/>");
            text(&mut svg, (LEFT + 32.0, at + 4.0), "start", &group.name);
        }
        if !more.is_empty() {
            let at = SIZE.1 + LINE * shown.len() as f64;
            text(&mut svg, (LEFT + 32.0, at + 4.0), "start", &format!("{} more curves", more.len()));
        }
    }
    svg.push_str("</svg>\n");
    svg
}

/// Values from left to right, which all curves share.
struct Across<'a> {
    /// Each with its place, 0..1.
    values: Vec<(&'a str, f64)>,
}

impl Across<'_> {
    fn of<'a>(drawing: &'a Drawing<'_>) -> Across<'a> {
        let mut in_order: Vec<_> = drawing.cases.iter().collect();
        in_order.sort_by_key(|case| case.place);
        let mut values: Vec<(&str, Option<f64>)> = Vec::new();
        for case in in_order {
            let value = case.values[drawing.over].as_str();
            if !values.iter().any(|(known, _)| *known == value) {
                values.push((value, case.numbers[drawing.over]));
            }
        }
        let places = places(&values.iter().map(|(_, number)| *number).collect::<Vec<_>>());
        Across { values: values.into_iter().map(|(value, _)| value).zip(places).collect() }
    }

    /// Pixels from the left of a value.
    fn at(&self, value: &str) -> f64 {
        let place = self.values.iter().find(|(known, _)| *known == value).map_or(0.0, |(_, place)| *place);
        LEFT + place * (SIZE.0 - LEFT - RIGHT)
    }

    /// Labels below the plot: the first and the last, others where there is room.
    fn labels(&self, svg: &mut String) {
        let ends = self.values.len().checked_sub(1).into_iter().flat_map(|last| [last, 0]);
        let mut written: Vec<f64> = Vec::new();
        for number in ends.chain(0..self.values.len()) {
            let (value, _) = self.values[number];
            let at = self.at(value);
            if written.iter().all(|other| (other - at).abs() >= LABEL) {
                let anchor = if at + LABEL / 2.0 > SIZE.0 { "end" } else { "middle" };
                text(svg, (at, SIZE.1 - BELOW + LINE), anchor, value);
                written.push(at);
            }
        }
    }
}

/// One curve: a line, and for each point its interval and its value.
fn curve(
    svg: &mut String,
    drawing: &Drawing<'_>,
    group: &Group,
    across: &Across<'_>,
    colour: &str,
    y: &dyn Fn(f64) -> f64,
) {
    let value = |case: usize| drawing.cases[case].values[drawing.over].as_str();
    let points: Vec<(usize, Point)> =
        group.cases.iter().filter_map(|case| Some((*case, drawing.point(*case, across.at(value(*case)))?))).collect();
    let line: Vec<String> = points.iter().map(|(_, point)| format!("{:.1},{:.1}", point.x, y(point.y[0]))).collect();
    let _ =
        writeln!(svg, "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>", line.join(" "));
    for (case, point) in points {
        let [middle, low, high] = point.y;
        if low < high {
            let (x, from, to) = (point.x, y(low), y(high));
            let _ = writeln!(svg, "<path d=\"M{x:.1} {from:.1}V{to:.1}\" stroke=\"{colour}\"/>");
        }
        let unit = &drawing.row.unit;
        let mut says = format!("{}: {}", value(case), figure(middle, unit));
        if low < high {
            says += &format!(" [{}, {}]", figure(low, unit), figure(high, unit));
        }
        let _ = writeln!(
            svg,
            "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"3.5\" fill=\"{colour}\"><title>{}</title></circle>",
            point.x,
            y(middle),
            escaped(&says)
        );
    }
}

fn text(svg: &mut String, (x, y): (f64, f64), anchor: &str, words: &str) {
    let _ = writeln!(svg, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{}</text>", escaped(words));
}
