//! Commands as a shell reads them.

/// A command of these words, as it can be given to a shell.
#[must_use]
pub fn shell_words(words: &[impl AsRef<str>]) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=,:+@%".contains(c);
    let word = |word: &str| match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    };
    words.iter().map(|text| word(text.as_ref())).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_reads_the_same_words() {
        let words = ["printf", "%s\n", "a b", "", "it's", "$HOME", "a=b,c"];
        let command = shell_words(&words);
        assert!(command.ends_with(" a=b,c"), "{command}");
        let output = std::process::Command::new("sh").args(["-c", &command]).output().unwrap();
        assert_eq!(String::from_utf8(output.stdout).unwrap(), words[2..].join("\n") + "\n");
    }
}
