//! A sentence or more between two block tags: its text, and a tree of the inline markup in it.

use super::items::{Item, ItemKind};
use std::cmp::Reverse;
use std::ops::Range;

/// Text that is translated together, with the inline markup that stands in it.
#[derive(Debug, Clone)]
pub struct Block<'a> {
    /// Where it stands in the document.
    pub(super) span: Range<usize>,
    pub(super) text: String,
    /// Parents before their children, the block itself first; otherwise in the order of the source.
    pub(super) nodes: Vec<Node<'a>>,
}

/// Inline markup.
#[derive(Debug, Clone)]
pub(super) struct Node<'a> {
    pub parent: usize,
    /// The bytes of the block's text that it is around; none if it is a point.
    pub range: Range<usize>,
    pub kind: NodeKind<'a>,
}

#[derive(Debug, Clone)]
pub(super) enum NodeKind<'a> {
    /// An element with text. A tag that stands in another block, or nowhere, is empty; the element goes on to the edge of
    /// its parent then.
    Element { open: &'a str, close: &'a str },
    /// Markup without text of its own. White space beside it that only parted it from the text belongs to it, so that the
    /// text reads as if the markup had never been there. A line break that parts words stands before a space which is not
    /// written.
    Point { before: String, markup: &'a str, after: String, parts_words: bool },
}

impl<'a> Block<'a> {
    /// Makes a block of the items between two breaks; none if there is nothing to translate.
    pub(super) fn new(html: &'a str, items: &[Item]) -> Option<Block<'a>> {
        let is_prose = |item: &Item| matches!(&item.kind, ItemKind::Text(text) if !text.trim().is_empty());
        if !items.iter().any(is_prose) {
            return None;
        }
        let span = items.first()?.span.start..items.last()?.span.end;
        let mut events = Events::new(html, items);
        events.collapse();
        Some(events.block(span))
    }

    /// The text, with the characters that entities stand for and the white space of the source.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The text as a translator reads it: in one line, since a line break in HTML is white space like any other.
    pub fn line(&self) -> String {
        let words: Vec<&str> =
            self.text.split([' ', '\t', '\n', '\r', '\u{c}']).filter(|word| !word.is_empty()).collect();
        words.join(" ")
    }

    /// The inline tags and the rest of the markup in the text, each with the byte of the text that it stands at, in the order
    /// of the source.
    pub fn marks(&self) -> Vec<(usize, &'a str)> {
        let mut marks = Vec::new();
        // The elements that are open.
        let mut open: Vec<usize> = Vec::new();
        for (place, node) in self.nodes.iter().enumerate().skip(1) {
            while let Some(element) = open.pop_if(|element| *element != node.parent) {
                self.nodes[element].push_end(&mut marks);
            }
            match &node.kind {
                NodeKind::Element { open: tag, .. } => {
                    marks.push((node.range.start, *tag));
                    open.push(place);
                }
                NodeKind::Point { markup, .. } => marks.push((node.range.start, *markup)),
            }
        }
        while let Some(element) = open.pop() {
            self.nodes[element].push_end(&mut marks);
        }
        marks.retain(|(_, markup)| !markup.is_empty());
        marks
    }
}

impl<'a> Node<'a> {
    fn push_end(&self, marks: &mut Vec<(usize, &'a str)>) {
        if let NodeKind::Element { close, .. } = self.kind {
            marks.push((self.range.end, close));
        }
    }
}

/// The items of a block, and the elements that their tags make, by the numbers of the items.
struct Events<'a> {
    html: &'a str,
    spans: Vec<Range<usize>>,
    events: Vec<Event>,
    elements: Vec<Element>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Event {
    Text(String),
    Tag,
    Point,
    LineBreak,
    /// Part of the point before it.
    Gone,
}

/// The text of a block.
#[derive(Default)]
struct Assembled {
    text: String,
    /// Where each item stands in the text, and where it ends.
    starts: Vec<usize>,
    points: Vec<PointEvent>,
    /// How many bytes at the end of the text are white space that stands directly before the next item.
    loose: usize,
}

/// A point, with the white space that belongs to it.
struct PointEvent {
    place: usize,
    spaces: [String; 2],
    /// Whether there is a space behind it that only the text has.
    parts_words: bool,
}

/// The text behind a point.
#[derive(Default)]
struct Behind<'a> {
    first: Option<char>,
    /// The white space that stands directly behind the point.
    space: &'a str,
    /// The character behind that.
    past_space: Option<char>,
}

impl Assembled {
    fn push_text(&mut self, text: &str) {
        self.starts.push(self.text.len());
        self.text.push_str(text);
        self.loose = text.len() - text.trim_end().len();
    }

    fn push_tag(&mut self) {
        self.starts.push(self.text.len());
        self.loose = 0;
    }

    /// Adds a point, and returns how many bytes of white space behind it are its own.
    fn push_point(&mut self, place: usize, is_break: bool, behind: &Behind) -> usize {
        let edge = self.text.len() - self.loose;
        let mut spaces = <[String; 2]>::default();
        if edge < self.text.len()
            && !is_space(self.text[..edge].chars().next_back())
            && gives_way(behind.first, CLOSING)
        {
            spaces[0] = self.text.split_off(edge);
        } else if !is_space(behind.past_space) && gives_way(self.text.chars().next_back(), OPENING) {
            spaces[1] = behind.space.to_owned();
        }
        let taken = spaces[1].len();
        let is_word = |character: Option<char>| character.is_some_and(|character| !character.is_whitespace());
        let parts_words = is_break
            && spaces.iter().all(String::is_empty)
            && is_word(self.text.chars().next_back())
            && is_word(behind.first);
        self.push_tag();
        if parts_words {
            self.text.push(' ');
        }
        self.points.push(PointEvent { place, spaces, parts_words });
        taken
    }
}

/// From its first item to its last, tags included.
#[derive(Debug, Clone)]
struct Element {
    first: usize,
    last: usize,
    has_open: bool,
    has_close: bool,
}

impl<'a> Events<'a> {
    fn new(html: &'a str, items: &[Item]) -> Events<'a> {
        let event = |item: &Item| match &item.kind {
            ItemKind::Text(text) => Event::Text(text.clone()),
            ItemKind::Open(_) | ItemKind::Close(_) => Event::Tag,
            ItemKind::LineBreak => Event::LineBreak,
            ItemKind::Point | ItemKind::Break => Event::Point,
        };
        let spans = items.iter().map(|item| item.span.clone()).collect();
        Events { html, spans, events: items.iter().map(event).collect(), elements: elements(items) }
    }

    /// Makes a point of each element that has no text.
    fn collapse(&mut self) {
        let mut texts = vec![0; self.events.len() + 1];
        for (place, event) in self.events.iter().enumerate() {
            texts[place + 1] = texts[place] + usize::from(matches!(event, Event::Text(_)));
        }
        let mut end = 0;
        let mut kept = Vec::new();
        let mut points = Vec::new();
        for element in std::mem::take(&mut self.elements) {
            if element.first < end {
                // Part of one that is a point already.
                continue;
            }
            if texts[element.last + 1] > texts[element.first] {
                kept.push(element);
            } else {
                end = element.last + 1;
                points.push(element.first..end);
            }
        }
        self.elements = kept;
        for point in points {
            self.spans[point.start].end = self.spans[point.end - 1].end;
            let has_break = self.events[point.clone()].contains(&Event::LineBreak);
            self.events[point.start] = if has_break { Event::LineBreak } else { Event::Point };
            self.events[point.start + 1..point.end].fill(Event::Gone);
        }
    }

    fn block(self, span: Range<usize>) -> Block<'a> {
        let Assembled { text, starts, points, .. } = self.assemble();
        // Of each node its first and last item, and what it is.
        let mut nodes: Vec<(usize, usize, NodeKind)> = Vec::new();
        for element in &self.elements {
            let tag = |item: usize, is_there: bool| if is_there { self.source(item) } else { "" };
            let (open, close) = (tag(element.first, element.has_open), tag(element.last, element.has_close));
            nodes.push((element.first, element.last, NodeKind::Element { open, close }));
        }
        for PointEvent { place, spaces: [before, after], parts_words } in points {
            let markup = self.source(place);
            nodes.push((place, place, NodeKind::Point { before, markup, after, parts_words }));
        }
        // Of nodes that begin with the same item the longer ones are the parents.
        nodes.sort_by_key(|(first, last, _)| (*first, Reverse(*last)));
        let root = Node { parent: 0, range: 0..text.len(), kind: NodeKind::Element { open: "", close: "" } };
        let mut tree = vec![root];
        let mut open: Vec<(usize, usize)> = Vec::new();
        for (first, last, kind) in nodes {
            while open.pop_if(|(_, end)| *end < first).is_some() {}
            let parent = open.last().map_or(0, |(node, _)| *node);
            let mut range = starts[first]..starts[first];
            if matches!(kind, NodeKind::Element { .. }) {
                open.push((tree.len(), last));
                range.end = starts[last + 1];
            }
            tree.push(Node { parent, range, kind });
        }
        Block { span, text, nodes: tree }
    }

    /// Joins the texts, and gives points the white space beside them where the text does not need it.
    fn assemble(&self) -> Assembled {
        let next_texts = self.next_texts();
        let mut all = Assembled::default();
        // How many bytes at the beginning of the next text have gone to a point.
        let mut taken = 0;
        for (place, event) in self.events.iter().enumerate() {
            match event {
                Event::Text(own) => all.push_text(&own[std::mem::take(&mut taken)..]),
                Event::Tag => all.push_tag(),
                Event::Gone => all.starts.push(all.text.len()),
                Event::Point | Event::LineBreak => {
                    let is_break = *event == Event::LineBreak;
                    taken = all.push_point(place, is_break, &self.behind(place, &next_texts));
                }
            }
        }
        all.starts.push(all.text.len());
        all
    }

    /// The text behind a point.
    fn behind(&self, place: usize, next_texts: &[Option<usize>]) -> Behind<'_> {
        let Some(text) = next_texts[place + 1] else { return Behind::default() };
        let Event::Text(own) = &self.events[text] else { return Behind::default() };
        let space = own.len() - own.trim_start().len();
        let further = || match &self.events[next_texts[text + 1]?] {
            Event::Text(further) => further.chars().next(),
            _ => None,
        };
        let is_beside = self.events[place + 1..text].iter().all(|event| *event == Event::Gone);
        Behind {
            first: own.chars().next(),
            space: if is_beside { &own[..space] } else { "" },
            past_space: own[space..].chars().next().or_else(further),
        }
    }

    /// For each item the first one from it on that is text.
    fn next_texts(&self) -> Vec<Option<usize>> {
        let mut next = vec![None; self.events.len() + 1];
        for (place, event) in self.events.iter().enumerate().rev() {
            next[place] = if matches!(event, Event::Text(_)) { Some(place) } else { next[place + 1] };
        }
        next
    }

    fn source(&self, item: usize) -> &'a str {
        &self.html[self.spans[item].clone()]
    }
}

fn is_space(character: Option<char>) -> bool {
    character.is_some_and(char::is_whitespace)
}

/// Whether white space may go before or behind a character without making one word of two.
fn gives_way(character: Option<char>, marks: &str) -> bool {
    character.is_none_or(|character| character.is_whitespace() || marks.contains(character))
}

/// Marks that stand directly behind a word.
const CLOSING: &str = ".,;:!?…)]}»”’、。，；：！？）】」』";
/// Marks that stand directly before a word.
const OPENING: &str = "([{«„“‘¿¡（【「『";

/// The elements that tags make, parents before their children. An end tag ends what was opened inside its element; one that
/// ends nothing makes an element of all that its parent has so far.
fn elements(items: &[Item]) -> Vec<Element> {
    let mut elements: Vec<Element> = Vec::new();
    // The names and numbers of those that are open.
    let mut open: Vec<(&str, usize)> = Vec::new();
    for (place, item) in items.iter().enumerate() {
        match &item.kind {
            ItemKind::Open(name) => {
                open.push((name, elements.len()));
                let last = items.len() - 1;
                elements.push(Element { first: place, last, has_open: true, has_close: false });
            }
            ItemKind::Close(name) => match open.iter().rposition(|(opened, _)| opened == name) {
                Some(depth) => {
                    for (_, inside) in open.drain(depth + 1..) {
                        elements[inside].last = place - 1;
                    }
                    if let Some((_, closed)) = open.pop() {
                        elements[closed].last = place;
                        elements[closed].has_close = true;
                    }
                }
                None => {
                    let first = open.last().map_or(0, |(_, parent)| elements[*parent].first + 1);
                    elements.push(Element { first, last: place, has_open: false, has_close: true });
                }
            },
            _ => {}
        }
    }
    elements.sort_by_key(|element| (element.first, Reverse(element.last)));
    elements
}
