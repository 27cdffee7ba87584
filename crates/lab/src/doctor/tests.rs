use super::*;
use std::fs;

/// A machine that consists of these files.
fn machine(files: &[(&str, &str)]) -> (tempfile::TempDir, Place) {
    let root = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let file = root.path().join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }
    let place = Place {
        root: root.path().to_owned(),
        path: root.path().join("bin").into_os_string(),
        preload: Err("there is none".into()),
        python: "python3".into(),
        usable_cpus: Some(2),
    };
    (root, place)
}

fn environment(cpus: usize) -> Environment {
    let here = Environment::here();
    Environment { cpus: Some(cpus), hypervisor: None, debug_build: false, ..here }
}

fn of<'a>(diagnosis: &'a Diagnosis, what: &str) -> &'a Finding {
    diagnosis.findings.iter().find(|f| f.what == what).unwrap()
}

#[test]
fn a_quiet_machine_with_everything_is_fine() {
    let cpu = "sys/devices/system/cpu";
    let (root, mut place) = machine(&[
        (&format!("{cpu}/smt/active"), "0\n"),
        (&format!("{cpu}/cpu0/cpufreq/scaling_governor"), "performance\n"),
        (&format!("{cpu}/intel_pstate/no_turbo"), "1\n"),
        ("sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n"),
        ("sys/fs/cgroup/cpu.max", "max 100000\n"),
        ("proc/sys/kernel/perf_event_paranoid", "-1\n"),
        ("dev/kvm", ""),
        ("proc/cpuinfo", "vendor_id : GenuineIntel\nflags : fpu vmx sse\n"),
        ("sys/module/kvm_intel/parameters/ple_gap", "128\n"),
    ]);
    let ours =
        ["cc", "g++", "objdump", "nm", "pkg-config", "memcached", "redis-server", "sysbench"];
    let measured = ["make", "gcc", "flex", "bison", "bc", "xz", "dbench", "ip"];
    for name in ours.into_iter().chain(measured) {
        let file = root.path().join("bin").join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, "").unwrap();
    }
    place.preload = Ok("/lib/liboverspin_preload.so".into());
    let diagnosis = diagnose(&place, &environment(2));
    for finding in &diagnosis.findings {
        // This machine has no counts of its load, and no Python.
        let known = !["other load", "Python"].contains(&finding.what);
        assert!(!known || finding.state == State::Fine, "{finding:?}");
        assert!(finding.state != State::Fine || finding.cost.is_empty(), "{finding:?}");
    }
    assert_eq!(of(&diagnosis, "other load").state, State::Unknown);
    assert_eq!(of(&diagnosis, "Python").state, State::Missing);
}

#[test]
fn what_is_missing_has_a_cost_and_a_remedy() {
    let cpu = "sys/devices/system/cpu";
    let (_root, place) = machine(&[
        (&format!("{cpu}/smt/active"), "1\n"),
        (&format!("{cpu}/cpu0/cpufreq/scaling_governor"), "powersave\n"),
        ("sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet\n"),
        ("sys/fs/cgroup/cpu.max", "150000 100000\n"),
        ("proc/stat", "cpu  10 0 10 70 0 0 0 10 0 0\n"),
    ]);
    let environment =
        Environment { hypervisor: Some("KVM".into()), debug_build: true, ..environment(8) };
    let diagnosis = diagnose(&place, &environment);
    for what in [
        "build",
        "CPUs",
        "CPU limit",
        "SMT",
        "clock speed",
        "clock source",
        "KVM",
        "virtualisation",
        "preload library",
        "Python",
        "C compiler",
        "binutils",
        "real programs",
        "kernbench",
        "dbench",
        "virtual network cables",
    ] {
        let finding = of(&diagnosis, what);
        assert!(matches!(finding.state, State::Costs | State::Missing), "{finding:?}");
        assert!(!finding.cost.is_empty() && !finding.remedy.is_empty(), "{finding:?}");
    }
    // 2 of 8 CPUs: four times as long. 150 ms of every 100 ms: 1.5 CPUs.
    assert!(of(&diagnosis, "CPUs").cost.contains("4.0 times"));
    assert!(of(&diagnosis, "CPU limit").found.contains("1.5 CPUs"));
    assert!(of(&diagnosis, "virtualisation").found.contains("10 %"));
    let text = overspin_report::text(&report(&diagnosis, "a machine"));
    for finding in &diagnosis.findings {
        assert!(text.contains(finding.what), "{text}");
    }
}

#[test]
fn kvm_and_xen_are_told_by_their_kind() {
    let kvm = "sys/module/kvm_amd/parameters/pause_filter_count";
    for (files, what, words) in [
        (
            vec![("dev/kvm", ""), ("proc/cpuinfo", "vendor_id : x\nflags : svm hypervisor\n")],
            "KVM",
            "nested",
        ),
        (
            vec![("dev/kvm", ""), ("proc/cpuinfo", "vendor_id : x\nflags : hypervisor\n")],
            "KVM",
            "by software",
        ),
        (vec![(kvm, "0\n")], "KVM's parameters", "pause_filter_count 0"),
        (vec![("sys/hypervisor/type", "xen\n")], "Xen", "guest of Xen"),
        (
            vec![("sys/hypervisor/type", "xen\n"), ("proc/xen/capabilities", "control_d\n")],
            "Xen",
            "domain 0, without `xl`",
        ),
    ] {
        let (_root, place) = machine(&files);
        let diagnosis = diagnose(&place, &environment(2));
        let finding = of(&diagnosis, what);
        assert!(finding.found.contains(words), "{finding:?}");
        assert!(!finding.cost.is_empty() && !finding.remedy.is_empty(), "{finding:?}");
    }
    let (_root, place) = machine(&[(kvm, "3000\n")]);
    assert_eq!(of(&diagnose(&place, &environment(2)), "KVM's parameters").state, State::Fine);
}
