//! QEMU's monitor: where the vCPUs of a machine that hangs are.

use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use crate::machine::Machine;

/// What the monitor prints when it waits for a command.
const PROMPT: &str = "(qemu) ";
/// Return addresses that are told for each vCPU, besides the address at which it is.
const CALLERS: usize = 6;
/// Words of a stack in which they are looked for.
const WORDS: usize = 96;

/// Where each vCPU is, by the names in the `System.map` beside the kernel: the function that it executes, and those whose addresses
/// are on its stack, which may be left from earlier calls.
pub(crate) fn places(machine: &Machine) -> String {
    let map = machine.kernel.with_file_name("System.map");
    let map = fs::read_to_string(map).unwrap_or_default();
    let symbols = symbols_of(&map);
    match asked(machine.monitor.as_deref().unwrap_or(Path::new(""))) {
        Ok(told) => told.iter().map(|cpu| place(cpu, &symbols)).collect::<Vec<_>>().join("; "),
        Err(error) => format!("QEMU's monitor says nothing: {error}"),
    }
}

/// What the monitor says of each vCPU: its registers, then its stack.
fn asked(socket: &Path) -> io::Result<Vec<[String; 2]>> {
    let mut monitor = UnixStream::connect(socket)?;
    monitor.set_read_timeout(Some(Duration::from_secs(5)))?;
    answer(&mut monitor)?;
    let mut ask = |command: &str| {
        monitor.write_all(command.as_bytes())?;
        monitor.write_all(b"\n")?;
        answer(&mut monitor)
    };
    let vcpus = ask("info cpus")?.matches("CPU #").count();
    (0..vcpus)
        .map(|vcpu| {
            ask(&format!("cpu {vcpu}"))?;
            let registers = ask("info registers")?;
            // The monitor has no name for the whole of it.
            let stack = word_after(&registers, "RSP=").unwrap_or("0");
            let stack = ask(&format!("x/{WORDS}gx 0x{stack}"))?;
            Ok([registers, stack])
        })
        .collect()
}

/// Reads up to the next prompt.
fn answer(monitor: &mut UnixStream) -> io::Result<String> {
    let (mut all, mut buffer) = (Vec::new(), [0; 4096]);
    while !all.ends_with(PROMPT.as_bytes()) {
        match monitor.read(&mut buffer)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            read => all.extend_from_slice(&buffer[..read]),
        }
    }
    Ok(String::from_utf8_lossy(&all).into_owned())
}

/// A vCPU's place in words, from its registers and its stack.
fn place([registers, stack]: &[String; 2], symbols: &[(u64, &str)]) -> String {
    let vcpu = word_after(registers, "CPU#").unwrap_or("?");
    let ip = word_after(registers, "RIP=").and_then(hexadecimal).unwrap_or(0);
    let halted = if word_after(registers, "HLT=") == Some("1") { ", halted" } else { "" };
    let words = stack.lines().filter_map(|line| line.split_once(": ")).map(|(_, words)| words);
    let words = words.flat_map(str::split_whitespace).filter_map(hexadecimal);
    let mut callers: Vec<&str> = words.filter_map(|word| function(word, symbols)).collect();
    callers.dedup();
    callers.truncate(CALLERS);
    let at = function(ip, symbols).map_or_else(|| format!("{ip:#x}"), str::to_owned);
    format!("vCPU {vcpu}{halted} in {at}, on its stack {}", callers.join(" < "))
}

/// The word behind a register's name.
fn word_after<'a>(registers: &'a str, name: &str) -> Option<&'a str> {
    registers.split_once(name)?.1.split_whitespace().next()
}

fn hexadecimal(word: &str) -> Option<u64> {
    u64::from_str_radix(word.trim_start_matches("0x"), 16).ok()
}

/// The function that has this address.
fn function<'m>(address: u64, symbols: &[(u64, &'m str)]) -> Option<&'m str> {
    let behind = symbols.partition_point(|(start, _)| *start <= address);
    // Beyond the last one there are data.
    (behind < symbols.len()).then(|| behind.checked_sub(1).map(|i| symbols[i].1)).flatten()
}

/// Functions of a `System.map`, in the order of their addresses.
fn symbols_of(map: &str) -> Vec<(u64, &str)> {
    let symbol = |line: &'_ str| -> Option<(u64, usize)> {
        let mut words = line.split_whitespace();
        let address = hexadecimal(words.next()?)?;
        let is_code = matches!(words.next()?, "T" | "t" | "W");
        (is_code && address >> 63 == 1).then_some((address, line.len() - words.next()?.len()))
    };
    let named = map.lines().filter_map(|line| symbol(line).map(|(at, name)| (at, &line[name..])));
    let mut symbols: Vec<(u64, &str)> = named.collect();
    symbols.sort_by_key(|(address, _)| *address);
    symbols
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Accelerator;

    const MAP: &str = "0000000000001000 A per_cpu\n\
                       ffffffff81000000 T _text\n\
                       ffffffff81000100 t overspin_lock\n\
                       ffffffff81000200 T stop_machine\n\
                       ffffffff81000300 T last\n\
                       ffffffff82000000 D data\n";

    #[test]
    fn a_vcpu_is_in_a_function_and_was_called_by_others() {
        let symbols = symbols_of(MAP);
        assert_eq!(symbols.len(), 4);
        let registers = "\nCPU#1\nRAX=0000 RBX=0000\nRIP=ffffffff81000120 RFL=00000046 CPL=0 II=0 A20=1 SMM=0 HLT=1\n";
        let stack = "ffffc90000013f10: 0xffffffff81000210 0x0000000000000000\n\
                     ffffc90000013f20: 0xffffffff81000214 0xffffffff82000010\n";
        let told = place(&[registers.into(), stack.into()], &symbols);
        assert_eq!(told, "vCPU 1, halted in overspin_lock, on its stack stop_machine");
    }

    #[test]
    fn an_address_without_a_function_is_told_as_it_is() {
        let told = place(&["CPU#0\nRIP=0000000000000010 ".into(), String::new()], &symbols_of(MAP));
        assert_eq!(told, "vCPU 0 in 0x10, on its stack ");
        let machine = Machine::new("/nowhere/vmlinux".into(), 1, 256, Accelerator::Emulation);
        let error = places(&machine);
        assert!(error.contains("QEMU's monitor says nothing"), "{error}");
    }
}
