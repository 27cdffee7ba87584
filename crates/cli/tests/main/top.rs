//! `overspin top`: plain frames, and the view on a terminal, which is as it was before when the view ends.

use crate::with_scenario;
use overspin_testing::{SCENARIO, skip};
use std::process::Command;

#[test]
fn without_a_terminal_it_prints_frames() {
    let overspin = with_scenario();
    let top = |args: &[&str]| overspin.fine(&[&["top"], args].concat()).0;
    let frames = top(&["s.toml"]);
    assert_eq!(frames.matches("s, seed 1:").count(), 5, "{frames}");
    assert!(
        frames.contains("16.000 to 20.000 of 20.000 ms") && !frames.contains('\u{1b}'),
        "{frames}"
    );
    let frames = top(&["s.toml", "--batch", "2"]);
    assert_eq!(frames.matches("s, seed 1:").count(), 2, "{frames}");
    let this = ["--seed", "7", "--set", "domain.guest.lock=xen-pv"];
    let frame = top(&[&["s.toml", "--once"], &this[..]].concat());
    assert_eq!(frame.matches("s, seed 7: 0.000 to 20.000").count(), 1, "{frame}");
    for words in ["steal %", "spin %", "guest/v1", "guest/section", "waits for", "noise"] {
        assert!(frame.contains(words), "{words}: {frame}");
    }
    // A record of the run is run again, and shows the same.
    overspin.fine(&[&["run", "s.toml", "--quiet", "--json", "r.json"], &this[..]].concat());
    assert_eq!(top(&["r.json", "--once"]), frame);
}

#[test]
fn a_sweep_has_no_view() {
    let overspin = with_scenario();
    let vary =
        "[[vary]]\nname = \"lock\"\nset = \"domain.guest.lock\"\nto = [\"ticket\", \"mcs\"]\n";
    overspin.write("s.toml", format!("{SCENARIO}{vary}"));
    let stderr = overspin.fails(&["top", "s.toml"], 2);
    assert!(stderr.contains("but this is a sweep") && stderr.contains("--set"), "{stderr}");
}

/// Runs the view on a pseudo-terminal, presses keys or sends a signal, and says whether the terminal is back.
const ON_A_TERMINAL: &str = r#"
import os, pty, select, signal, sys, termios, time
program, scenario, how = sys.argv[1:4]
child, terminal = pty.fork()
if child == 0:
    os.environ["TERM"] = "xterm"
    os.execv(program, [program, "top", scenario])
shown = b""
def read(until, seconds):
    global shown
    end = time.time() + seconds
    while time.time() < end and until not in shown:
        if select.select([terminal], [], [], 0.1)[0]:
            try:
                shown += os.read(terminal, 65536)
            except OSError:
                return
before = termios.tcgetattr(terminal)[3]
read(b"guest/v1", 60)
during = termios.tcgetattr(terminal)[3]
if how == "keys":
    os.write(terminal, b" ")
    read(b"paused", 60)
    os.write(terminal, b"+-q")
elif how == "control-c":
    os.write(terminal, b"\x03")
else:
    os.kill(child, signal.SIGTERM)
read(b"\x1b[?1049l", 60)
_, status = os.waitpid(child, 0)
# Not earlier: the program puts the modes back after it has left the screen.
after = termios.tcgetattr(terminal)[3]
raw = not during & termios.ICANON
print(b"guest/v1" in shown, raw, after & (termios.ICANON | termios.ECHO) == before & (termios.ICANON | termios.ECHO),
      b"\x1b[?1049l" in shown and b"\x1b[?25h" in shown, os.waitstatus_to_exitcode(status),
      how != "keys" or b"paused" in shown)
"#;

#[test]
fn the_terminal_is_as_before_however_the_view_ends() {
    let overspin = with_scenario();
    // SIGTERM ends it as Ctrl-C does.
    for (how, code) in [("keys", 0), ("control-c", 0), ("signal", 0)] {
        let run = Command::new("python3")
            .args(["-c", ON_A_TERMINAL, env!("CARGO_BIN_EXE_overspin"), "s.toml", how])
            .current_dir(overspin.dir())
            .output();
        let output = match run {
            Ok(output) => output,
            Err(error) => return skip(&format!("no python3: {error}")),
        };
        let said = String::from_utf8_lossy(&output.stdout);
        assert_eq!(said.trim(), format!("True True True True {code} True"), "{how}: {output:?}");
    }
}
