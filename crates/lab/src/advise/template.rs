//! The scenario of a question, as a file that `overspin run` takes.

use super::Question;
use std::fmt::Write;

/// The name of guest `number`, from 0.
pub(super) fn guest(number: u32) -> String {
    format!("guest{number}")
}

/// The scenario: the operator's guests on the operator's host.
#[must_use]
pub fn template(question: &Question) -> String {
    let Question { machine, pcpus, guests, vcpus, work, lock, .. } = question;
    let scheduler = question.schedulers.first().map_or("credit", String::as_str);
    let mut text = format!(
        "# The guests of `overspin advise`: {guests} guests of {vcpus} vCPUs on {pcpus} pCPUs.\n\
         # Each guest: {}.\n\
         # Change host.cores to see another overcommit ratio.\n\
         name = \"advise\"\n\
         description = \"How much can this host be overcommitted?\"\n\
         limit = \"{}ms\"\n\n\
         [host]\n\
         machine = \"{machine}\"\n\
         cores = {pcpus}\n\
         scheduler = \"{scheduler}\"\n",
        work.brief(),
        question.milliseconds(),
    );
    for number in 0..*guests {
        // Writing to a String cannot fail.
        let _ = write!(
            text,
            "\n[[domain]]\nname = \"{}\"\nvcpus = {vcpus}\nlock = \"{lock}\"\n\n{}",
            guest(number),
            work.tables(*vcpus)
        );
    }
    text
}
