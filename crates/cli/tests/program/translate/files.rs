//! `attentive translate`: files and streams, and how it ends.

use super::*;

#[test]
fn a_file_is_written_whole_or_not_at_all() {
    let output = file("kept", b"as it was\n");
    let broken = file("broken", b"a dog\nbad \xFF\n");
    let options = format!("--input {} --output {}", broken.display(), output.display());
    finish(translate(&options)).failed(&["broken", "line 2", "UTF-8"]);
    assert_eq!(std::fs::read_to_string(&output).unwrap(), "as it was\n");
    let left = || {
        std::fs::read_dir(folder()).unwrap().filter(|entry| {
            let name = entry.as_ref().unwrap().file_name().into_string().unwrap();
            name.contains("kept") && name.ends_with(".part")
        })
    };
    assert_eq!(left().count(), 0);
    // What was translated before the broken line has been written where it can be.
    let outcome = fed("", b"a dog\nbad \xFF\n");
    assert_eq!((outcome.code, outcome.stdout.lines().count()), (Some(1), 1), "{}", outcome.stderr);
    outcome.says(&["standard input, line 2", "UTF-8"]);
}

#[test]
fn the_advice_about_a_file_in_another_encoding_works() {
    let latin = file("latin 1", b"caf\xe9 dog\n");
    let wide: Vec<u8> =
        [0xfeff].into_iter().chain("a dog\n".encode_utf16()).flat_map(u16::to_le_bytes).collect();
    for path in [latin, file("wide", &wide)] {
        let mut program = translate("--input");
        program.arg(&path);
        let outcome = finish(program);
        outcome.failed(&["line 1", "UTF-8"]);
        let Ok(version) = Command::new("iconv").arg("--version").output() else {
            println!("skipped: there is no iconv");
            return;
        };
        assert!(version.status.success());
        let command = outcome.stderr.split('`').nth(1).unwrap();
        assert!(Command::new("sh").args(["-c", command]).status().unwrap().success(), "{command}");
        let converted = format!("{}.utf8", path.display());
        assert!(std::fs::read_to_string(converted).unwrap().ends_with("dog\n"));
    }
}

#[test]
#[cfg(unix)]
fn an_output_that_is_the_input_is_refused_by_whatever_name() {
    let input = file("precious", b"a dog\n");
    let link = folder().join("precious-link");
    std::os::unix::fs::symlink(&input, &link).unwrap();
    let hard = folder().join("precious-hard");
    std::fs::hard_link(&input, &hard).unwrap();
    let other = folder().join("model/..").join(input.file_name().unwrap());
    for output in [&input, &link, &hard, &other] {
        let options = format!("--input {} --output {}", input.display(), output.display());
        finish(translate(&options)).misused(&["--input", "--output", "precious"]);
        let model = folder().join("model");
        for (source, reference) in [(&input, &file("else", b"a dog\n")), (&file("else", b"a dog\n"), &input)]
        {
            let [model, source, reference, output] =
                [&model, source, reference, output].map(|path| path.display().to_string());
            let files = format!("--source {source} --reference {reference} --output {output}");
            run(&format!("evaluate --model {model} {files}")).misused(&["--output", "precious"]);
        }
    }
    assert_eq!(std::fs::read(&input).unwrap(), b"a dog\n");
    let model = folder().join("model").display().to_string();
    run(&format!("convert --model {model} --out {model}/.")).misused(&["--model", "--out"]);
    // A device is no file that could be lost.
    assert_eq!(finish(translate("--input /dev/null --output /dev/null")).code, Some(0));
}

#[test]
#[cfg(unix)]
fn an_output_that_is_there_keeps_its_kind_and_its_mode() {
    use std::os::unix::fs::{FileTypeExt, PermissionsExt};
    let folder = folder().join("outputs");
    std::fs::create_dir_all(&folder).unwrap();
    let [real, link, pipe] = ["real.txt", "link.txt", "pipe"].map(|name| folder.join(name));
    std::fs::write(&real, "old\n").unwrap();
    std::fs::set_permissions(&real, std::fs::Permissions::from_mode(0o640)).unwrap();
    std::os::unix::fs::symlink("real.txt", &link).unwrap();
    let expected = format!("{}\n", answered(&fed("", b"a dog\n"))[0]);
    let outcome = fed(&format!("--output {}", link.display()), b"a dog\n");
    assert_eq!((outcome.code, std::fs::read_to_string(&real).unwrap()), (Some(0), expected.clone()));
    assert!(link.is_symlink());
    assert_eq!(std::fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o640);

    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let reader = std::thread::spawn({
        let pipe = pipe.clone();
        move || std::fs::read_to_string(pipe).unwrap()
    });
    assert_eq!(fed(&format!("--output {}", pipe.display()), b"a dog\n").code, Some(0));
    assert_eq!(reader.join().unwrap(), expected);
    assert!(std::fs::metadata(&pipe).unwrap().file_type().is_fifo());
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut program = translate("--beam 1");
    program.stdin(std::fs::File::open(file("many", lines(100).as_bytes())).unwrap()).stdout(writer);
    let outcome = finish(program);
    assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""));
}

#[test]
#[cfg(target_os = "linux")]
fn ctrl_c_ends_it_with_a_word_and_leaves_no_half_file() {
    let output = folder().join("interrupted");
    let (mut child, mut input, _) = talk(&format!("--output {}", output.display()));
    input.write_all(b"a dog\n").unwrap();
    let signal =
        || assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    // Once the file beside is there, the handler is about to be.
    let beside = || {
        let names = std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().file_name());
        names.filter(|name| name.to_string_lossy().starts_with(".interrupted")).count()
    };
    while beside() == 0 {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    std::thread::sleep(std::time::Duration::from_millis(200));
    signal();
    let status = child.wait().unwrap();
    let mut said = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut said).unwrap();
    assert_eq!((status.code(), said.as_str()), (Some(130), "attentive: interrupted\n"));
    assert!(!output.exists() && beside() == 0);
}

#[test]
#[cfg(target_os = "linux")]
fn a_signal_ends_a_wide_beam_in_the_middle_of_its_work() {
    let (input, output) = (file("much", lines(2000).as_bytes()), folder().join("wide"));
    let options = format!("--beam 256 --input {} --output {}", input.display(), output.display());
    let mut child = translate(&options).stderr(Stdio::piped()).spawn().unwrap();
    let beside = || {
        let names = std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().file_name());
        names.filter(|name| name.to_string_lossy().starts_with(".wide")).count()
    };
    while beside() == 0 {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    // It has nothing to wait for: it computes until the signal comes.
    std::thread::sleep(std::time::Duration::from_millis(200));
    assert!(Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap().success());
    let status = child.wait().unwrap();
    let mut said = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut said).unwrap();
    assert_eq!((status.code(), said.as_str()), (Some(130), "attentive: interrupted\n"));
    assert!(!output.exists() && beside() == 0);
}

#[test]
#[cfg(target_os = "linux")]
fn an_endless_stream_needs_no_more_memory_than_its_beginning() {
    let (mut child, mut input, mut output) = talk("--beam 1 --max-length 2");
    let status = format!("/proc/{}/status", child.id());
    let peak = || -> usize {
        let status = std::fs::read_to_string(&status).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    };
    let writer = std::thread::spawn(move || {
        let lines = lines(1000);
        (0..8).for_each(|_| input.write_all(lines.as_bytes()).unwrap());
        input
    });
    let mut read =
        |count: usize| (0..count).for_each(|_| assert!(output.read_line(&mut String::new()).unwrap() > 0));
    read(2000);
    let early = peak();
    read(6000);
    let late = peak();
    drop(writer.join().unwrap());
    assert!(child.wait().unwrap().success());
    assert!(late < early + 8 * 1024, "{early} kB became {late} kB");
}

#[test]
fn a_last_line_without_an_end_stays_without_one() {
    let whole = fed("", b"a dog runs.\nthe old dog\n").stdout;
    assert_eq!(fed("", b"a dog runs.\nthe old dog").stdout, whole.strip_suffix('\n').unwrap());
    // Records of several fields are lines of their own.
    for options in ["--json", "--n-best 2", "--alignments"] {
        assert!(fed(options, b"a dog").stdout.ends_with('\n'), "{options}");
    }
}

#[test]
fn a_page_that_is_translated_as_text_gets_one_hint() {
    for name in ["page.html", "page.HTM", "page.xhtml"] {
        let page = folder().join(name);
        std::fs::write(&page, "a <b>dog</b>\n").unwrap();
        let input = format!("--input {}", page.display());
        let outcome = finish(translate(&input));
        let hints: Vec<&str> = outcome.stderr.lines().filter(|line| line.contains("--format html")).collect();
        assert!(outcome.code == Some(0) && hints.len() == 1 && hints[0].contains(name), "{}", outcome.stderr);
        // Whoever names a format has chosen.
        for format in ["text", "html"] {
            let outcome = finish(translate(&format!("{input} --format {format}")));
            assert!(!outcome.stderr.contains("--format"), "{}", outcome.stderr);
        }
    }
}

#[test]
fn a_text_may_begin_with_a_dash_and_a_mistyped_flag_is_still_one() {
    let mut program = translate("--beam 2");
    program.args(["- a dog", "-- fish", "a dog"]);
    let outcome = finish(program);
    // The model knows no dash, and says so; the dash before an item of a list stays.
    let found: Vec<&str> = outcome.stdout.lines().collect();
    assert!(outcome.code == Some(0) && found.len() == 3 && found[0].starts_with("- "), "{found:?}");
    finish(translate("--beem 4 fish")).refused(&["--beem", "--beam"]);
    finish(translate("-x fish")).refused(&["-x"]);
    let mut program = translate("fish --");
    program.args(["-x", "--beem"]);
    assert_eq!(finish(program).stdout.lines().count(), 3);
}
