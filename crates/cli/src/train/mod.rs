//! `attentive train`: two text files in, a translator out; or texts with labels in, a classifier out; and so on.

mod flags;
mod said;
mod watch;

use crate::error::Error;
use crate::interrupt::on_signal;
use crate::output;
use crate::ranks::{self, Mpi};
use attentive_train::{Outcome, Reason, Run, settings};
use clap::Args;
use flags::Flags;
use said::Said;
use serde::Serialize;
use std::io::{Write, stderr};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use watch::Watch;

/// The options of `attentive train`.
#[derive(Args)]
#[command(after_help = EXAMPLES, allow_negative_numbers = true)]
pub(crate) struct Train {
    /// Folder of the run, which becomes the model folder
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Read settings from FILE, such as the train.toml of another run; flags override them
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Resume the run in DIR from its last checkpoint, or start it if --source is given and there is none
    #[arg(long)]
    resume: bool,
    /// Print no progress
    #[arg(long, short)]
    quiet: bool,
    /// Print one line of JSON at the end
    #[arg(long)]
    json: bool,
    /// MPI of the launcher, where it cannot be told from the environment
    #[arg(long, value_enum, value_name = "MPI")]
    mpi: Option<Mpi>,
    #[command(flatten)]
    flags: Flags,
}

const EXAMPLES: &str = "\
Examples:
  attentive train --source train.en --target train.de --out en-de --minutes 30
  attentive train --source train.en --target train.de \\
                  --valid-source val.en --valid-target val.de --out en-de --minutes 60
  attentive train --out en-de --resume                        resume after Ctrl-C, kill or a power cut
  attentive train --out en-de --resume --minutes 120          train for longer
  attentive train --config en-de/train.toml --seed 2 --out second
  attentive train --task classify --from bert-base-uncased --data train.tsv --valid-data dev.tsv --out reviews
  attentive train --task tag --from bert-base-cased --data train.conll --valid-data dev.conll --out names
  attentive train --task answer --from roberta-base --data train-v1.1.json --valid-data dev-v1.1.json --out qa
  attentive train --task seq2seq --from t5-small --prefix \"summarize: \" --data train.jsonl --out summarizer
  attentive train --task lm --from gpt2 --data novel.txt --out novelist
  attentive train --task lm --characters --data shakespeare.txt --longest 256 --out poet --minutes 30
  attentive train --task mlm --data texts.txt --out own-bert --epochs 10
  mpirun -n 8 attentive train --source train.en --target train.de --out en-de --epochs 10
                                                              train on several machines; see docs/scale.md
  attentive train --task classify-images --from vit-base-patch16-224 --data photos --hflip 0.5 --out pets
  attentive train --task dino --data photos --epochs 100 --out seen
  attentive train --task detect --data train.json --valid-data val.json --out cells --minutes 60
  attentive train --task detect --data scenes --valid-data scenes --out shapes --minutes 60

Defaults that say \"chosen\" depend on the size of the corpus and on the limits. The run prints each choice \
with its reason and writes it into DIR/train.toml. The rules:
  --hold-out        2 % of the pairs, 50 to 1,000, at most a tenth; none with --valid-source
  --vocab-size      3 · √bytes, at most 32,000, at least twice the number of different characters
  --preset          small; tiny below 10,000 tokens; base from 20 million tokens, with 120 minutes or more or no --minutes;
                    a smaller preset if neither 4,000 steps nor 20 epochs fit into --minutes
  --batch-tokens    corpus tokens / 150, from 2,048 to 8,192; 16,384 for base and big
  --schedule        cosine, which reaches zero at --schedule-steps; without a limit inverse-sqrt
  --schedule-steps  the steps that fit into --epochs and --minutes; for --minutes a few steps are timed, and at most
                    40 epochs or 4,000 steps are used, whichever is more
  --warmup          a quarter of the steps, at most 4,000; without a limit ten epochs, from 200 to 4,000 steps
  --learning-rate   0.0016 · (256 / d_model)^1.2, at most 0.002; 0.0001 with --from
  --dropout         0.3 if each pair is seen 12 times or more, 0.2 if 4 times or more, else 0.1; corpora above
                    5 million tokens and tiny models get at most 0.2, corpora above 20 million 0.1
  --ema             0.999
  --validate-every  8 validations in a run below 10 minutes, 12 in a longer one; without a limit one per epoch
  --validate-lines  33 per minute of the run, from 100 to 1,000, at most all validation pairs
  --early-stopping  bleu if 500 or more validation lines are translated, else chrf
  --patience        10 without a limit, else none
All other defaults are those of the paper: post-norm, Adam(0.9, 0.98, 1e-9), label smoothing 0.1.

The tasks mlm, classify, tag and answer train a BERT: a new one (presets tiny, small, base, big), or the one in --from, which keeps its \
tokenizer, its dropout and, if the labels are the same, its head. Their rules:
  --epochs          3 with --from, else 10, if there is no other limit
  --learning-rate   0.00005 with --from, else 0.0001 · 768 / d_model
  --schedule        linear, after a warm-up of a tenth of the steps
  --validate-every  one epoch, at most 1,000 steps
  --early-stopping  accuracy for classify, f1 for tag (F1 of spans, as seqeval counts it), f1 for answer (as SQuAD counts it; \
exact is possible, too), loss for mlm
  --preset          tiny; small from 20 million tokens
  --dropout         0.1, or that of the model in --from; --ema is off; --batch-tokens is 16,384
The task lm trains a GPT-2 on texts, which it cuts into windows of --longest tokens. It follows the same rules, with windows up to \
1,024 tokens and batches of 8,192. Without --tokenizer and --from it trains byte pairs of bytes, as GPT-2 has them, with at least 512 \
tokens, or takes each character for a token (--characters).
The task seq2seq trains a T5 or BART (mBART, M2M-100, NLLB) in --from on pairs of texts, or a new T5 without --from. --prefix stands \
before each source; a source longer than --longest is cut, and a pair with a longer target is skipped. Models of several languages \
need --source-language and --target-language. It follows the rules of the other tasks, but for these:
  --learning-rate   0.0001 with --from, else that of a translator
  --early-stopping  loss; bleu, chrf and rouge (the F1 of ROUGE-L) are possible
  --validate-lines  200
The task classify-images trains a ViT: a new one, or the one in --from, by the rules of classify. --scale, --hflip, --color-jitter and \
the other augmentations let it see each picture a little differently in each epoch, in the order in which they are listed; they are those of \
torchvision and timm. The same seed gives the same pictures, with any number of threads. For --data scenes the label of a picture is the \
kind of its largest shape.
The task dino lets a ViT learn from pictures without their labels: a student sees parts of a picture and learns to predict the output of a teacher, its moving \
average, which sees two large parts. DIR has the teacher, for embed, inspect, and --from of classify-images. Labels are used for validation: the \
accuracy of the 20 nearest neighbours among (at most 10,000 of) the training pictures. It follows the rules of mlm, but for these:
  --epochs          100, if there is no other limit
  --learning-rate   0.0005 · pictures of a step / 256, along a cosine
  --hflip 0.5, --color-jitter 0.4 0.4 0.2 0.1, --color-jitter-prob 0.8, --grayscale-prob 0.2
  --gaussian-blur-prob  1 for the first global view; the second has a tenth of it, a local view half of it
  --solarize-prob   0.2, for the second global view alone
The task detect trains a DETR, a new one (small, or another --preset) with group norm, or the one in --from. It follows the rules of mlm; batches \
have 16 pictures, the gradient is clipped at 0.1, and --early-stopping is ap, COCO's average precision. Its data are COCO's annotations in JSON, with the \
pictures in the folder `images` beside the file, or in its own; or the word scenes: pictures of shapes that the program draws. With \
random weights the training loss includes an auxiliary loss for the encoder, which the validation loss does not.
Files for seq2seq are those for translate: --source with --target, .tsv, or .jsonl with the fields source and target.
Files for classify have lines of label and text, or of text and label, separated by a tab, or {\"text\": …, \"label\": …}; a second \
text makes a pair. Files for tag have a word and its tag a line (columns between them are ignored) and an empty line after each \
sentence, or {\"tokens\": […], \"tags\": […]}. Files for answer are those of SQuAD 1.1 and 2.0; a text longer than --longest (384) is \
read in windows that overlap by 128 tokens. Files for mlm have a text a line and files for lm any text, or {\"text\": …}.
Data for classify-images and dino is a folder with a folder for each class, a .tsv file of paths (from its own folder on) and labels, or a file \
like train-images-idx3-ubyte.gz with its labels beside it.

A run stops at --steps, --epochs or --minutes, at the end of its schedule, or after --patience validations \
without improvement. --resume with a higher limit extends the schedule. A resumed run gives the same model, to the bit, \
as a run without a break.

DIR is a model folder that attentive and transformers can read (MarianMTModel, or the class of the task's model), a translator also \
CTranslate2's converter. \
It also has checkpoints/, metrics.jsonl, report.html and train.toml (the settings of the run).

Ctrl-C saves a checkpoint and quits with exit code 130; a second Ctrl-C quits without saving. SIGUSR1 saves and quits, too.

Started by mpirun or srun, the processes (ranks) train together: a step has --accumulate batches, by default one for each rank, and each rank learns from its part of them. DIR and the corpus must be readable on every machine.";

pub(crate) fn run(train: &Train) -> Result<(), Error> {
    let group = ranks::join(train.mpi)?;
    let is_first = ranks::is_first(group.as_ref());
    let stop = attentive_ranks::stop_on_sigusr1();
    let quiet = train.quiet || !is_first;
    on_signal(move || {
        stop.store(true, Ordering::Relaxed);
        if !quiet {
            let _ = writeln!(stderr(), "\nSaving a checkpoint. Press Ctrl-C again to quit without saving.");
        }
    });
    let mut watch = Watch::new(quiet);
    if let Some(group) = group.as_ref().filter(|_| !is_first) {
        let mut tell = |event: &_| watch.event(event);
        let mut run = Run::together(&train.out, None, train.resume, group, &mut tell)?;
        let outcome = run.train(stop, &mut tell)?;
        return if outcome.reason == Reason::Interrupted { Err(Error::Interrupted) } else { Ok(()) };
    }
    let said = Said::read(train)?;
    let folder = &train.out;
    let outcome = {
        let mut tell = |event: &_| watch.event(event);
        said.draft().and_then(|draft| {
            let run = match &group {
                Some(group) => Run::together(folder, Some(draft), train.resume, group, &mut tell),
                None if train.resume => Run::resume(folder, draft, &mut tell),
                None => Run::begin(folder, draft, &mut tell),
            };
            run.and_then(|mut run| run.train(stop, &mut tell))
        })
    };
    watch.end();
    let outcome = outcome.map_err(|error| said.blame(error))?;
    if train.json {
        output::json(&Report::new(&outcome, folder))?;
    } else {
        watch.summary(&outcome, folder, &limits(folder));
    }
    if outcome.reason == Reason::Interrupted { Err(Error::Interrupted) } else { Ok(()) }
}

/// The limits of the run in a folder as flags, `--minutes` first, with their numbers; none where its settings cannot be read.
fn limits(folder: &Path) -> Vec<(&'static str, f64)> {
    let Ok(settings) = settings::load(folder) else { return Vec::new() };
    let steps = settings.steps.map(|steps| steps as f64);
    let limits = [("minutes", settings.minutes), ("epochs", settings.epochs), ("steps", steps)];
    limits.into_iter().filter_map(|(name, limit)| Some((name, limit?))).collect()
}

/// What the command says at the end.
#[derive(Serialize)]
struct Report<'a> {
    out: &'a Path,
    finished: bool,
    reason: String,
    step: u64,
    epoch: f64,
    seconds: f64,
    loss: Option<f64>,
    bleu: Option<f64>,
    chrf: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rouge: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    accuracy: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exact: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    f1: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ap: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ap50: Option<f64>,
    best_step: Option<u64>,
    /// Why more training would make the model better, if it would.
    undertrained: Option<String>,
    /// The share of the steps' time that was spent waiting for batches.
    waited: f64,
}

impl Report<'_> {
    fn new<'a>(outcome: &Outcome, out: &'a Path) -> Report<'a> {
        let best = outcome.best.as_ref();
        Report {
            out,
            finished: outcome.reason != Reason::Interrupted,
            reason: outcome.reason.to_string(),
            step: outcome.step,
            epoch: outcome.epoch,
            seconds: outcome.seconds,
            loss: best.map(|best| best.loss),
            bleu: best.and_then(|best| best.bleu),
            chrf: best.and_then(|best| best.chrf),
            rouge: best.and_then(|best| best.rouge),
            accuracy: best.and_then(|best| best.accuracy),
            exact: best.and_then(|best| best.exact),
            f1: best.and_then(|best| best.f1),
            ap: best.and_then(|best| best.ap),
            ap50: best.and_then(|best| best.ap50),
            best_step: best.map(|best| best.step),
            undertrained: outcome.undertrained.map(|why| why.to_string()),
            waited: outcome.waited_share(),
        }
    }
}
