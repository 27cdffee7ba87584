//! The text in a file: the recorders' own formats are binary.

use overspin_located::LocatedError;

/// What to do with recordings, whose text only some formats read. FILE stands for the file.
#[derive(Clone, Copy, Debug)]
pub struct Remedies {
    /// With a recording of perf.
    pub perf: &'static str,
    /// With a recording of trace-cmd.
    pub trace_cmd: &'static str,
}

impl Remedies {
    /// Of this format.
    pub const PERF_SCHED: Self = Self {
        perf: "write its text, and give that: perf script --ns -i FILE > recorded.txt",
        trace_cmd: "write its text, and give that: trace-cmd report -i FILE > recorded.txt",
    };

    /// Of a format that is no recording: what it reads.
    #[must_use]
    pub const fn reads(what: &'static str) -> Self {
        Self { perf: what, trace_cmd: what }
    }
}

const OF_PERF: &str = "a recording of perf, in its own format";
const OF_TRACE_CMD: &str = "a recording of trace-cmd, in its own format";
/// Beginnings of recordings, and what they are. The second is of the other byte order, the third of perf before 2.6.38.
const RECORDINGS: [(&[u8], &str); 4] = [
    (b"PERFILE2", OF_PERF),
    (b"2ELIFREP", OF_PERF),
    (b"PERFFILE", OF_PERF),
    (b"\x17\x08\x44tracing", OF_TRACE_CMD),
];
/// Beginnings of other files that are not text, what they are, and what to do.
const BINARY: [(&[u8], &str, &str); 5] = [
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

/// The text of a file that messages call `path`. Bytes that are no UTF-8, which a task's name may have, are replaced.
///
/// # Errors
/// If it is not text.
pub fn text(path: &str, bytes: &[u8], remedies: Remedies) -> Result<String, LocatedError> {
    let error = |what: &str, help: &str| {
        let help = help.replace("FILE", path);
        Err(LocatedError::at(path, "", 0..0, "", format!("this file is {what}, not text"), help))
    };
    if let Some((_, what)) = RECORDINGS.iter().find(|(magic, _)| bytes.starts_with(magic)) {
        return error(what, if *what == OF_PERF { remedies.perf } else { remedies.trace_cmd });
    }
    if let Some((_, what, help)) = BINARY.iter().find(|(magic, ..)| bytes.starts_with(magic)) {
        return error(what, help);
    }
    // Editors of Windows write the mark of UTF-8 first.
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    if bytes.trim_ascii().is_empty() {
        let message = "this file is empty";
        let help = "look whether the program that wrote it failed";
        return Err(LocatedError::at(path, "", 0..0, "", message, help));
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
            let e = text("a.data", bytes, Remedies::PERF_SCHED).unwrap_err();
            assert!(e.help.contains(command), "{e}");
        }
        let of = Remedies::reads("give a table");
        assert_eq!(text("a", b"PERFILE2h\0", of).unwrap_err().help.as_ref(), "give a table");
        text("a", b"a\0b", of).unwrap_err();
        for empty in [&b""[..], b" \n\n", b"\xef\xbb\xbf\r\n"] {
            assert_eq!(text("a", empty, of).unwrap_err().message.as_ref(), "this file is empty");
        }
        assert_eq!(text("a", b"\xef\xbb\xbfa", of).unwrap(), "a");
        assert_eq!(text("a", b"a\xffb", of).unwrap(), "a\u{fffd}b");
    }
}
