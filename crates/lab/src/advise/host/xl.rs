//! `xl list -l`: the JSON of Xen's domains.
//!
//! Fields are those of libxl's types (`tools/libs/light/libxl_types.idl`): `config.c_info.name`, `config.b_info.max_vcpus` and
//! `avail_vcpus`, and `sched_params`, whose numbers below 0 mean the scheduler's defaults.

use super::{HostError, HostFound, number, scalar};
use yaml_rust2::Yaml;

pub(super) fn read(domains: &Yaml, found: &mut HostFound) -> Result<(), HostError> {
    for (index, domain) in domains.as_vec().into_iter().flatten().enumerate() {
        let config = &domain["config"];
        let build = &config["b_info"];
        if config.is_badvalue() || build.is_badvalue() {
            return Err(HostError::new(
                format!("domain {index} has no `config.b_info`"),
                "write it with `xl list -l` (as root on the host)",
            ));
        }
        let domain_name = scalar(&config["c_info"]["name"]);
        let domain_name = domain_name.unwrap_or_else(|| format!("domain{index}"));
        let key = |field: &str| format!("{domain_name}: config.b_info.{field}");
        let online = build["avail_vcpus"].as_vec().map(|all| all.len() as f64);
        let most = number(&build["max_vcpus"], &key("max_vcpus"), "a number of vCPUs")?;
        let vcpus = online.filter(|n| *n > 0.0).or(most).unwrap_or(1.0) as u32;
        let params = &build["sched_params"];
        // Without a value, or with a negative one, the scheduler's default holds.
        let set = |field: &str| params[field].as_i64().and_then(|n| u32::try_from(n).ok());
        found.add(
            &domain_name,
            vcpus,
            set("weight").filter(|w| *w > 0).unwrap_or(256),
            set("cap").unwrap_or(0),
        );
        let scheduler = scalar(&params["sched"]).filter(|name| name != "unknown");
        found.scheduler = found.scheduler.take().or(scheduler);
        if build["vcpu_hard_affinity"].as_vec().is_some_and(|all| !all.is_empty()) {
            found.ignore("Guests that are pinned to pCPUs are simulated without pins.");
        }
    }
    // Xen's default since 4.12.
    found.scheduler.get_or_insert_with(|| "credit2".into());
    Ok(())
}
