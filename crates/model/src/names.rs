//! What others call our weights, as data: one table for each family, read both ways.
//!
//! A rule has our name and theirs, with `{}` for a part between dots that both have, such as the number of a layer or `weight`:
//!
//! ```text
//! encoder.layers.{}.self_attn.q_proj.{}  ↔  bert.encoder.layer.{}.attention.self.query.{}
//! ```
//!
//! A stored matrix may be the transpose of ours (GPT-2's `Conv1D`), and one stored tensor may be several of ours on top of each other
//! (a fused q·k·v). Loading ([`Names::read`]) gives the tensors of a checkpoint our names; the numbers are read later, in the right
//! order. Saving ([`Names::stage`]) goes through the same rules.

use crate::checkpoint::{Checkpoint, Entry, Item, SCALE, Staged, StoredNames, StoredType, stage_items};
use crate::convert::Old;
use crate::error::Error;
use attentive_tensor::{Backend, Parameter, Shape, Tensor};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

/// The table of a family. All names but ours are as transformers writes them for a model with a head.
#[derive(Debug)]
pub struct Names {
    /// Our names and theirs.
    pub rules: &'static [Rule],
    /// What a file without a head may leave out at the beginning of a name, such as `bert.`; often empty.
    pub prefix: &'static str,
    /// Endings that older versions wrote, and what they are now.
    pub old_endings: &'static [(&'static str, &'static str)],
    /// Tensors that follow from the configuration, with `{}` as in rules: they are not read.
    pub buffers: &'static [&'static str],
    /// What the names of heads begin with: a model for another task does not need them.
    pub heads: &'static [&'static str],
    /// A second name of a tensor, and its first: files may have either or both.
    pub tied: &'static [(&'static str, &'static str)],
}

/// Our name of a tensor, theirs, and how theirs is stored.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    ours: &'static str,
    theirs: &'static str,
    form: Form,
}

/// How a stored tensor differs from ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Form {
    /// A matrix is `[in, out]` where ours is `[out, in]`.
    pub transposed: bool,
    /// Weights of a convolution are `[out, in, height, width]` where ours are `[out, height, width, in]`.
    pub channels_first: bool,
    /// Ours is this part, counted from 0, of so many equal ones: rows of `[out, in]`.
    pub part: Option<(usize, usize)>,
}

impl Rule {
    /// A tensor that is stored as it is.
    pub const fn new(ours: &'static str, theirs: &'static str) -> Rule {
        Rule { ours, theirs, form: Form { transposed: false, channels_first: false, part: None } }
    }

    /// The same, stored as the transpose if it is a matrix.
    pub const fn transposed(self) -> Rule {
        Rule { form: Form { transposed: true, ..self.form }, ..self }
    }

    /// The same, stored with its channels first if it has four dimensions, as the weights of a convolution are.
    pub const fn channels_first(self) -> Rule {
        Rule { form: Form { channels_first: true, ..self.form }, ..self }
    }

    /// The same, stored as part `index` of `of` equal ones: rows of a matrix `[out, in]`, or of a vector.
    pub const fn part(self, index: usize, of: usize) -> Rule {
        Rule { form: Form { part: Some((index, of)), ..self.form }, ..self }
    }
}

/// A checkpoint under our names, and the tensors that no rule knows.
#[derive(Debug)]
pub struct Read {
    /// The tensors that have a rule, by our names.
    pub checkpoint: Checkpoint,
    /// The others, by the names that they have in the file.
    rest: Vec<String>,
}

/// Tensors of a file that a model did not take, by the names that they have in the file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Unused {
    /// Heads of other tasks, and what follows from the configuration: nothing is wrong with them.
    pub ignored: Vec<String>,
    /// What nothing is known of: the model may not compute what its makers meant.
    pub unknown: Vec<String>,
}

impl Names {
    /// What a file calls the tensor that we call `ours`, and how it is stored. What has no rule has the same name.
    pub fn stored(&self, ours: &str) -> (String, Form) {
        let rule =
            self.rules.iter().find_map(|rule| Some((rename(rule.ours, rule.theirs, ours)?, rule.form)));
        rule.unwrap_or_else(|| (ours.to_owned(), Form::default()))
    }

    /// What a new file calls the tensor that we call `ours`; without `prefixed` it has no prefix.
    pub fn name_in_file(&self, ours: &str, prefixed: bool) -> String {
        let (full, _) = self.stored(ours);
        full.strip_prefix(self.prefix).filter(|_| !prefixed).unwrap_or(&full).to_owned()
    }

    /// What we call the tensors that a file has under one name.
    fn ours(&self, full: &str) -> impl Iterator<Item = (String, Form)> {
        self.rules.iter().filter_map(move |rule| Some((rename(rule.theirs, rule.ours, full)?, rule.form)))
    }

    /// The name that transformers would write today for a stored one: with its prefix, and its new ending.
    fn full(&self, stored: &str) -> String {
        let old = self.old_endings.iter().find_map(|(old, new)| {
            let start = stored.strip_suffix(old)?;
            (start.is_empty() || start.ends_with('.')).then(|| format!("{start}{new}"))
        });
        let name = old.unwrap_or_else(|| stored.to_owned());
        let with_prefix = format!("{}{name}", self.prefix);
        if !self.knows(&name) && self.knows(&with_prefix) { with_prefix } else { name }
    }

    fn knows(&self, full: &str) -> bool {
        self.ours(full).next().is_some() || self.is_second_name(full).is_some() || self.is_ignored(full)
    }

    /// The first name of a tensor, if this is its second.
    fn is_second_name(&self, full: &str) -> Option<&'static str> {
        self.tied.iter().find(|(second, _)| *second == full).map(|(_, first)| *first)
    }

    fn is_ignored(&self, full: &str) -> bool {
        let is_buffer = |buffer: &&str| rename(buffer, buffer, full).is_some();
        self.buffers.iter().any(is_buffer) || self.heads.iter().any(|head| full.starts_with(head))
    }

    /// Gives the tensors of a checkpoint our names.
    pub fn read(&'static self, checkpoint: Checkpoint) -> Result<Read, Error> {
        let wrong = |problem| Error::Format { path: checkpoint.path().to_owned(), problem };
        let (mut entries, mut stored, mut rest) = (BTreeMap::new(), BTreeMap::new(), Vec::new());
        let mut second_names = Vec::new();
        for (name, entry) in checkpoint.entries() {
            // The scales of a matrix in int8 go where the matrix goes.
            let matrix = name.strip_suffix(SCALE).filter(|matrix| checkpoint.is_int8(matrix));
            let (base, ending) = matrix.map_or((&**name, ""), |matrix| (matrix, SCALE));
            let full = self.full(base);
            if let Some(first) = self.is_second_name(&full) {
                second_names.push((name, entry, full, first, ending));
                continue;
            }
            let mut known = false;
            for (ours, form) in self.ours(&full) {
                known = true;
                let ours = format!("{ours}{ending}");
                let entry = as_ours(entry, form).map_err(|problem| wrong(format!("`{name}` {problem}")))?;
                if let Some(other) = stored.insert(ours.clone(), name.clone()) {
                    return Err(wrong(format!("`{other}` and `{name}` are two names of one tensor")));
                }
                entries.insert(ours, entry);
            }
            if !known {
                rest.push(name.clone());
            }
        }
        // Of several second names, the first in the table comes first.
        let place = |second: &str| self.tied.iter().position(|(name, _)| *name == second);
        second_names.sort_by_key(|(_, _, second, ..)| place(second));
        for (name, entry, second, first, ending) in second_names {
            // Where the first name is missing, the second stands for it; else it is kept to be compared.
            let first = self.ours(first).next().map(|(ours, _)| format!("{ours}{ending}"));
            let absent = first.filter(|ours| !entries.contains_key(ours));
            let ours = absent.unwrap_or_else(|| format!("{second}{ending}"));
            stored.insert(ours.clone(), name.clone());
            entries.insert(ours, entry.clone());
        }
        let stored = StoredUnder { names: self, stored };
        Ok(Read { checkpoint: checkpoint.with_names(entries, stored), rest })
    }

    /// Writes parameters under their names; they take the place of `path` when they are committed. Without `prefixed`, names have
    /// no prefix.
    ///
    /// # Panics
    /// If a part of a stored tensor is not among the parameters.
    pub fn stage(
        &self,
        path: &Path,
        backend: &dyn Backend,
        parameters: &[Parameter],
        prefixed: bool,
    ) -> Result<Staged, Error> {
        let wholes = self.wholes(parameters, prefixed);
        let items: Vec<Item> = wholes.iter().map(Whole::item).collect();
        stage_items(path, &items, None, |i| Ok(wholes[i].bytes(backend)))
    }

    /// The numbers in a file that [`Names::stage`] wrote, in the order of the parameters.
    pub fn read_parameters(
        &'static self,
        path: &Path,
        backend: &dyn Backend,
        parameters: &[Parameter],
    ) -> Result<Vec<Tensor>, Error> {
        let file = self.read(Checkpoint::open(path)?)?.checkpoint;
        let read = |parameter: &Parameter| file.tensor(backend, parameter.name(), parameter.value().shape());
        parameters.iter().map(read).collect()
    }

    /// The tensors of the files that `read` comes from which have these parameters, each once, and what a new file calls them.
    ///
    /// # Panics
    /// If a part of a stored tensor is not among the parameters.
    pub(crate) fn in_files(&self, read: &Read, parameters: &[Parameter], prefixed: bool) -> Vec<Old> {
        let old = |whole: &Whole| {
            let part = whole.parts.values().next().expect("a tensor has a part");
            let Item { name: new_name, shape, .. } = whole.item();
            Old { name: read.checkpoint.stored_name(part.name()), new_name, shape, converts: true }
        };
        self.wholes(parameters, prefixed).iter().map(old).collect()
    }

    /// The tensors of a file, each with the parameters that it has.
    fn wholes<'a>(&self, parameters: &'a [Parameter], prefixed: bool) -> Vec<Whole<'a>> {
        let (mut wholes, mut places) = (Vec::<Whole>::new(), HashMap::new());
        for parameter in parameters {
            let (_, form) = self.stored(parameter.name());
            let name = self.name_in_file(parameter.name(), prefixed);
            let place = *places.entry(name.clone()).or_insert(wholes.len());
            if place == wholes.len() {
                wholes.push(Whole { name, form, parts: BTreeMap::new(), of: 1 });
            }
            let (index, of) = form.part.unwrap_or((0, 1));
            wholes[place].parts.insert(index, parameter);
            wholes[place].of = of;
        }
        wholes
    }

    /// Refuses a file in which a second name has other numbers than the first; `why` says what ties them.
    pub fn check_tied(&self, checkpoint: &Checkpoint, why: &str) -> Result<(), Error> {
        for (second, first) in self.tied {
            for (ours, _) in self.ours(first) {
                if checkpoint.has(&ours) && checkpoint.has(second) && !checkpoint.same(&ours, second)? {
                    let (first, second) = (checkpoint.stored_name(&ours), checkpoint.stored_name(second));
                    let problem = format!("`{second}` differs from `{first}`, but {why}");
                    return Err(Error::Format { path: checkpoint.path().to_owned(), problem });
                }
            }
        }
        Ok(())
    }

    /// What a model did not take of a file, which are all but its parameters and `others`. What nothing is known of is worth a
    /// warning.
    pub fn unused(&self, read: &Read, parameters: &[Parameter], others: &[&str]) -> Unused {
        let taken: BTreeSet<&str> =
            parameters.iter().map(Parameter::name).chain(others.iter().copied()).collect();
        let is_taken =
            |ours: &str| taken.contains(ours.strip_suffix(SCALE).unwrap_or(ours)) || taken.contains(ours);
        let tied = |ours: &str| self.tied.iter().any(|(second, _)| *second == ours);
        let left = read.checkpoint.names().into_iter().filter(|ours| !is_taken(ours));
        // A second name that is no parameter is neither unknown nor left over.
        let left = left.filter(|ours| !tied(ours)).map(|ours| read.checkpoint.stored_name(&ours));
        let all: BTreeSet<String> = left.chain(read.rest.iter().cloned()).collect();
        let (ignored, unknown): (_, Vec<String>) =
            all.into_iter().partition(|name| self.is_ignored(&self.full(name)));
        if let Some(first) = unknown.first() {
            let (path, count) = (read.checkpoint.path().display(), unknown.len());
            tracing::warn!(
                "{path}: {count} tensors do not belong to the model that config.json describes, and are not used, such as `{first}`"
            );
        }
        Unused { ignored, unknown }
    }
}

/// The names that the tensors of a checkpoint have in its files.
#[derive(Debug)]
struct StoredUnder {
    names: &'static Names,
    /// By our names, those that are there.
    stored: BTreeMap<String, String>,
}

impl StoredNames for StoredUnder {
    fn of(&self, ours: &str) -> String {
        let expected = || {
            let prefixed = self.stored.values().any(|name| name.starts_with(self.names.prefix));
            self.names.name_in_file(ours, prefixed)
        };
        self.stored.get(ours).cloned().unwrap_or_else(expected)
    }
}

/// A tensor of a file, and the parameters that it is made of.
struct Whole<'a> {
    name: String,
    form: Form,
    parts: BTreeMap<usize, &'a Parameter>,
    of: usize,
}

impl Whole<'_> {
    /// The shape of all parts on top of each other, in our order.
    fn shape(&self) -> Shape {
        assert_eq!(self.parts.len(), self.of, "`{}` cannot be saved without all of its parts", self.name);
        let first = self.parts.values().next().expect("a tensor has a part").value().shape();
        let mut sizes = first.to_vec();
        if let Some(rows) = sizes.first_mut() {
            *rows *= self.of;
        }
        Shape::from(&sizes[..])
    }

    fn item(&self) -> Item {
        let mut sizes = self.shape().to_vec();
        if self.form.transposed {
            sizes.reverse();
        }
        if let (true, &[outputs, height, width, inputs]) = (self.form.channels_first, &sizes[..]) {
            sizes = vec![outputs, inputs, height, width];
        }
        Item { name: self.name.clone(), shape: Shape::from(&sizes[..]), stored: StoredType::F32 }
    }

    fn bytes(&self, backend: &dyn Backend) -> Vec<u8> {
        let numbers = self.parts.values().flat_map(|part| backend.download_f32(&part.value()));
        let mut numbers: Vec<f32> = numbers.collect();
        if let (true, &[rows, cols]) = (self.form.transposed, &self.shape()[..]) {
            numbers = (0..rows * cols).map(|i| numbers[i % rows * cols + i / rows]).collect();
        }
        if let (true, &[_, height, width, inputs]) = (self.form.channels_first, &self.shape()[..]) {
            let (pixels, output) = (height * width, height * width * inputs);
            let ours = |i: usize| i / output * output + i % pixels * inputs + i % output / pixels;
            numbers = (0..numbers.len()).map(|i| numbers[ours(i)]).collect();
        }
        numbers.iter().flat_map(|x| x.to_le_bytes()).collect()
    }
}

/// A stored tensor, or the part of it, that is one of ours; its numbers stay where they are.
fn as_ours(entry: &Entry, form: Form) -> Result<Entry, String> {
    let int8 = entry.dtype == StoredType::Int8.dtype();
    if form.transposed && int8 {
        return Err("is stored in int8 with a scale for each input, which is not supported".to_owned());
    }
    let whole = if form.transposed { entry.clone().transposed() } else { entry.clone() };
    let whole = if form.channels_first { whole.channels_last() } else { whole };
    match form.part {
        None => Ok(whole),
        Some((index, of)) => whole.part(index, of).ok_or_else(|| {
            format!("has shape {:?}, which cannot be divided into {of} equal parts", entry.shape)
        }),
    }
}

/// `name` with the parts that `from` has a `{}` for put into `to`; none if it is no such name.
fn rename(from: &str, to: &str, name: &str) -> Option<String> {
    let mut found = Vec::new();
    let (mut pattern, mut parts) = (from.split('.'), name.split('.'));
    loop {
        match (pattern.next(), parts.next()) {
            (None, None) => break,
            (Some("{}"), Some(part)) => found.push(part),
            (Some(expected), Some(part)) if expected == part => {}
            _ => return None,
        }
    }
    let mut found = found.into_iter();
    let fill =
        |part: &str| if part == "{}" { found.next().unwrap_or_default().to_owned() } else { part.to_owned() };
    Some(to.split('.').map(fill).collect::<Vec<_>>().join("."))
}
