use super::*;
use std::fs;

/// What files of these names and texts say of a host with 8 pCPUs.
fn of(files: &[(&str, &str)]) -> Result<HostFound, HostError> {
    let folder = tempfile::tempdir().unwrap();
    let write = |(name, text): &(&str, &str)| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path
    };
    let paths: Vec<PathBuf> = files.iter().map(write).collect();
    HostFound::read(&paths, folder.path(), 8)
}

fn guest(name: &str, vcpus: u32, weight: u32, cap: u32) -> Guest {
    Guest { name: name.into(), vcpus, weight, cap }
}

#[test]
fn libvirt_says_vcpus_weight_and_quota() {
    let xml = "<domain type='kvm' id='3'>\n  <name>web 1</name>\n  <vcpu placement='static' cpuset='0-3' current='2'>4</vcpu>\n\
               <cputune><shares>2048</shares><period>50000</period><quota>25000</quota></cputune>\n</domain>\n";
    let plain = "<domain type='kvm'>\n  <name>db</name>\n  <vcpu>4</vcpu>\n\
                 <cputune><quota>-1</quota><global_quota>150000</global_quota></cputune></domain>\n";
    let found = of(&[("a.xml", &format!("{xml}{plain}")), ("b.xml", plain)]).unwrap();
    // Each vCPU may run half of the time, and there are two; 150 ms in 100 ms are 1.5 CPUs.
    let expected =
        [guest("web-1", 2, 512, 100), guest("db", 4, 256, 150), guest("db-2", 4, 256, 150)];
    assert_eq!(found.guests, expected);
    assert!(found.ignored[0].contains("pinned"), "{:?}", found.ignored);
    assert_eq!(found.from.len(), 2);
}

#[test]
fn xen_says_its_scheduler() {
    let domain = |name: &str, sched: &str| {
        format!(
            r#"{{"domid": 1, "config": {{"c_info": {{"type": "pv", "name": "{name}"}}, "b_info": {{"max_vcpus": 8,
            "avail_vcpus": [0, 1, 2], "sched_params": {sched}}}}}}}"#
        )
    };
    let text = format!(
        "[{}, {}]",
        domain("Domain-0", "{}"),
        domain("db", r#"{"sched": "credit", "weight": 512, "cap": 50}"#)
    );
    let found = of(&[("xl.json", &text)]).unwrap();
    assert_eq!(found.guests, [guest("Domain-0", 3, 256, 0), guest("db", 3, 512, 50)]);
    assert_eq!(found.schedulers(), ["credit", "credit2"]);
    let silent =
        of(&[("xl.json", &format!("[{}]", domain("a", r#"{"sched": "unknown", "weight": -1}"#)))]);
    assert_eq!(silent.unwrap().schedulers(), ["credit2", "credit"]);
}

#[test]
fn pods_say_limits_and_requests() {
    let pod = "apiVersion: v1\nkind: Pod\nmetadata: { name: shop }\nspec:\n  containers:\n  - name: app\n    resources:\n\
               \x20     limits: { cpu: 1500m }\n      requests: { cpu: \"0.5\" }\n  - name: side\n    resources: {}\n";
    let deployment = "---\nkind: Deployment\nmetadata: { name: web }\nspec:\n  replicas: 2\n  template:\n    spec:\n\
                      \x20     containers: [{ name: c, resources: { limits: { cpu: 2 } } }]\n---\nkind: Service\n";
    let found = of(&[("pods.yaml", &format!("{pod}{deployment}"))]).unwrap();
    // 512 shares are half of the usual 1024, and a limit of whole CPUs needs no cap.
    let expected = [
        guest("shop-app", 2, 128, 150),
        guest("shop-side", 8, 1, 0),
        guest("web-c", 2, 512, 0),
        guest("web-c-2", 2, 512, 0),
    ];
    assert_eq!(found.guests, expected);
    let list = "{\"kind\": \"List\", \"items\": [{\"kind\": \"Pod\", \"metadata\": {\"name\": \"a\"}, \"status\": \
                {\"phase\": \"Succeeded\"}, \"spec\": {\"containers\": [{\"name\": \"x\"}]}}]}";
    assert!(of(&[("l.json", list)]).unwrap_err().cause.contains("no guest"), "it has ended");
}

#[test]
fn compose_files_say_limits_in_three_ways() {
    let text = "services:\n  a: { cpus: 0.5 }\n  b: { cpu_quota: 150000, cpu_shares: 512 }\n  c:\n    deploy:\n      replicas: 2\n\
                \x20     resources: { limits: { cpus: '1.25' } }\n  d: {}\n";
    let found = of(&[("compose.yaml", text)]).unwrap();
    let expected = [
        guest("a", 1, 256, 50),
        guest("b", 2, 128, 150),
        guest("c", 2, 256, 125),
        guest("c-2", 2, 256, 125),
        guest("d", 8, 256, 0),
    ];
    assert_eq!(found.guests, expected);
}

/// A made-up machine with these files.
fn machine(files: &[(&str, &str)]) -> Result<HostFound, HostError> {
    let root = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let file = root.path().join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }
    HostFound::read(&[], root.path(), 4)
}

#[test]
fn this_machine_has_the_guests_of_its_monitors() {
    let scope = "sys/fs/cgroup/machine.slice/machine-a.scope";
    let found = machine(&[
        (
            "proc/41/cmdline",
            "/usr/bin/qemu-system-x86_64\0-name\0guest=alpha,debug-threads=on\0-smp\x002\0",
        ),
        ("proc/41/task/41/comm", "qemu-system-x86"),
        ("proc/41/task/42/comm", "CPU 0/KVM\n"),
        ("proc/41/task/43/comm", "CPU 1/KVM\n"),
        ("proc/41/cgroup", "0::/machine.slice/machine-a.scope/libvirt/emulator\n"),
        (&format!("{scope}/cpu.weight"), "200\n"),
        (&format!("{scope}/libvirt/emulator/cpu.weight"), "100\n"),
        (&format!("{scope}/libvirt/vcpu0/cpu.max"), "50000 100000\n"),
        ("proc/51/cmdline", "qemu-kvm\0-smp\0cpus=3,sockets=1\0"),
        ("proc/61/cmdline", "./firecracker\0--id\0fc\0"),
        ("proc/61/task/62/comm", "fc_vcpu 0\n"),
        ("proc/71/cmdline", "bash\0"),
        ("proc/71/task/71/comm", "bash\n"),
    ]);
    let expected =
        [guest("alpha", 2, 512, 100), guest("pid-51", 3, 256, 0), guest("fc", 1, 256, 0)];
    assert_eq!(found.unwrap().guests, expected);
}

#[test]
fn without_guests_containers_count() {
    let slice = "sys/fs/cgroup/system.slice";
    let found = machine(&[
        ("proc/1/cmdline", "init\0"),
        (&format!("{slice}/docker-0123456789abcdef.scope/cgroup.procs"), "12\n"),
        (&format!("{slice}/docker-0123456789abcdef.scope/cpu.max"), "150000 100000\n"),
        (&format!("{slice}/docker-empty.scope/cgroup.procs"), ""),
        (&format!("{slice}/cron.service/cgroup.procs"), "7\n"),
    ]);
    assert_eq!(found.unwrap().guests, [guest("container-0123456789ab", 2, 256, 150)]);
    let none = machine(&[("proc/1/cmdline", "init\0")]).unwrap_err();
    assert!(
        none.cause.contains("no guest") && none.remedy.contains("--host guest.xml"),
        "{none:?}"
    );
}

#[test]
fn faults_name_file_key_and_remedy() {
    for (name, text, words) in [
        ("a.xml", "<domain><name>a</name>", "a.xml: is not XML"),
        ("a.xml", "<network/>", "has no <domain>"),
        (
            "a.xml",
            "<domain><name>a</name><vcpu>many</vcpu></domain>",
            "guest `a`: <vcpu> is `many`",
        ),
        (
            "a.xml",
            "<domain><name>a</name><vcpu>0</vcpu></domain>",
            "guest `a` has 0 vCPUs; legal are 1 to 64",
        ),
        ("a.yaml", "a: [1", "a.yaml: cannot be read"),
        ("a.yaml", "kinds: Pod", "none of the formats"),
        ("a.yaml", "- 1\n- 2", "domain 0 has no `config.b_info`"),
        ("a.yaml", "services: 3", "`services` is `3`"),
        ("a.yaml", "services: { a: { cpus: -1 } }", "`services.a.cpus` is `-1`"),
        ("a.yaml", "services: { a: { scale: 100000000 } }", "more than 256 guests"),
        ("a.yaml", "kind: Pod\nspec: { replicas: -1 }", "`spec.replicas` is `-1`"),
        (
            "a.yaml",
            "kind: Pod\nspec: { containers: [{ name: c, resources: { limits: { cpu: lots } } }] }",
            "pod-c: resources.limits.cpu` is `lots`",
        ),
        ("a.yaml", "", "no guest"),
        // Each of a million guests of one name needs another number behind it.
        ("a.xml", &"<domain><name>a</name></domain>\n".repeat(100_000), "more than 256 guests"),
    ] {
        let error = of(&[(name, text)]).unwrap_err();
        assert!(error.cause.contains(words) && !error.remedy.is_empty(), "{text}: {error:?}");
    }
    let absent = HostFound::read(&[PathBuf::from("/no/such.xml")], Path::new("/"), 4).unwrap_err();
    assert!(absent.cause.starts_with("/no/such.xml: cannot be read"), "{absent:?}");
}

#[test]
fn pressure_says_what_it_sees_and_what_it_lacks() {
    let root = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let file = root.path().join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    };
    write(
        "proc/pressure/cpu",
        "some avg10=0.00 avg60=12.00 avg300=3.00 total=9\nfull avg60=1.00\n",
    );
    write("sys/fs/cgroup/a/cpu.stat", "usage_usec 5\nnr_periods 10\nnr_throttled 3\n");
    let words = pressure(root.path()).words();
    assert!(words.contains("waited for a CPU in 12 % of the last minute"), "{words}");
    // Nothing changed meanwhile.
    assert!(words.contains("throttled in 0 of their 0 periods"), "{words}");
    assert!(words.contains("Not readable here: pause-loop exits"), "{words}");
}
