//! Where the heads of a ViT look in a picture: the picture once for each head, bright where the head looks.

use super::{Format, Inspect};
use crate::error::Error;
use crate::pictures;
use crate::precision::DecodingPrecision;
use attentive_generate::AttentionKind;
use attentive_image::{Filter, Picture};
use attentive_model::families::vit::Task;
use attentive_tasks::PictureEncoder;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::path::Path;

/// The least width of a picture that is drawn.
const NARROWEST: usize = 224;

/// Between two pictures.
const GAP: usize = 8;

/// Heads in a row, the picture itself before them.
const COLUMNS: usize = 6;

/// The brightness of what a head does not see.
const DARK: f32 = 0.15;

/// A picture of what one head sees.
struct Panel {
    title: String,
    picture: Picture,
}

/// Draws what a patch, or the class token, looks at: in the last layer, unless another is asked for.
pub(super) fn draw(inspect: &Inspect, folder: &Path) -> Result<Vec<u8>, Error> {
    if inspect.translation.is_some() {
        let problem = "the model reads pictures and does not translate: remove the option".to_owned();
        return Err(Error::Flag { option: "translation", problem });
    }
    let panels = panels(inspect, folder)?;
    Ok(match inspect.out.1 {
        Format::Png => sheet(&panels).to_png(),
        Format::Svg => svg(&panels).into_bytes(),
        Format::Html => page(&inspect.name(), &panels).into_bytes(),
    })
}

fn panels(inspect: &Inspect, folder: &Path) -> Result<Vec<Panel>, Error> {
    let (backend, form) = inspect.compute.encoder(inspect.precision.unwrap_or(DecodingPrecision::F32))?;
    let encoder = PictureEncoder::open(&backend, folder, Task::Hidden, form)?;
    let path = inspect.text.trim();
    let pixels = pictures::read(&encoder, path)?;
    let picture = Picture::open(Path::new(path)).map_err(attentive_tasks::Error::from)?;
    let seen = encoder
        .seen(&picture)
        .map_err(|problem| Error::Document { input: path.to_owned(), problem: problem.to_string() })?;
    let (config, grid) = (encoder.model().config(), encoder.grid(&pixels));
    let query = encoder.token_of(grid, inspect.patch.map(|patch| patch.map(|place| place - 1)));
    let query = query.ok_or_else(|| {
        let problem = format!("the picture has {} rows and {} columns of patches", grid[0], grid[1]);
        Error::Flag { option: "patch", problem }
    })?;
    let inspection = encoder.inspect(&pixels);
    let selectors = inspect.selectors(&[AttentionKind::Encoder], |_| (config.layers, config.h))?;
    let layer = inspect.layer.unwrap_or(config.layers) - 1;
    // What is drawn is large enough to be seen.
    let scale = NARROWEST.div_ceil(seen.width()).max(1);
    let base = seen
        .resized(seen.width() * scale, seen.height() * scale, Filter::Nearest)
        .map_err(|problem| Error::Inspect(problem.to_string()))?;
    let mut panels = vec![Panel { title: "picture".to_owned(), picture: base.clone() }];
    for selector in selectors.into_iter().filter(|selector| selector.layer == layer) {
        let matrix = inspection.weights(selector)?;
        let weights = &matrix.row(query)[config.tokens_before()..];
        let title = match selector.head {
            Some(head) => format!("layer {}, head {}", layer + 1, head + 1),
            None => format!("layer {}, mean", layer + 1),
        };
        panels.push(Panel { title, picture: lit(&base, grid, weights) });
    }
    Ok(panels)
}

/// The picture, as bright as the weights of its patches say; the greatest leaves it as it is.
fn lit(base: &Picture, [rows, columns]: [usize; 2], weights: &[f32]) -> Picture {
    let most = weights.iter().copied().fold(f32::MIN_POSITIVE, f32::max);
    let mut picture = base.clone();
    for y in 0..base.height() {
        for x in 0..base.width() {
            let patch = (y * rows / base.height()) * columns + x * columns / base.width();
            let light = DARK + (1.0 - DARK) * weights[patch] / most;
            picture.set(x, y, base.pixel(x, y).map(|level| (f32::from(level) * light).round() as u8));
        }
    }
    picture
}

/// All panels on one white sheet.
fn sheet(panels: &[Panel]) -> Picture {
    let (width, height) = (panels[0].picture.width(), panels[0].picture.height());
    let columns = panels.len().min(COLUMNS);
    let rows = panels.len().div_ceil(columns);
    let size = |count: usize, side: usize| count * side + (count + 1) * GAP;
    let mut sheet = Picture::filled(size(columns, width), size(rows, height), [255; 3]);
    for (i, Panel { picture, .. }) in panels.iter().enumerate() {
        let [left, top] = [size(i % columns, width), size(i / columns, height)];
        for y in 0..height {
            for x in 0..width {
                sheet.set(left + x, top + y, picture.pixel(x, y));
            }
        }
    }
    sheet
}

fn embedded(picture: &Picture) -> String {
    format!("data:image/png;base64,{}", STANDARD.encode(picture.to_png()))
}

fn svg(panels: &[Panel]) -> String {
    const TITLE: usize = 20;
    let (width, height) = (panels[0].picture.width(), panels[0].picture.height());
    let columns = panels.len().min(COLUMNS);
    let rows = panels.len().div_ceil(columns);
    let (across, down) = (width + GAP, height + GAP + TITLE);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" font-family=\"sans-serif\" font-size=\"14\">\n",
        columns * across + GAP,
        rows * down + GAP
    );
    for (i, Panel { title, picture }) in panels.iter().enumerate() {
        let [left, top] = [GAP + i % columns * across, GAP + i / columns * down];
        svg.push_str(&format!(
            "<text x=\"{left}\" y=\"{}\">{title}</text>\n<image x=\"{left}\" y=\"{}\" width=\"{width}\" height=\"{height}\" \
             href=\"{}\"/>\n",
            top + TITLE - 6,
            top + TITLE,
            embedded(picture)
        ));
    }
    svg + "</svg>\n"
}

fn page(name: &str, panels: &[Panel]) -> String {
    let name: String = name.chars().filter(|c| !matches!(c, '<' | '>' | '&')).collect();
    let figure = |Panel { title, picture }: &Panel| {
        format!(
            "<figure><img src=\"{}\" alt=\"{title}\"><figcaption>{title}</figcaption></figure>\n",
            embedded(picture)
        )
    };
    let figures: String = panels.iter().map(figure).collect();
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>{name}</title>\n<style>\nbody {{ font-family: sans-serif; \
         margin: 1rem }}\nmain {{ display: flex; flex-wrap: wrap; gap: .5rem }}\nfigure {{ margin: 0 }}\n</style>\n\
         <h1>Where {name} selectors</h1>\n<main>\n{figures}</main>\n</html>\n"
    )
}
