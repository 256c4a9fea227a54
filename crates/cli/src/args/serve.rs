//! The verb that others ask.

use clap::Args;
use std::net::SocketAddr;

/// `mmtwin serve`
#[derive(Args, Debug)]
#[command(after_help = "\
The endpoint only reads, and it is bounded in connections, time, cgroups and
series. It has no encryption and asks for no password: to be reached from
elsewhere, put a proxy in front of it.

Examples:
  mmtwin serve                                http://127.0.0.1:9817/metrics
  mmtwin serve --cgroup '/kubepods/*' --max-cgroups 50
  mmtwin serve --dashboard > mmtwin.json      to import in Grafana
  mmtwin serve --alerts > mmtwin-rules.yml    rule_files of Prometheus")]
pub struct Serve {
    /// Address to listen on
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:9817")]
    pub listen: SocketAddr,
    /// Only these cgroups: paths as of `record --cgroup`; default: all
    #[arg(long, value_name = "PATHS", value_delimiter = ',')]
    pub cgroup: Vec<String>,
    /// At most so many cgroups, those nearest the root first; one that has gone keeps its place for an hour
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub max_cgroups: usize,
    /// At most so many series in a scrape
    #[arg(long, value_name = "N", default_value_t = 20_000)]
    pub max_series: usize,
    /// Print a dashboard for Grafana and exit
    #[arg(long, conflicts_with_all = ["alerts", "listen", "cgroup", "max_cgroups", "max_series"])]
    pub dashboard: bool,
    /// Print alert rules for Prometheus, with the thresholds of the findings, and exit
    #[arg(long, conflicts_with_all = ["listen", "cgroup", "max_cgroups", "max_series"])]
    pub alerts: bool,
}
