//! What to do about a file that is not UTF-8.

use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Byte order marks, with the name that `iconv` has for the encoding. UTF-32's little-endian mark begins with that of UTF-16.
const MARKS: [(&[u8], &str); 4] = [
    (&[0xff, 0xfe, 0, 0], "UTF-32"),
    (&[0, 0, 0xfe, 0xff], "UTF-32"),
    (&[0xff, 0xfe], "UTF-16"),
    (&[0xfe, 0xff], "UTF-16"),
];
/// What text without a mark most often is, if it is not UTF-8.
const LIKELY: &str = "WINDOWS-1252";

/// A command that converts a file to UTF-8. Its first bytes are looked at; a file that cannot be opened, such as standard
/// input, is called FILE.
pub fn advice(path: &Path) -> String {
    let mut beginning = Vec::new();
    let read = File::open(path).and_then(|file| file.take(4).read_to_end(&mut beginning));
    let (file, new) = match read {
        Ok(_) => (quoted(&path.display().to_string()), quoted(&format!("{}.utf8", path.display()))),
        Err(_) => ("FILE".to_owned(), "NEW".to_owned()),
    };
    let mark = MARKS.iter().find(|(mark, _)| beginning.starts_with(mark));
    let encoding = mark.map_or(LIKELY, |(_, encoding)| encoding);
    format!("convert it first, for example with `iconv -f {encoding} -t UTF-8 {file} > {new}`")
}

/// A name as a shell takes it.
fn quoted(name: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "/._-+=,@%:".contains(c);
    if !name.starts_with('-') && name.chars().all(plain) {
        return name.to_owned();
    }
    let name = if name.starts_with('-') { format!("./{name}") } else { name.to_owned() };
    format!("'{}'", name.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_advice_names_the_file_and_its_encoding() {
        let folder = std::env::temp_dir().join(format!("attentive-encoding-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        for (name, bytes, expected) in [
            ("latin", &b"caf\xe9"[..], "iconv -f WINDOWS-1252 -t UTF-8 "),
            ("wide", b"\xff\xfea\0", "iconv -f UTF-16 -t UTF-8 "),
            ("wider", b"\xff\xfe\0\0a\0\0\0", "iconv -f UTF-32 -t UTF-8 "),
        ] {
            let path = folder.join(name);
            std::fs::write(&path, bytes).unwrap();
            let advice = advice(&path);
            assert!(advice.contains(&format!("{expected}{0} > {0}.utf8`", path.display())), "{advice}");
        }
        std::fs::remove_dir_all(folder).unwrap();
        let advice = advice(Path::new("standard input"));
        assert!(advice.contains("`iconv -f WINDOWS-1252 -t UTF-8 FILE > NEW`"), "{advice}");
    }

    #[test]
    fn names_are_quoted_where_a_shell_would_cut_them() {
        assert_eq!(quoted("a/b.txt"), "a/b.txt");
        assert_eq!(quoted("it's mine"), "'it'\\''s mine'");
        assert_eq!(quoted("-x"), "'./-x'");
    }
}
