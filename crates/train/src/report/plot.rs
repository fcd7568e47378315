//! A plot over steps, as SVG that takes its colours from the page.

use super::escape;
use std::fmt::Write;

/// Numbers over steps.
#[derive(Debug, Clone, Default)]
pub(super) struct Series {
    /// What they are.
    pub name: &'static str,
    /// Step and number.
    pub points: Vec<(f64, f64)>,
    /// Whether each is marked: a few measurements rather than a course.
    pub marked: bool,
}

/// A plot.
#[derive(Debug, Clone)]
pub(super) struct Plot {
    /// What it shows.
    pub title: &'static str,
    /// One or more, each in its own colour.
    pub series: Vec<Series>,
    /// Whether zero belongs to the picture.
    pub from_zero: bool,
}

/// The drawing in its own units. A phone shows it about as large as it is, so letters stay readable.
const WIDTH: f64 = 440.0;
const HEIGHT: f64 = 220.0;
const LEFT: f64 = 46.0;
const RIGHT: f64 = 10.0;
const TOP: f64 = 8.0;
const BOTTOM: f64 = 22.0;
/// More points than this are averaged: they would not be distinguishable.
const MOST_POINTS: usize = 400;

impl Plot {
    /// The figure, or nothing where there is nothing to be seen.
    pub(super) fn html(&self) -> Option<String> {
        let series: Vec<Series> = self.series.iter().map(Series::finite).collect();
        let points = || series.iter().flat_map(|series| &series.points);
        points().next()?;
        let most_steps = points().map(|point| point.0).fold(1.0, f64::max);
        let lowest = points().map(|point| point.1).fold(f64::INFINITY, f64::min);
        let highest = points().map(|point| point.1).fold(f64::NEG_INFINITY, f64::max);
        let x = Axis::new(0.0, most_steps, 5);
        let y = Axis::new(if self.from_zero { lowest.min(0.0) } else { lowest }, highest, 4);

        let mut html = format!("<figure>\n<figcaption><b>{}</b>", escape(self.title));
        for (number, series) in series.iter().enumerate() {
            let Some((_, last)) = series.points.last() else { continue };
            let name = escape(series.name);
            let _ = write!(html, "<span class=\"key s{number}\">{name} {}</span>", short(*last));
        }
        html.push_str("</figcaption>\n");
        let label = escape(&self.label(&series));
        let _ = writeln!(html, "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{label}\">");
        self.grid(&mut html, &x, &y);
        for (number, series) in series.iter().enumerate() {
            series.draw(&mut html, number, &x, &y, most_steps);
        }
        html.push_str("</svg>\n</figure>\n");
        Some(html)
    }

    /// What a person hears who cannot see it.
    fn label(&self, series: &[Series]) -> String {
        let course = |series: &Series| {
            let ((_, first), (step, last)) = (series.points.first()?, series.points.last()?);
            Some(format!("{} from {} to {} at step {step}", series.name, short(*first), short(*last)))
        };
        let courses: Vec<String> = series.iter().filter_map(course).collect();
        format!("{}: {}", self.title, courses.join("; "))
    }

    fn grid(&self, html: &mut String, x: &Axis, y: &Axis) {
        let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
        for tick in &y.ticks {
            let at = bottom - y.share(*tick) * (bottom - TOP);
            let _ = writeln!(html, "<path class=\"grid\" d=\"M{LEFT} {at:.1}H{right}\"/>");
            let _ = writeln!(
                html,
                "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                LEFT - 6.0,
                at + 3.5,
                short(*tick)
            );
        }
        for tick in &x.ticks {
            let at = LEFT + x.share(*tick) * (right - LEFT);
            let anchor = if at > right - 12.0 { "end" } else { "middle" };
            let _ = writeln!(
                html,
                "<text x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\">{}</text>",
                HEIGHT - 6.0,
                short(*tick)
            );
        }
    }
}

impl Series {
    /// Without what is no number, which has no place in a picture.
    fn finite(&self) -> Series {
        let points =
            self.points.iter().copied().filter(|(step, number)| step.is_finite() && number.is_finite());
        Series { points: points.collect(), ..*self }
    }

    fn draw(&self, html: &mut String, number: usize, x: &Axis, y: &Axis, most_steps: f64) {
        let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
        let place = |(step, number): (f64, f64)| {
            (LEFT + x.share(step) * (right - LEFT), bottom - y.share(number) * (bottom - TOP))
        };
        let mut path = String::new();
        for (index, point) in averaged(&self.points, most_steps).into_iter().enumerate() {
            let (x, y) = place(point);
            let _ = write!(path, "{}{x:.1} {y:.1}", if index == 0 { 'M' } else { 'L' });
        }
        let _ = writeln!(html, "<path class=\"line s{number}\" d=\"{path}\"/>");
        if !self.marked && self.points.len() > 1 {
            return;
        }
        for &(step, value) in &self.points {
            let ((x, y), value) = (place((step, value)), short(value));
            let title = format!("{} {value} at step {step}", self.name);
            let _ = writeln!(
                html,
                "<circle class=\"dot s{number}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\"><title>{}</title></circle>",
                escape(&title)
            );
        }
    }
}

/// The range of an axis, and where it has a number.
struct Axis {
    low: f64,
    high: f64,
    ticks: Vec<f64>,
}

impl Axis {
    /// An axis that shows `low` to `high` with about `count` round numbers.
    fn new(low: f64, high: f64, count: usize) -> Axis {
        let span = if high > low { high - low } else { high.abs().max(1.0) };
        let step = round_step(span / count as f64);
        // As far as the points, or the next round number where it is near.
        let reach = |end: f64, round: f64| if (round - end).abs() < 0.35 * step { round } else { end };
        let low = reach(low, (low / step).floor() * step);
        let high = reach(low.max(high), (high / step).ceil() * step).max(low + 0.1 * span);
        let first = (low / step - 1e-9).ceil() as i64;
        let last = (high / step + 1e-9).floor() as i64;
        Axis { low, high, ticks: (first..=last).map(|tick| tick as f64 * step).collect() }
    }

    /// Where a number is, from 0 to 1.
    fn share(&self, number: f64) -> f64 {
        (number - self.low) / (self.high - self.low)
    }
}

/// The nearest of 1, 2 and 5 times a power of ten that is no smaller.
fn round_step(step: f64) -> f64 {
    let power = 10f64.powf(step.log10().floor());
    let factor = [1.0, 2.0, 5.0, 10.0].into_iter().find(|factor| factor * power >= step * 0.999);
    factor.unwrap_or(10.0) * power
}

/// Points as means over equal stretches of steps, where there are too many.
fn averaged(points: &[(f64, f64)], most_steps: f64) -> Vec<(f64, f64)> {
    if points.len() <= MOST_POINTS {
        return points.to_vec();
    }
    let stretch = |step: f64| (step / most_steps * (MOST_POINTS - 1) as f64) as usize;
    points
        .chunk_by(|one, other| stretch(one.0) == stretch(other.0))
        .map(|chunk| {
            let mean =
                |number: fn(&(f64, f64)) -> f64| chunk.iter().map(number).sum::<f64>() / chunk.len() as f64;
            (mean(|point| point.0), mean(|point| point.1))
        })
        .collect()
}

/// A number in a few characters.
pub(super) fn short(number: f64) -> String {
    let trimmed = |text: String| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    };
    match number.abs() {
        0.0 => "0".to_owned(),
        size if size >= 999_500.0 => trimmed(format!("{:.2}", number / 1e6)) + "M",
        size if size >= 9_995.0 => trimmed(format!("{:.1}", number / 1e3)) + "k",
        size if size >= 99.95 => format!("{number:.0}"),
        size if size >= 9.995 => trimmed(format!("{number:.1}")),
        size if size >= 0.01 => trimmed(format!("{number:.3}")),
        size if size >= 0.001 => trimmed(format!("{number:.4}")),
        _ => {
            let text = format!("{number:.1e}");
            let (digits, power) = text.split_once('e').unwrap_or((&text, "0"));
            format!("{}·10{}", trimmed(digits.to_owned()), power.chars().map(raised).collect::<String>())
        }
    }
}

/// A sign of an exponent.
fn raised(sign: char) -> char {
    match sign.to_digit(10) {
        Some(digit) => ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'][digit as usize],
        None => '⁻',
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plot(points: &[(f64, f64)]) -> Plot {
        let series = Series { name: "training", points: points.to_vec(), marked: false };
        Plot { title: "Loss", series: vec![series], from_zero: false }
    }

    #[test]
    fn numbers_are_short() {
        let numbers = [0.0, 1.0, 0.25, 0.003, 39.33, 99.97, 1234.0, 20_000.0, 1_500_000.0, 0.0003, 0.000_25];
        let expected =
            ["0", "1", "0.25", "0.003", "39.3", "100", "1234", "20k", "1.5M", "3·10⁻⁴", "2.5·10⁻⁴"];
        assert_eq!(numbers.map(short), expected);
    }

    #[test]
    fn an_axis_has_round_numbers_and_all_points() {
        for (low, high) in [(0.0, 1000.0), (0.83, 6.2), (1.0, 1.0), (0.0, 0.0), (-3.0, -1.0), (1e-6, 7e-4)] {
            let axis = Axis::new(low, high, 4);
            assert!(axis.low <= low && axis.high >= high && axis.high > axis.low, "{low} {high}");
            assert!((1..=8).contains(&axis.ticks.len()), "{low} {high}: {:?}", axis.ticks);
            assert!(axis.ticks.iter().all(|&tick| (-0.001..=1.001).contains(&axis.share(tick))));
        }
        assert_eq!(Axis::new(0.0, 1000.0, 5).ticks, [0.0, 200.0, 400.0, 600.0, 800.0, 1000.0]);
    }

    #[test]
    fn many_points_become_few_with_the_same_course() {
        let points: Vec<(f64, f64)> =
            (0..10_000).map(|step| (f64::from(step), f64::from(step) / 2.0)).collect();
        let few = averaged(&points, 9999.0);
        assert!(few.len() <= MOST_POINTS, "{}", few.len());
        assert!(few.iter().all(|(step, number)| (step / 2.0 - number).abs() < 1e-9));
    }

    #[test]
    fn what_is_no_number_is_not_drawn_and_nothing_is_no_plot() {
        let html = plot(&[(1.0, f64::NAN), (2.0, 3.0), (3.0, f64::INFINITY), (4.0, 2.0)]).html().unwrap();
        assert!(!html.contains("NaN") && !html.contains("inf"), "{html}");
        assert!(html.contains("training from 3 to 2 at step 4"), "{html}");
        assert!(plot(&[(1.0, f64::NAN)]).html().is_none());
        assert!(plot(&[]).html().is_none());
    }
}
