//! The text in a file: the recorders' own formats are binary.

use overspin_located::LocatedError;

/// Beginnings of files that are not text, what they are, and what to do.
const BINARY: [(&[u8], &str, &str); 9] = [
    (b"PERFILE2", "a recording of perf, in its own format", OF_PERF),
    // The other byte order, and perf before 2.6.38.
    (b"2ELIFREP", "a recording of perf, in its own format", OF_PERF),
    (b"PERFFILE", "a recording of perf, in its own format", OF_PERF),
    (
        b"\x17\x08\x44tracing",
        "a recording of trace-cmd, in its own format",
        "write its text, and give that: trace-cmd report -i FILE > recorded.txt",
    ),
    (b"\x1f\x8b", "compressed", "write its text, and give that: gunzip -c FILE > recorded.txt"),
    (
        b"\x28\xb5\x2f\xfd",
        "compressed",
        "write its text, and give that: zstd -dc FILE > recorded.txt",
    ),
    (b"\xfd7zXZ", "compressed", "write its text, and give that: xz -dc FILE > recorded.txt"),
    (b"BZh", "compressed", "write its text, and give that: bzip2 -dc FILE > recorded.txt"),
    (b"\x7fELF", "a program", "give the text of a recording"),
];
const OF_PERF: &str = "write its text, and give that: perf script --ns -i FILE > recorded.txt";

/// The text of a file that messages call `path`. Bytes that are no UTF-8, which a task's name may have, are replaced.
///
/// # Errors
/// If it is not text.
pub fn text(path: &str, bytes: &[u8]) -> Result<String, LocatedError> {
    let error = |what: &str, help: &str| {
        let help = help.replace("FILE", path);
        Err(LocatedError::at(path, "", 0..0, "", format!("this file is {what}, not text"), help))
    };
    if let Some((_, what, help)) = BINARY.iter().find(|(magic, ..)| bytes.starts_with(magic)) {
        return error(what, help);
    }
    if bytes.contains(&0) {
        return error("binary", "give the text of a recording");
    }
    Ok(String::from_utf8_lossy(bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn binary_files_name_the_command_that_converts_them() {
        for (bytes, command) in [
            (&b"PERFILE2h\0\0\0"[..], "perf script --ns -i a.data"),
            (b"\x17\x08\x44tracing7\0", "trace-cmd report -i a.data"),
            (b"\x1f\x8b\x08", "gunzip -c a.data"),
        ] {
            let e = text("a.data", bytes).unwrap_err();
            assert!(e.help.contains(command), "{e}");
        }
        text("a", b"a\0b").unwrap_err();
        assert_eq!(text("a", b"a\xffb").unwrap(), "a\u{fffd}b");
    }
}
