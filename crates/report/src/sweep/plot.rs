//! A line plot in a terminal: Braille characters, 2 by 4 dots each.

/// A point with the interval of its value.
#[derive(Clone, Copy, Debug)]
pub(super) struct Point {
    /// Place from left to right, 0..1.
    pub x: f64,
    /// Value and the ends of its interval.
    pub y: [f64; 3],
}

/// Characters of a plot.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size {
    /// From left to right; at least 2.
    pub width: usize,
    /// From top to bottom; at least 2.
    pub height: usize,
}

/// The plot from `low` at the bottom to `high` at the top, line by line.
pub(super) fn draw(points: &[Point], (low, high): (f64, f64), size: Size) -> Vec<String> {
    let mut canvas = Canvas { size, dots: vec![0; size.width * size.height] };
    let (right, bottom) = (2 * size.width - 1, 4 * size.height - 1);
    let row = |value: f64| {
        let share = if high > low { ((value - low) / (high - low)).clamp(0.0, 1.0) } else { 0.5 };
        ((1.0 - share) * bottom as f64).round() as i64
    };
    let column = |x: f64| (x.clamp(0.0, 1.0) * right as f64).round() as i64;
    for pair in points.windows(2) {
        canvas.line((column(pair[0].x), row(pair[0].y[0])), (column(pair[1].x), row(pair[1].y[0])));
    }
    for point in points {
        let x = column(point.x);
        canvas.line((x, row(point.y[1])), (x, row(point.y[2])));
        // A point is wider than its line.
        [-1, 0, 1].into_iter().for_each(|beside| canvas.dot(x + beside, row(point.y[0])));
    }
    canvas.lines()
}

struct Canvas {
    size: Size,
    /// Bits of the dots of each character.
    dots: Vec<u8>,
}

/// Bits of the dots of a character: by row, left and right.
const BITS: [[u8; 2]; 4] = [[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]];

/// The character without dots.
const EMPTY: u32 = 0x2800;

impl Canvas {
    fn dot(&mut self, x: i64, y: i64) {
        let (Ok(x), Ok(y)) = (usize::try_from(x), usize::try_from(y)) else { return };
        if x / 2 < self.size.width && y / 4 < self.size.height {
            self.dots[y / 4 * self.size.width + x / 2] |= BITS[y % 4][x % 2];
        }
    }

    fn line(&mut self, from: (i64, i64), to: (i64, i64)) {
        let steps = (to.0 - from.0).abs().max((to.1 - from.1).abs()).max(1);
        for step in 0..=steps {
            let at = |from: i64, to: i64| from + ((to - from) as f64 * step as f64 / steps as f64).round() as i64;
            self.dot(at(from.0, to.0), at(from.1, to.1));
        }
    }

    fn lines(&self) -> Vec<String> {
        let character = |dots: &u8| match dots {
            0 => ' ',
            dots => char::from_u32(EMPTY + u32::from(*dots)).unwrap_or(' '),
        };
        self.dots.chunks(self.size.width).map(|row| row.iter().map(character).collect()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(x: f64, y: f64) -> Point {
        Point { x, y: [y; 3] }
    }

    #[test]
    fn a_line_from_corner_to_corner() {
        let drawn = draw(&[point(0.0, 0.0), point(1.0, 1.0)], (0.0, 1.0), Size { width: 4, height: 2 });
        assert_eq!(drawn, ["  ⡠⠋", "⣠⠊  "]);
    }

    #[test]
    fn intervals_are_upright_and_values_outside_stay_at_the_edge() {
        let wide = Point { x: 0.5, y: [0.5, -1.0, 2.0] };
        let drawn = draw(&[wide], (0.0, 1.0), Size { width: 3, height: 2 });
        assert!(drawn.iter().all(|line| line.trim().chars().count() <= 2), "{drawn:?}");
        assert_eq!(draw(&[], (0.0, 0.0), Size { width: 2, height: 2 }), ["  ", "  "]);
    }
}
