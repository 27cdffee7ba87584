//! The scenario of a question, as a file that `overspin run` takes.

use super::{Guest, Question};
use std::fmt::Write;

/// The scenario: the operator's guests on the operator's host.
#[must_use]
pub fn template(question: &Question) -> String {
    let Question { machine, pcpus, guests, work, lock, .. } = question;
    let scheduler = question.schedulers.first().map_or("credit", String::as_str);
    let mut text = format!(
        "# The guests of `overspin advise`: {} on {pcpus} pCPUs.\n\
         # Each guest: {}.\n\
         # Change host.cores to see another overcommit ratio.\n\
         name = \"advise\"\n\
         description = \"How much can this host be overcommitted?\"\n\
         limit = \"{}ms\"\n\n\
         [host]\n\
         machine = \"{machine}\"\n\
         cores = {pcpus}\n\
         scheduler = \"{scheduler}\"\n",
        question.guests_in_words(),
        work.brief(),
        question.milliseconds(),
    );
    for Guest { name, vcpus, weight, cap } in guests {
        // Writing to a String cannot fail, here and below.
        let _ =
            write!(text, "\n[[domain]]\nname = \"{name}\"\nvcpus = {vcpus}\nlock = \"{lock}\"\n");
        if *weight != 256 {
            let _ = writeln!(text, "weight = {weight}");
        }
        if *cap != 0 {
            let _ = writeln!(text, "cap = {cap}");
        }
        let _ = write!(text, "\n{}", work.tables(*vcpus));
    }
    text
}
