//! First process of a guest on real Xen, or of an emulated dom0. Which of them it is, the kernel's command line says.

mod clock;
mod dom0;
mod env;
mod kernel_work;
mod runstate;
mod system;
mod worker;

use overspin_xl::Line;

fn main() {
    let command_line = match system::start() {
        Ok(text) => text,
        Err(error) => return say_and_stay(&error),
    };
    if command_line.split_whitespace().any(|word| word == "overspin.dom0") {
        dom0::main();
    } else if let Err(error) = worker::main(&command_line) {
        say_and_stay(&error);
    }
}

/// Tells the host and waits for the end: the kernel panics if its first process ends.
fn say_and_stay(message: &str) {
    println!("{}", Line::Error { message: message.into() }.to_text());
    loop {
        std::thread::park();
    }
}
