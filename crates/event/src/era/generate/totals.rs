//! Sums of a made-up recording: the rows of the ftrace tables.

/// Pages that one side of reclaim (direct or kswapd) handled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pages {
    /// Pages scanned on inactive lists.
    pub scanned: u64,
    /// Of these, reclaimed.
    pub reclaimed: u64,
    /// File pages written asynchronously.
    pub file_async: u64,
    /// Anonymous pages written asynchronously.
    pub anon_async: u64,
    /// File pages written synchronously.
    pub file_sync: u64,
    /// Anonymous pages written synchronously.
    pub anon_sync: u64,
}

/// Waits of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wait {
    /// How many, those without a delay included.
    pub number: u64,
    /// Milliseconds of all.
    pub ms: u64,
    /// How many lasted their whole timeout.
    pub full: u64,
}

/// Sums of a recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Direct reclaims begun.
    pub direct_reclaims: u64,
    /// Pages of direct reclaim.
    pub direct: Pages,
    /// Requests to wake kswapd by processes that did direct reclaim.
    pub wake_requests: u64,
    /// Wakes of sleeping kswapds.
    pub kswapd_wakeups: u64,
    /// Pages of kswapd.
    pub kswapd: Pages,
    /// Microseconds stalled in direct reclaims that ended.
    pub stalled_us: u64,
    /// Microseconds that kswapds were awake in phases that ended.
    pub awake_us: u64,
    /// Waits of processes other than kswapd for congestion.
    pub direct_congest: Wait,
    /// The same, only if a zone is congested.
    pub direct_conditional: Wait,
    /// Waits of kswapd for congestion.
    pub kswapd_congest: Wait,
    /// The same, only if a zone is congested.
    pub kswapd_conditional: Wait,
}

impl Totals {
    /// Sets the row of a published table with this label from its printed value (seconds with decimals, `ms` or
    /// plain numbers). False, and nothing is set: the label is not one of a sum, or the value no number.
    pub fn set(&mut self, label: &str, value: &str) -> bool {
        let parsed = match label.ends_with("(seconds)") {
            true => microseconds(value),
            false => value.trim_end_matches("ms").parse().ok(),
        };
        match (self.row(label), parsed) {
            (Some(row), Some(value)) => *row = value,
            _ => return false,
        }
        true
    }

    fn row(&mut self, label: &str) -> Option<&mut u64> {
        match label {
            "Direct reclaims" => return Some(&mut self.direct_reclaims),
            "Wake kswapd requests" => return Some(&mut self.wake_requests),
            "Kswapd wakeups" => return Some(&mut self.kswapd_wakeups),
            "Time stalled direct reclaim (seconds)" => return Some(&mut self.stalled_us),
            "Time kswapd awake (seconds)" => return Some(&mut self.awake_us),
            _ => {}
        }
        let (side, what) = label.split_once(' ')?;
        let (pages, congest, conditional) = match side {
            "Direct" => (&mut self.direct, &mut self.direct_congest, &mut self.direct_conditional),
            "Kswapd" | "KSwapd" => (&mut self.kswapd, &mut self.kswapd_congest, &mut self.kswapd_conditional),
            _ => return None,
        };
        if let Some((figure, kind)) = what.strip_suffix(" waited").and_then(|what| what.split_once(' ')) {
            let wait = match kind {
                "congest" => congest,
                "conditional" => conditional,
                _ => return None,
            };
            return match figure {
                "number" => Some(&mut wait.number),
                "time" => Some(&mut wait.ms),
                "full" => Some(&mut wait.full),
                _ => None,
            };
        }
        match what.trim_start_matches("reclaim ") {
            "pages scanned" => Some(&mut pages.scanned),
            "pages reclaimed" => Some(&mut pages.reclaimed),
            "write file async I/O" | "writes file async" => Some(&mut pages.file_async),
            "write anon async I/O" | "writes anon async" => Some(&mut pages.anon_async),
            "write file sync I/O" | "writes file sync" => Some(&mut pages.file_sync),
            "write anon sync I/O" | "writes anon sync" => Some(&mut pages.anon_sync),
            _ => None,
        }
    }
}

/// Seconds with at most six decimals, in microseconds.
fn microseconds(seconds: &str) -> Option<u64> {
    let (whole, decimals) = seconds.split_once('.').unwrap_or((seconds, ""));
    let decimals = format!("{decimals:0<6}");
    whole
        .parse::<u64>()
        .ok()?
        .checked_mul(1_000_000)?
        .checked_add(decimals.parse().ok().filter(|_| decimals.len() == 6)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_their_places() {
        let mut totals = Totals::default();
        assert!(totals.set("Direct reclaims", "443"));
        assert!(totals.set("Kswapd reclaim write anon async I/O", "59"));
        assert!(totals.set("Time stalled direct reclaim (seconds)", "4.34"));
        assert!(totals.set("KSwapd time congest waited", "1264ms"));
        assert!(totals.set("Direct full conditional waited", "3"));
        assert!(totals.set("KSwapd writes file async", "822629"));
        assert_eq!((totals.direct_reclaims, totals.stalled_us), (443, 4_340_000));
        assert_eq!((totals.kswapd.anon_async, totals.kswapd.file_async), (59, 822629));
        assert_eq!((totals.kswapd_congest.ms, totals.direct_conditional.full), (1264, 3));
    }

    #[test]
    fn other_rows_are_refused() {
        let mut totals = Totals::default();
        for (label, value) in [
            ("Total pages scanned", "1"),
            ("KSwapd writes mixed sync", "0"),
            ("Direct reclaims", "x"),
            ("Time kswapd awake (seconds)", "1.1234567"),
            ("Percentage Time kswapd Awake", "78.58%"),
        ] {
            assert!(!totals.set(label, value), "{label}");
        }
        assert_eq!(totals, Totals::default());
    }
}
