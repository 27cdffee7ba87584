//! `overspin schedbench run --world xen`: a plan on the Xen host whose dom0 this is.

use super::plan::{list, save, to_run};
use super::report::print;
use super::run::RunArgs;
use crate::args::Global;
use crate::failure::{Failure, Verdict};
use crate::show::{self, Outputs};
use crate::world::{self, XEN};
use overspin_real::scratch::Scratch;
use overspin_runs::schedbench::{self, BenchFile, Origin, XenCpus, XenHost};
use overspin_xl::{GuestType, Images, Xl, XlError};
use std::path::{Path, PathBuf};

pub(super) fn run(
    args: &RunArgs,
    mut file: BenchFile,
    outputs: &Outputs,
    global: &Global,
) -> Result<Verdict, Failure> {
    for (given, option) in
        [(args.machine.is_some(), "--machine"), (args.trace.is_some(), "--trace")]
    {
        if given {
            return Err(Failure::usage(
                format!("{option} is for simulated runs, and --world xen makes real ones"),
                format!("leave {option} out"),
            ));
        }
    }
    let path = &args.file;
    let todo = to_run(&file, path, args.only.as_deref())?;
    // All of them are checked before the first one takes any time.
    let job = |i: &usize| schedbench::xen_job(&file, &file.runs[*i], args.seed, XenCpus::OfPlan);
    let jobs: Vec<_> = todo.iter().map(job).collect::<Result<_, _>>()?;
    if args.dry_run {
        return list(&file, &todo);
    }
    let xl = Xl::default();
    let xen = xl.version().map_err(|e| failure(&e))?;
    let kernel = kernel(args.kernel.as_deref())?;
    let folder = temporary()?;
    let images = images(&kernel, folder.path())?;
    let host = XenHost {
        xen,
        kernel: kernel.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        emulator: None,
    };
    let until = world::until(args.max_wall);
    let stop = || until.over().is_some();
    let mut stopped = None;
    for (i, job) in todo.into_iter().zip(jobs) {
        let mut step = |step: String| say(global, &format!("{}: {step}", job.name));
        let made = overspin_xl::run(&xl, &job, &images, folder.path(), &mut step, &stop);
        let reports = match made {
            Ok(reports) => reports,
            Err(XlError::Stopped) => {
                stopped = until.over();
                break;
            }
            Err(error) => return Err(failure(&error)),
        };
        let origin = Some(Origin::on_xen(XEN, &host, args.seed, &show::command()));
        let done = schedbench::xen_done(&file.runs[i], &reports);
        file.runs[i] = schedbench::Run { origin, ..done };
        // Complete runs are kept, whatever happens later.
        save(&file, path)?;
    }
    let report = print(path, 0, &args.record, outputs)?;
    Ok(stopped.map_or(report, world::stopped))
}

/// Tells what happens, unless nobody wants to know.
pub(crate) fn say(global: &Global, text: &str) {
    if !global.quiet && !global.no_progress {
        eprintln!("{text}");
    }
}

/// A folder for temporary files, which does not outlive this process, however that ends.
pub(crate) fn temporary() -> Result<Scratch, Failure> {
    Scratch::new(None).map_err(|e| {
        let remedy = "free some space there, or set TMPDIR to another folder";
        Failure::environment(format!("no folder for temporary files: {e}"), remedy)
    })
}

fn failure(error: &XlError) -> Failure {
    Failure::environment(error.to_string(), error.remedy())
}

/// The guests' kernel: the given one, or the file of the running one.
fn kernel(given: Option<&Path>) -> Result<PathBuf, Failure> {
    if let Some(path) = given {
        return match path.is_file() {
            true => Ok(path.to_owned()),
            false => Err(Failure::usage(
                format!("--kernel {}: there is no such file", path.display()),
                "name a Linux kernel, for example /boot/vmlinuz-VERSION",
            )),
        };
    }
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let path = Path::new("/boot").join(format!("vmlinuz-{}", release.trim()));
    match path.is_file() {
        true => Ok(path),
        false => Err(Failure::environment(
            format!("the running kernel's file {} is not there", path.display()),
            "name a kernel for the guests with --kernel FILE",
        )),
    }
}

/// What guests boot, written to `folder`.
fn images(kernel: &Path, folder: &Path) -> Result<Images, Failure> {
    let module = overspin_xen::module_of(kernel);
    let initramfs = folder.join("worker.cpio");
    overspin_xen::worker_initramfs(module.as_deref())
        .and_then(|archive| std::fs::write(&initramfs, archive))
        .map_err(|e| {
            Failure::environment(
                format!("the guests' initial file system cannot be made: {e}"),
                "use a build for x86-64 Linux, and free some space in the folder for temporary files",
            )
        })?;
    Ok(Images {
        kernel: kernel.to_owned(),
        initramfs,
        guest_type: GuestType::Pv,
        more: String::new(),
    })
}
