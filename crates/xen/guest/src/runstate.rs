//! CPU time by Xen's account: the hypercall `VCPUOP_get_runstate_info`, through `/dev/xen/privcmd`.
//!
//! A guest's own kernel counts time in which another vCPU had the pCPU as time of the running task. Only Xen knows better.
//! The numbers and layouts are those of Xen's public headers `xen.h` and `vcpu.h`, and of Linux's `privcmd.h`.

use rustix::ioctl::{self, IoctlOutput, Opcode};
use std::ffi::c_void;
use std::fs::File;
use std::ptr;

/// `__HYPERVISOR_vcpu_op`.
const VCPU_OP: u64 = 24;
/// `VCPUOP_get_runstate_info`.
const GET_RUNSTATE: u64 = 4;
/// `RUNSTATE_running`, `RUNSTATE_runnable`, `RUNSTATE_blocked`.
const STATES: [usize; 3] = [0, 1, 2];

/// `struct privcmd_hypercall`.
#[repr(C)]
struct Hypercall {
    number: u64,
    arguments: [u64; 5],
}

/// `struct vcpu_runstate_info`. Times are in nanoseconds.
#[repr(C)]
#[derive(Default)]
struct Runstate {
    state: i32,
    entered: u64,
    times: [u64; 4],
}

/// What a vCPU has done since its start, in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Times {
    /// It was on a pCPU.
    pub(crate) running: u64,
    /// It was ready, and another one had the pCPU.
    pub(crate) ready: u64,
    /// It waited for an event.
    pub(crate) blocked: u64,
}

/// Xen, as a guest can ask it.
#[derive(Debug)]
pub(crate) struct Xen(File);

impl Xen {
    pub(crate) fn open() -> Result<Self, String> {
        crate::system::load_module("xen-privcmd", "unrestricted=1")?;
        let open = || File::options().read(true).write(true).open("/dev/xen/privcmd");
        let file = open().map_err(|e| {
            format!("the guest's kernel gives no /dev/xen/privcmd, which tells CPU times ({e})")
        })?;
        let xen = Self(file);
        xen.times(0).map(|_| xen)
    }

    /// Times of a vCPU of this guest.
    pub(crate) fn times(&self, vcpu: u32) -> Result<Times, String> {
        let mut info = Runstate::default();
        let place = ptr::from_mut(&mut info).expose_provenance() as u64;
        let arguments = [GET_RUNSTATE, vcpu.into(), place, 0, 0];
        let call = Hypercall { number: VCPU_OP, arguments };
        // SAFETY: the request is privcmd's `IOCTL_PRIVCMD_HYPERCALL`, and `call` has the structure that it reads. The
        // hypercall writes a `vcpu_runstate_info` to `info`, which has its layout and lives until the call is over.
        let result = unsafe { ioctl::ioctl(&self.0, call) };
        match result {
            Ok(0) => {
                let [running, ready, blocked] = STATES.map(|state| info.times[state]);
                Ok(Times { running, ready, blocked })
            }
            Ok(code) => Err(format!("Xen refuses to tell CPU times: {code}")),
            Err(error) => Err(format!(
                "the guest's kernel refuses hypercalls for CPU times: {error} (its module xen-privcmd needs \
                 unrestricted=1)"
            )),
        }
    }
}

// SAFETY: the opcode is `_IOC(_IOC_NONE, 'P', 0, sizeof(struct privcmd_hypercall))`, and `as_ptr` gives that structure,
// which the kernel only reads. The result is the hypercall's, a number.
unsafe impl ioctl::Ioctl for Hypercall {
    type Output = i32;
    const IS_MUTATING: bool = true;

    fn opcode(&self) -> Opcode {
        ((size_of::<Self>() as Opcode) << 16) | (Opcode::from(b'P') << 8)
    }

    fn as_ptr(&mut self) -> *mut c_void {
        ptr::from_mut(self).cast()
    }

    unsafe fn output_from_ptr(result: IoctlOutput, _: *mut c_void) -> rustix::io::Result<i32> {
        Ok(result)
    }
}
