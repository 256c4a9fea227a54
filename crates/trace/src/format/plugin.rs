//! Events that `trace-cmd report` prints in its own way, by plugins that it loads by default.
//!
//! Covers `sched_switch`, `sched_wakeup`, `sched_wakeup_new`, the slab events of `kmem` (the function of the call site
//! in front), `tlb_flush` and `hrtimer_start`, `hrtimer_expire_entry`. Not supported: plugins for kvm, xen, scsi, futex,
//! wireless and the function tracer. Validated record for record against trace-cmd 3.1.6 with libtraceevent 1.7.1.

use super::eval::Memory;
use super::out::Out;
use super::scope::Scope;
use super::text::PrintContext;
use mmtwin_event::Place;

/// How an event is printed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Plugin {
    /// As its format says.
    #[default]
    None,
    /// `prev:pid [prio] state ==> next:pid [prio]`.
    Switch(Box<Switch>),
    /// `comm:pid [prio] CPU:nnn`.
    Wakeup(Box<Wakeup>),
    /// The function of the call site, then as the format says.
    CallSite(Place),
    /// Pages and reason of a TLB flush.
    Flush(Place, Place),
    /// Timer, time (of an expiry), function, expiry times (of a start).
    Timer(Box<Timer>),
}

/// Fields of `sched_switch`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Switch {
    prev: Who,
    state: Place,
    next: Who,
}

/// Name, pid and priority of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Who {
    comm: Memory,
    pid: Place,
    prio: Place,
}

/// Letters of the task states by bit. libtraceevent up to 1.7 prints these whatever the format says.
const STATES: &[u8] = b"SDTtZXxW";

/// Fields of the wakeup events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wakeup {
    who: Who,
    success: Option<Place>,
    cpu: Option<Place>,
}

/// Fields of the timer events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timer {
    timer: Place,
    function: Place,
    now: Option<Place>,
    expires: Option<(Place, Place)>,
}

/// The plugin for an event, if there is one and the event has the fields it needs.
pub fn of(system: &str, name: &str, scope: &Scope<'_>) -> Plugin {
    let unsigned = |name: &str| {
        let field = scope.field(name).ok()?;
        let offset = u16::try_from(field.offset).ok()?;
        Some(Place { offset, bits: field.number_bits()?, signed: false, ..Place::default() })
    };
    let who = |comm: &str, pid: &str, prio: &str| {
        Some(Who { comm: scope.memory(scope.field(comm).ok()?).ok()?, pid: unsigned(pid)?, prio: unsigned(prio)? })
    };
    let found = match (system, name) {
        ("sched", "sched_switch") => (|| {
            let prev = who("prev_comm", "prev_pid", "prev_prio")?;
            let next = who("next_comm", "next_pid", "next_prio")?;
            Some(Plugin::Switch(Box::new(Switch { prev, state: unsigned("prev_state")?, next })))
        })(),
        ("sched", "sched_wakeup" | "sched_wakeup_new") => who("comm", "pid", "prio").map(|who| {
            Plugin::Wakeup(Box::new(Wakeup { who, success: unsigned("success"), cpu: unsigned("target_cpu") }))
        }),
        (
            "kmem",
            "kfree" | "kmalloc" | "kmalloc_node" | "kmem_cache_alloc" | "kmem_cache_alloc_node" | "kmem_cache_free",
        ) => unsigned("call_site").map(Plugin::CallSite),
        ("tlb", "tlb_flush") => unsigned("pages").zip(unsigned("reason")).map(|(p, r)| Plugin::Flush(p, r)),
        ("timer", "hrtimer_start" | "hrtimer_expire_entry") => (|| {
            let start = name == "hrtimer_start";
            let (now, expires) = if start {
                (None, Some((unsigned("expires")?, unsigned("softexpires")?)))
            } else {
                (Some(unsigned("now")?), None)
            };
            let (timer, function) = (unsigned("hrtimer")?, unsigned("function")?);
            Some(Plugin::Timer(Box::new(Timer { timer, function, now, expires })))
        })(),
        _ => None,
    };
    found.unwrap_or_default()
}

impl Plugin {
    /// Tasks that a record names: pid and name.
    pub fn named_tasks<'r>(&self, raw: &'r [u8], big_endian: bool) -> [Option<(i32, &'r [u8])>; 2] {
        match self {
            Plugin::Switch(switch) => {
                [Some(switch.prev.named(raw, big_endian)), Some(switch.next.named(raw, big_endian))]
            }
            Plugin::Wakeup(wakeup) => [Some(wakeup.who.named(raw, big_endian)), None],
            _ => [None, None],
        }
    }

    /// Prints a record. False: what the format says is still to be printed.
    pub fn print(&self, raw: &[u8], env: PrintContext<'_>, out: &mut Out) -> bool {
        let number = |place: Place| place.number(raw, env.big_endian);
        match self {
            Plugin::None => false,
            Plugin::Switch(switch) => {
                switch.prev.print(raw, env, true, out);
                out.push(b' ');
                let state = number(switch.state);
                let start = out.len();
                for (bit, letter) in STATES.iter().enumerate() {
                    if state >> bit & 1 != 0 {
                        if out.len() > start {
                            out.push(b'|');
                        }
                        out.push(*letter);
                    }
                }
                if out.len() == start {
                    out.push(b'R');
                }
                out.extend(b" ==> ");
                switch.next.print(raw, env, true, out);
                true
            }
            Plugin::Wakeup(wakeup) => {
                wakeup.who.print(raw, env, false, out);
                if let Some(success) = wakeup.success {
                    out.extend(b" success=");
                    out.decimal(number(success));
                }
                if let Some(cpu) = wakeup.cpu {
                    out.extend(b" CPU:");
                    out.padded(number(cpu), b'0', 3);
                }
                true
            }
            Plugin::CallSite(place) => {
                if let Some(found) = env.symbols.find_bisecting(number(*place)) {
                    out.push(b'(');
                    out.extend(found.name.as_bytes());
                    out.extend(b"+0x");
                    out.hex(found.offset);
                    out.extend(b") ");
                }
                false
            }
            Plugin::Flush(pages, reason) => {
                let reason = number(*reason);
                out.extend(b"pages=");
                out.signed(number(*pages) as i64);
                out.extend(b" reason=");
                out.extend(match reason {
                    0 => b"flush on task switch",
                    1 => b"remote shootdown",
                    2 => b"local shootdown",
                    3 => b"local mm shootdown",
                    _ => b"",
                });
                out.extend(b" (");
                out.signed(reason as i64);
                out.push(b')');
                true
            }
            Plugin::Timer(timer) => {
                out.extend(b"hrtimer=0x");
                out.hex(number(timer.timer));
                if let Some(now) = timer.now {
                    out.extend(b" now=");
                    out.decimal(number(now));
                }
                out.extend(b" function=");
                let function = number(timer.function);
                match env.symbols.find_bisecting(function) {
                    Some(found) => {
                        out.extend(found.name.as_bytes());
                        out.extend(b"/0x");
                        out.hex(found.offset);
                    }
                    None => {
                        out.extend(b"0x");
                        out.hex_digits(function, (16 - function.leading_zeros() as usize / 4).max(8));
                    }
                }
                if let Some((expires, soft)) = timer.expires {
                    out.extend(b" expires=");
                    out.decimal(number(expires));
                    out.extend(b" softexpires=");
                    out.decimal(number(soft));
                }
                true
            }
        }
    }
}

impl Who {
    fn named<'r>(&self, raw: &'r [u8], big_endian: bool) -> (i32, &'r [u8]) {
        let comm = self.comm.of(raw, big_endian).split(|&b| b == 0).next().unwrap_or_default();
        (self.pid.number(raw, big_endian) as i32, comm)
    }

    fn print(&self, raw: &[u8], env: PrintContext<'_>, signed: bool, out: &mut Out) {
        out.extend(self.named(raw, env.big_endian).1);
        out.push(b':');
        out.decimal(self.pid.number(raw, env.big_endian));
        out.extend(b" [");
        let prio = self.prio.number(raw, env.big_endian);
        if signed {
            out.signed(i64::from(prio as i32))
        } else {
            out.decimal(prio)
        }
        out.push(b']');
    }
}
