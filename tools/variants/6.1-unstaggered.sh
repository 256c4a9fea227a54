# Undoes the staggered first scan (published in 2018, in 4.18): a new thread begins with a node_stamp of 0, as a new
# process does, so that it is due after numa_scan_period of its own CPU time and then goes on with the shortest period
# that its memory allows.
base=6.1
release=6.1-unstaggered

undo() {
    edit kernel/sched/fair.c init_numa_balancing 'p -> node_stamp = delay'
    edit kernel/sched/fair.c init_numa_balancing 'delay += TICK_NSEC'
    edit kernel/sched/fair.c init_numa_balancing 'delay = min_t task_scan_max numa_scan_period mm_users'
    edit kernel/sched/fair.c init_numa_balancing 'unsigned int delay'
}
