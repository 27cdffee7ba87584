//! A vCPU as KVM sees it: ring 3 in 64-bit mode, from the first instruction on.

use crate::image::{Image, PAGE_TABLES, TASK_STATE, TASK_STATE_LIMIT};
use crate::kvm_run::{Exit, RunPage};
use kvm_bindings::{
    KVM_MAX_CPUID_ENTRIES, kvm_device_attr, kvm_regs, kvm_segment, kvm_userspace_memory_region,
};
use kvm_ioctls::{Kvm, VcpuFd, VmFd};
use overspin_guest_abi::event;
use std::os::fd::AsRawFd;
use std::sync::atomic::Ordering;

/// I/O privilege level 3: the guest may use I/O ports. And the bit that is always set.
const FLAGS: u64 = 3 << 12 | 2;
/// `KVM_SET_DEVICE_ATTR` with the offset of the time stamp counter (`KVM_VCPU_TSC_CTRL`, `KVM_VCPU_TSC_OFFSET`).
const KVM_SET_DEVICE_ATTR: libc::c_ulong = 0x4018_aee1;
/// The code segment of ring 3.
const CODE: u16 = 0x33;
/// The data segment of ring 3.
const DATA: u16 = 0x2b;
/// Bytes below the stack pointer that code may use without moving it.
const RED_ZONE: u64 = 128;

/// One vCPU of a virtual machine.
#[derive(Debug)]
pub(crate) struct KvmVcpu {
    fd: VcpuFd,
    page: RunPage,
    /// The last exit has to be completed before the registers are those of the next instruction.
    incomplete: bool,
}

/// A virtual machine with the memory of `image`.
///
/// # Errors
/// What the kernel refused.
pub(crate) fn machine(kvm: &Kvm, image: &Image) -> Result<VmFd, String> {
    let told = |error| format!("KVM refused a virtual machine: {error}");
    let vm = kvm.create_vm().map_err(told)?;
    let region = kvm_userspace_memory_region {
        slot: 0,
        flags: 0,
        guest_phys_addr: 0,
        memory_size: image.memory.len() as u64,
        userspace_addr: image.memory.start() as u64,
    };
    // SAFETY: the memory outlives the virtual machine: a domain drops its vCPUs and its machine first. All other
    // accesses to it are volatile or atomic.
    unsafe { vm.set_user_memory_region(region) }.map_err(told)?;
    Ok(vm)
}

impl KvmVcpu {
    /// vCPU `id`, about to execute the first instruction of the program.
    ///
    /// # Errors
    /// What the kernel refused.
    pub(crate) fn new(kvm: &Kvm, vm: &VmFd, image: &Image, id: u32) -> Result<Self, String> {
        let told = |error| format!("KVM refused a vCPU: {error}");
        let fd = vm.create_vcpu(id.into()).map_err(told)?;
        let cpuid = kvm.get_supported_cpuid(KVM_MAX_CPUID_ENTRIES).map_err(told)?;
        fd.set_cpuid2(&cpuid).map_err(told)?;
        let mut special = fd.get_sregs().map_err(told)?;
        special.cr3 = PAGE_TABLES;
        special.cr4 = 1 << 5 | 1 << 9 | 1 << 10; // PAE, and SSE with its exceptions
        special.cr0 = 1 << 31 | 1 << 16 | 1 << 5 | 1 << 1 | 1; // PG, WP, NE, MP, PE
        special.efer = 1 << 10 | 1 << 8; // long mode
        let segment = |selector, kind, long| kvm_segment {
            selector,
            type_: kind,
            limit: u32::MAX,
            present: 1,
            dpl: 3,
            s: 1,
            l: long,
            db: 1 - long,
            g: 1,
            ..Default::default()
        };
        special.cs = segment(CODE, 11, 1);
        let data = segment(DATA, 3, 0);
        (special.ss, special.ds, special.es, special.gs) = (data, data, data, data);
        special.fs = kvm_segment { base: image.address_of_page(id), ..data };
        // A processor looks at the privilege level in the flags first, and then at this map of permitted ports. Some
        // nested ones run guests without privilege levels in their flags, and look only at the map.
        special.tr = kvm_segment {
            base: TASK_STATE,
            limit: TASK_STATE_LIMIT,
            selector: 0x40,
            type_: 11,
            present: 1,
            ..Default::default()
        };
        fd.set_sregs(&special).map_err(told)?;
        let regs = kvm_regs {
            rip: image.entry,
            // A function finds the stack aligned to 16 bytes before the call that reaches it.
            rsp: image.stack_of(id),
            rdi: image.address_of_info(),
            rflags: FLAGS,
            ..Default::default()
        };
        fd.set_regs(&regs).map_err(told)?;
        count_like_the_host(&fd)?;
        let len = kvm.get_vcpu_mmap_size().map_err(told)?;
        let page =
            RunPage::map(&fd, len).map_err(|error| format!("no page for a vCPU: {error}"))?;
        Ok(Self { fd, page, incomplete: false })
    }

    /// The frequency of the time stamp counter, if the kernel tells.
    pub(crate) fn khz(&self) -> Option<u32> {
        self.fd.get_tsc_khz().ok()
    }

    /// Runs it until it exits, or a signal comes.
    pub(crate) fn run(&mut self) -> Exit {
        let exit = self.page.run(&self.fd);
        self.incomplete = matches!(exit, Exit::Out { .. });
        exit
    }

    /// Makes it continue in the handler of its upcalls, if an event is pending that asks for one.
    ///
    /// # Errors
    /// If its stack is no place for the frame.
    pub(crate) fn upcall(&mut self, image: &Image, id: u32) -> Result<(), String> {
        let page = image.page(id);
        let handler = page.handler.load(Ordering::Relaxed);
        let wanted = page.upcalls.load(Ordering::Relaxed) & !event::KICK;
        let pending = page.pending.load(Ordering::Relaxed) & wanted;
        if handler == 0 || pending == 0 || page.masked.load(Ordering::SeqCst) != 0 {
            return Ok(());
        }
        if std::mem::take(&mut self.incomplete) {
            self.page.complete(&self.fd);
        }
        let mut regs = self.page.regs();
        let frame = regs.rsp.wrapping_sub(RED_ZONE + 16);
        let fits = frame.is_multiple_of(8)
            && frame >= overspin_guest_abi::LOWEST
            && image.memory.write_word(frame, regs.rflags)
            && image.memory.write_word(frame + 8, regs.rip);
        if !fits {
            return Err(format!("its stack pointer {:#x} leaves no room for an upcall", regs.rsp));
        }
        page.masked.store(1, Ordering::SeqCst);
        regs.rsp = frame;
        regs.rip = handler;
        regs.rflags = FLAGS;
        self.page.set_regs(regs);
        Ok(())
    }
}

/// Makes the guest's time stamp counter equal to the host's.
fn count_like_the_host(fd: &VcpuFd) -> Result<(), String> {
    let zero = 0_u64;
    let attribute = kvm_device_attr { addr: &raw const zero as u64, ..Default::default() };
    // SAFETY: the descriptor is that of a vCPU, and the structure and the word that it names are local variables
    // that the kernel only reads.
    match unsafe { libc::ioctl(fd.as_raw_fd(), KVM_SET_DEVICE_ATTR, &raw const attribute) } {
        0 => Ok(()),
        _ => Err(format!(
            "KVM cannot set the time stamp counter of a guest ({}): it takes Linux 5.16",
            std::io::Error::last_os_error()
        )),
    }
}
