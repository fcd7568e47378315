//! The pages of `docs/guide`: their commands run, and print what the pages show. (`rust.md` is a doc test of `attentive-tasks`.) The commands of
//! the README need models and texts of the reader, so only their names and options are checked.

use super::encoders::Model;
use super::translate;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// A page, and a folder of its own in which its commands run.
struct Page {
    name: String,
    blocks: Vec<Block>,
    folder: PathBuf,
}

/// A fenced block: the words behind the fence, the line of the page on which it begins, and its text.
struct Block {
    info: String,
    line: usize,
    text: String,
}

impl Page {
    fn new(name: &str) -> Page {
        let page = std::fs::read_to_string(Path::new(ROOT).join("docs/guide").join(name)).unwrap();
        let folder = std::env::temp_dir().join(format!("attentive-guide-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Page { name: name.to_owned(), blocks: blocks(&page), folder }
    }

    /// Puts a copy of a folder of the repository where the page has one of its own.
    fn with_folder(self, name: &str, from: &str) -> Page {
        let to = self.folder.join(name);
        std::fs::create_dir_all(&to).unwrap();
        for file in std::fs::read_dir(Path::new(ROOT).join(from)).unwrap() {
            let file = file.unwrap();
            std::fs::copy(file.path(), to.join(file.file_name())).unwrap();
        }
        self
    }

    /// Puts a small BERT there.
    fn with_bert(self, name: &str, model: &str) -> Page {
        let bert = Model::new(model, &format!("guide-{}-{model}", self.name));
        self.with_folder(name, &bert.name())
    }

    fn with_file(self, name: &str, text: &str) -> Page {
        std::fs::write(self.folder.join(name), text).unwrap();
        self
    }

    /// Runs all blocks of commands in order, but for those that are marked `no-run`, and compares what they print with the block of
    /// output that follows.
    fn run(&self) {
        let mut commands = 0;
        for (i, block) in self.blocks.iter().enumerate() {
            match &*block.info {
                "sh" => {
                    let shown = self.blocks.get(i + 1).filter(|next| next.info == "output");
                    self.run_block(block, shown.map(|next| &*next.text));
                    commands += 1;
                }
                "sh no-run" | "text" => {}
                "output" => {
                    assert!(i > 0 && self.blocks[i - 1].info == "sh", "{}: {}", self.name, block.line)
                }
                info => panic!("{}, line {}: unknown kind of block `{info}`", self.name, block.line),
            }
        }
        assert!(commands > 0, "{} has no commands", self.name);
    }

    fn run_block(&self, block: &Block, shown: Option<&str>) {
        let output = shell(&block.text).current_dir(&self.folder).output().unwrap();
        let (stdout, stderr) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        let place = format!("{}, line {}:\n{}", self.name, block.line, block.text);
        assert!(output.status.success(), "{place}\n{stdout}\n{stderr}");
        if let Some(shown) = shown {
            assert!(is_shown(&stdout, shown), "{place}\nprinted\n{stdout}\nand the page shows\n{shown}");
        }
    }
}

/// A shell that runs `text` with the built program in its path.
fn shell(text: &str) -> Command {
    let program = Path::new(env!("CARGO_BIN_EXE_attentive")).parent().unwrap();
    let mut path = OsString::from(program);
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap_or_default());
    let mut shell = Command::new("sh");
    shell.args(["-e", "-c", text]).env("PATH", path);
    shell.env_remove("ATTENTIVE_ISA").env("HF_HUB_OFFLINE", "1").stdin(std::process::Stdio::null());
    shell
}

impl Drop for Page {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// The fenced blocks of a page.
fn blocks(page: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut is_open = false;
    for (line, text) in page.lines().enumerate() {
        match text.strip_prefix("```") {
            Some(_) if is_open => is_open = false,
            Some(info) => {
                blocks.push(Block { info: info.to_owned(), line: line + 1, text: String::new() });
                is_open = true;
            }
            None if is_open => {
                let block = blocks.last_mut().unwrap();
                block.text.push_str(text);
                block.text.push('\n');
            }
            None => {}
        }
    }
    assert!(!is_open, "a block has no end");
    blocks
}

/// Whether a page shows what was printed. `…` stands for any text, also for several lines.
fn is_shown(printed: &str, shown: &str) -> bool {
    let mut rest = printed.trim_end();
    let mut parts = shown.trim_end().split('…');
    let first = parts.next().unwrap_or_default();
    let Some(after) = rest.strip_prefix(first) else { return false };
    rest = after;
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
    for part in middle {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

/// The model that comes with the program, in the place of one that takes some minutes to train or a network to get.
const NUMBERS: &str = "crates/serve/model";

#[test]
fn the_page_about_a_translator_from_two_files_is_true() {
    Page::new("translator.md").with_folder("numbers", NUMBERS).run();
}

#[test]
fn the_page_about_attention_is_true() {
    Page::new("attention.md")
        .with_folder("numbers", NUMBERS)
        .with_bert("bert-base-uncased", "masked")
        .with_folder("gpt2", "golden/gpt2/saved")
        .run();
}

#[test]
fn the_page_about_checkpoints_of_others_is_true() {
    let page = Page::new("hugging-face.md");
    translate::make_model(&page.folder.join("opus-mt-en-de"));
    page.with_bert("all-MiniLM-L6-v2", "hidden")
        .with_bert("bert-base-uncased", "masked")
        .with_bert("sentiment", "sequence")
        .with_folder("gpt2", "golden/gpt2/saved")
        .with_file("texts.txt", "a dog runs\nthe cat runs\na dog\n")
        .with_file("labels.tsv", &"dog\ta dog runs\ncat\tthe cat runs\n".repeat(12))
        .run();
}

/// The commands of a page that begin with `attentive`: in blocks, and between backquotes in its text.
fn commands(page: &str) -> Vec<String> {
    let blocks = blocks(page);
    let in_blocks = blocks.iter().filter(|block| block.info == "sh").flat_map(|block| block.text.lines());
    let text: String = page.split("```").step_by(2).collect();
    let in_text = text.split('`').skip(1).step_by(2);
    let all = in_blocks.chain(in_text).map(|command| command.split(" #").next().unwrap_or_default().trim());
    all.filter(|command| command.starts_with("attentive ")).map(str::to_owned).collect()
}

#[test]
fn the_commands_and_options_of_the_readme_exist() {
    let readme = std::fs::read_to_string(Path::new(ROOT).join("README.md")).unwrap();
    let commands = commands(&readme);
    assert!(commands.len() > 20, "{commands:?}");
    for command in commands {
        // Options before it are read first, and unknown ones are refused.
        let output = shell(&format!("{command} --help")).output().unwrap();
        assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
    }
    let unknown = shell("attentive translate --no-such-option --help").output().unwrap();
    assert!(!unknown.status.success());
}

#[test]
fn three_dots_stand_for_any_text() {
    for (shown, is) in [("a b", true), ("a…b", true), ("…", true), ("a…", true), ("…c", false), ("b…", false)]
    {
        assert_eq!(is_shown("a b\n", shown), is, "{shown}");
    }
}
