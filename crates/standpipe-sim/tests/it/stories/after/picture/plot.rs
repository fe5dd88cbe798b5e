//! Draws calls per minute against the limit as an SVG file.

use std::fmt::Write as _;

/// The colours of a page.
#[derive(Debug)]
pub(super) struct Colours {
    text: &'static str,
    faint: &'static str,
    grid: &'static str,
    without: &'static str,
    with: &'static str,
}

pub(super) const LIGHT: Colours = Colours {
    text: "#1f2328",
    faint: "#59636e",
    grid: "#d1d9e0",
    without: "#c4400b",
    with: "#0969da",
};

pub(super) const DARK: Colours = Colours {
    text: "#f0f6fc",
    faint: "#9198a1",
    grid: "#3d444d",
    without: "#f0883e",
    with: "#58a6ff",
};

/// What is drawn: one value per step, in calls of the last minute.
#[derive(Debug)]
pub(super) struct Curves {
    /// Each for itself: all calls that reached the provider.
    pub(super) sent: Vec<u64>,
    /// … and those that it accepted.
    pub(super) accepted: Vec<u64>,
    /// Through the tap: all calls that reached the provider.
    pub(super) tapped: Vec<u64>,
}

#[derive(Debug)]
pub(super) struct Plot {
    pub(super) limit: u64,
    pub(super) minutes: u64,
    pub(super) curves: Curves,
    /// Calls that were refused without the tap.
    pub(super) refused: usize,
}

const WIDTH: u64 = 760;
const HEIGHT: u64 = 320;
const LEFT: u64 = 48;
const RIGHT: u64 = 16;
const TOP: u64 = 44;
const BOTTOM: u64 = 44;
/// Calls per grid line.
const GRID: u64 = 100;

impl Plot {
    /// The top of the scale.
    fn most(&self) -> u64 {
        let most = self.curves.sent.iter().max().copied().unwrap_or(0).max(self.limit);
        most.next_multiple_of(GRID)
    }

    fn x(&self, step: usize) -> u64 {
        let steps = self.curves.sent.len() as u64 - 1;
        LEFT * 10 + (WIDTH - LEFT - RIGHT) * 10 * step as u64 / steps
    }

    fn y(&self, calls: u64) -> u64 {
        let height = (HEIGHT - TOP - BOTTOM) * 10;
        TOP * 10 + height - height * calls / self.most()
    }

    fn points(&self, values: &[u64]) -> Vec<String> {
        let point = |(step, calls)| format!("{},{}", tenths(self.x(step)), tenths(self.y(calls)));
        values.iter().copied().enumerate().map(point).collect()
    }

    pub(super) fn draw(&self, colours: &Colours) -> String {
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
             font-family=\"system-ui, -apple-system, 'Segoe UI', sans-serif\" font-size=\"14\" \
             role=\"img\">\n<title>Calls sent per minute against the limit of {}: five agents \
             without Standpipe, and through Standpipe</title>\n",
            self.limit
        );
        self.scale(&mut svg, colours);
        self.lines(&mut svg, colours);
        self.labels(&mut svg, colours);
        svg.push_str("</svg>\n");
        svg
    }

    fn scale(&self, svg: &mut String, colours: &Colours) {
        let Colours { faint, grid, .. } = colours;
        for calls in (0..=self.most()).step_by(GRID as usize) {
            let y = tenths(self.y(calls));
            let right = WIDTH - RIGHT;
            let _ = writeln!(svg, "<path d=\"M{LEFT} {y}H{right}\" stroke=\"{grid}\"/>");
            let _ = writeln!(svg, "{}", text(LEFT - 8, &y, faint, "end", 4, &calls.to_string()));
        }
        let floor = (HEIGHT - BOTTOM + 20).to_string();
        for minute in 0..=self.minutes {
            let x = LEFT + (WIDTH - LEFT - RIGHT) * minute / self.minutes;
            let (at, anchor) = match minute {
                0 => ("0".to_owned(), "start"),
                last if last == self.minutes => (format!("{last} min"), "end"),
                other => (other.to_string(), "middle"),
            };
            let _ = writeln!(svg, "{}", text(x, &floor, faint, anchor, 0, &at));
        }
    }

    fn lines(&self, svg: &mut String, colours: &Colours) {
        let Colours { text, without, with, .. } = colours;
        let sent = self.points(&self.curves.sent);
        let accepted = self.points(&self.curves.accepted);
        let refused = sent.iter().chain(accepted.iter().rev()).cloned().collect::<Vec<_>>();
        let _ = writeln!(
            svg,
            "<polygon points=\"{}\" fill=\"{without}\" fill-opacity=\"0.18\"/>",
            refused.join(" ")
        );
        for (points, colour) in [(sent, without), (self.points(&self.curves.tapped), with)] {
            let _ = writeln!(
                svg,
                "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2.5\" \
                 stroke-linejoin=\"round\"/>",
                points.join(" ")
            );
        }
        let _ = writeln!(
            svg,
            "<path d=\"M{LEFT} {}H{}\" stroke=\"{text}\" stroke-width=\"1.5\" \
             stroke-dasharray=\"6 4\"/>",
            tenths(self.y(self.limit)),
            WIDTH - RIGHT
        );
    }

    fn labels(&self, svg: &mut String, colours: &Colours) {
        let Colours { text: dark, without, with, .. } = colours;
        let mut put = |x: u64, y: u64, colour: &str, anchor: &str, what: &str| {
            let _ = writeln!(svg, "{}", text(x, &y.to_string(), colour, anchor, 0, what));
        };
        put(LEFT, 20, dark, "start", "Calls that reach the provider, in the last 60 s");
        let (limit, middle) = (self.y(self.limit) / 10, LEFT + (WIDTH - LEFT - RIGHT) / 2);
        let refused = format!("without Standpipe: {} calls refused (429)", self.refused);
        put(middle, (limit + TOP) / 2, without, "middle", &refused);
        put(middle, limit - 8, dark, "middle", &format!("limit: {} per minute", self.limit));
        put(middle, limit + 20, with, "middle", "through Standpipe: 0 refused");
    }
}

fn text(x: u64, y: &str, colour: &str, anchor: &str, down: u64, what: &str) -> String {
    format!(
        "<text x=\"{x}\" y=\"{y}\" dy=\"{down}\" fill=\"{colour}\" text-anchor=\"{anchor}\">\
         {what}</text>"
    )
}

/// A tenth of a number, with one decimal.
fn tenths(value: u64) -> String {
    format!("{}.{}", value / 10, value % 10)
}
