//! `overspin watch`: its screen, its files, the program that it starts, and its mistakes.

use crate::{json, overspin, preload};
use overspin_testing::{Ended, skip};
use std::process::Command;

#[test]
fn one_interval_begins_with_a_sentence_and_fits_a_page() {
    let overspin = overspin();
    let args = ["watch", "--once", "--interval", "200ms", "--prometheus", "w.prom", "-o", "w.json"];
    let mut command = overspin.command(&args);
    let (shown, _) = Ended::of(command.env_remove("COLUMNS")).with(0);
    assert!(shown.lines().all(|line| line.chars().count() <= 80), "{shown}");
    let record = json(&overspin.read("w.json"));
    assert_eq!(record["schema"], "overspin-watch/1");
    assert_eq!(record["intervals"].as_array().map(Vec::len), Some(1));
    let judgement = &record["whole"]["judgement"];
    let sentence = judgement["sentence"].as_str().unwrap();
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words(&shown).starts_with(sentence), "{shown}\n{sentence}");
    let cause = judgement["cause"].as_str().unwrap();
    let line = format!("overspin_cause{{cause=\"{cause}\"}} 1");
    let text = overspin.read("w.prom");
    assert!(text.lines().any(|l| l == line), "{line}: {text}");
}

#[test]
fn a_program_has_standard_output_for_itself() {
    let overspin = overspin();
    let script = "echo mine; sleep 0.3; exit 7";
    let args = ["watch", "--json", "w.json", "--", "sh", "-c", script];
    let (out, err) = overspin.run(&args).with(1);
    assert_eq!(out, "mine\n");
    assert!(err.contains("watching took") && err.contains("ended with exit status: 7"), "{err}");
    let program = &json(&overspin.read("w.json"))["whole"]["interval"]["program"];
    assert!(program["processes"].as_u64() >= Some(1), "{program}");
}

#[test]
fn waits_for_mutexes_are_seen_while_the_program_runs() {
    let overspin = overspin();
    // The holder sleeps, so that whoever comes meanwhile has to wait on any machine.
    overspin.write(
        "p.c",
        "#include <pthread.h>\n#include <unistd.h>\n\
         static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;\n\
         static void *work(void *p) {\n\
           for (int i = 0; i < 2600; i++) {\n\
             pthread_mutex_lock(&m); usleep(50); pthread_mutex_unlock(&m);\n\
           }\n\
           return p;\n\
         }\n\
         int main(void) {\n\
           pthread_t t[3];\n\
           for (int i = 0; i < 3; i++) pthread_create(&t[i], 0, work, 0);\n\
           for (int i = 0; i < 3; i++) pthread_join(t[i], 0);\n\
           return 0;\n\
         }\n",
    );
    let mut compiler = Command::new("cc");
    compiler.args(["-pthread", "p.c", "-o", "p"]).current_dir(overspin.dir());
    if !compiler.status().is_ok_and(|status| status.success()) {
        return skip("no C compiler");
    }
    let program = env!("CARGO_BIN_EXE_overspin");
    let of = |options: &[&str]| {
        let head = ["watch", "--interval", "100ms", "--json", "w.json", "--", program, "exec"];
        let args = [&head[..], &["--lock", "mutexee"], options, &["--", "./p"]].concat();
        let mut command = overspin.command(&args);
        Ended::of(command.env("OVERSPIN_PRELOAD", preload()).env_remove("LD_PRELOAD")).with(0);
        json(&overspin.read("w.json"))["whole"]["interval"].clone()
    };
    let counted = of(&["--stats"]);
    let mutexes = &counted["program"]["mutexes"];
    // Three threads take turns of 0.1 ms: two wait at any time, but for the beginning and the end.
    let waited = mutexes["waited"].as_f64().unwrap_or_default();
    assert!(waited > 0.5 && waited < 3.0, "{counted}");
    // They sleep for all but some microseconds of the time that they hold.
    let sum = |name: &str| mutexes["holders"][name].as_f64().unwrap_or_default();
    assert!(sum("looks") >= 20.0 && sum("asleep_ns") > 0.5 * sum("held_ns"), "{counted}");
    let uncounted = of(&[]);
    assert_eq!(uncounted["program"]["mutexes"], serde_json::Value::Null);
    let unseen = uncounted["unseen"].as_array().unwrap();
    let remedy = unseen.iter().find(|unseen| unseen["what"] == "waits for mutexes");
    assert!(remedy.is_some_and(|it| it["remedy"].to_string().contains("--stats")), "{uncounted}");
}

#[test]
fn mistakes_name_their_remedy() {
    let overspin = overspin();
    for (args, expected) in [
        (&["--pid", "4194305"][..], "there is no process 4194305"),
        (&["--cgroup", "/proc"], "is not the folder of a control group"),
        (&["--interval", "1ms"], "give 100ms or more"),
        (&["--once", "--", "true"], "cannot be used with"),
        (&["--", "no-such-program"], "put its folder into PATH"),
    ] {
        let stderr = overspin.fails(&[&["watch"], args].concat(), 2);
        assert!(stderr.contains(expected), "{args:?}: {stderr}");
    }
}
