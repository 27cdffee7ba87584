//! Checks the machine code of the paravirtual ticket lock when a patched branch sets its mode. It needs
//! objdump and x86-64; without objdump it prints that it is skipped.
#![cfg(target_arch = "x86_64")]

use overspin_testing::skip;
use std::process::Command;

use overspin_locks::{PvTicket, RawLock, Tuning};
use overspin_native::{Threads, set_paravirtual};

type Lock = PvTicket<Threads>;
type Shared = <Lock as RawLock<Threads>>::Shared;
type Token = <Lock as RawLock<Threads>>::Token;

#[inline(never)]
#[unsafe(no_mangle)]
fn probe_lock(lock: &Lock, shared: &Shared) -> Token {
    lock.lock(shared)
}

#[inline(never)]
#[unsafe(no_mangle)]
fn probe_unlock(lock: &Lock, shared: &Shared, token: Token) {
    lock.unlock(shared, token);
}

/// Returns the instructions of a function of this program, including prefixes, up to the first return.
/// These are the instructions of the uncontended path.
fn instructions(function: &str) -> Option<Vec<String>> {
    let program = std::env::current_exe().expect("its own path");
    let output = Command::new("objdump")
        .args(["-d", "--no-show-raw-insn", &format!("--disassemble={function}")])
        .arg(program)
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).expect("objdump writes text");
    let lines = text.lines().filter_map(|line| line.trim().split_once(":\t"));
    let mut instructions = Vec::new();
    for (_, instruction) in lines {
        instructions.push(instruction.to_owned());
        if instruction.starts_with("ret") {
            break;
        }
    }
    assert!(!instructions.is_empty(), "{function} is in the program");
    Some(instructions)
}

fn count(instructions: &[String], start: &str) -> usize {
    instructions.iter().filter(|instruction| instruction.starts_with(start)).count()
}

#[test]
fn short_paths_and_both_modes() {
    let shared = Lock::shared(2, Tuning::DEFAULT).expect("2 CPUs");
    let lock = Lock::new();
    let work = || {
        for _ in 0..3 {
            let token = probe_lock(&lock, &shared);
            assert!(lock.try_lock(&shared).is_none());
            probe_unlock(&lock, &shared, token);
        }
    };
    work();
    for on in [true, false] {
        // SAFETY: this is the only test of this program. Its harness waits for it, in code that is not
        // patched.
        unsafe { set_paravirtual(on) };
        work();
    }

    let (Some(lock), Some(unlock)) = (instructions("probe_lock"), instructions("probe_unlock"))
    else {
        skip("there is no objdump, so the machine code of the lock is not checked");
        return;
    };
    println!("{lock:#?} {unlock:#?}");
    // One locked addition, a comparison of the two halves, and a branch that is not taken.
    assert_eq!(count(&lock, "lock "), 1, "{lock:?}");
    assert_eq!(count(&lock, "lock xadd"), 1, "{lock:?}");
    assert_eq!(count(&lock, "cmp"), 1, "{lock:?}");
    assert_eq!(count(&lock, "j"), 1, "{lock:?}");
    assert_eq!(count(&lock, "call"), 0, "{lock:?}");
    // One locked addition and the no-operation, without a branch.
    assert_eq!(count(&unlock, "lock "), 1, "{unlock:?}");
    assert_eq!(count(&unlock, "lock add"), 1, "{unlock:?}");
    assert_eq!(count(&unlock, "nopl   0x0(%rax,%rax,1)"), 1, "{unlock:?}");
    assert_eq!(count(&unlock, "j"), 0, "{unlock:?}");
    assert_eq!(count(&unlock, "call"), 0, "{unlock:?}");
}
