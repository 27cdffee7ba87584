//! What an uncontended pair of lock and unlock of each lock costs, as a kernel calls it: instructions, and time on this processor.
//!
//! `cargo run --release -p overspin-linux --example cost`; it needs gcc and binutils. The object code is that of the kernel.

use std::error::Error;
use std::path::Path;
use std::process::Command;

use overspin_linux::{LOCKS, object};

/// Beside the locks: the loop alone, the kernel's own queue, and that queue behind the choice.
const BESIDE: [&str; 3] = ["empty", "stock", "dispatch"];

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::temp_dir().join(format!("overspin-cost-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let told = told(&folder);
    std::fs::remove_dir_all(&folder)?;
    print!("{}", told?);
    Ok(())
}

fn told(folder: &Path) -> Result<String, Box<dyn Error>> {
    let object = object::compile(folder)?;
    let program = folder.join("cost");
    let code = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/cost/cost.c");
    let mut gcc = Command::new("gcc");
    // Addresses are those of a kernel: in the range of 32 bits with a sign.
    gcc.args(["-O2", "-static", "-no-pie", "-Wl,-z,noexecstack", "-o"])
        .arg(&program)
        .arg(code)
        .arg(object);
    if !gcc.status()?.success() {
        return Err("gcc failed".into());
    }
    let mut text = String::from("lock, instructions, ns\n");
    for name in BESIDE.into_iter().chain(LOCKS) {
        let output = Command::new(&program).arg(name).output()?;
        let said = String::from_utf8(output.stdout)?;
        text += &format!("{name}, {}\n", said.trim().replace(' ', ", "));
    }
    Ok(text)
}
