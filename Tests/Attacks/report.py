"""The table of one attack."""

from honest import OPERATIONS, Figures
from server import GROUP_BYTES

SLOW_SECONDS = 5.0


def milliseconds(seconds):
    return "-" if seconds is None else f"{seconds * 1_000:.1f}"


def mib(size):
    return f"{size / (1 << 20):.0f} MiB"


def counted(reasons):
    return ", ".join(f"{reason} x {count}" for reason, count in sorted(reasons.items()))


def honest_table(figures, phase):
    """Rows for each operation of one phase, and the remarks below them."""
    rows = [("honest operation", "answered", "refused", "lost", "p50 ms", "p99 ms", "max ms")]
    remarks = []
    for operation in OPERATIONS:
        kept = figures.get((phase, operation)) or Figures()
        rows.append((operation, str(kept.answered), str(sum(kept.refused.values())), str(sum(kept.lost.values())),
                     milliseconds(kept.percentile(0.5)), milliseconds(kept.percentile(0.99)),
                     milliseconds(kept.longest())))
        if kept.refused:
            remarks.append(f"{operation} refused: {counted(kept.refused)}")
        if kept.lost:
            remarks.append(f"{operation} lost: {counted(kept.lost)}")
        if kept.wrong:
            remarks.append(f"PROBLEM: {operation} returned another value than was set, {kept.wrong} times")
        if kept.longest() > SLOW_SECONDS:
            remarks.append(f"PROBLEM: {operation} waited {kept.longest():.1f} s")
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ["  ".join([row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:]))])
             for row in rows]
    return lines + remarks


def attack_lines(counts, mistakes):
    """What the processes of the attack counted."""
    parts = [f"{name} {count:,.0f}" for name, count in sorted(counts.items())]
    lines = ["attack: " + (", ".join(parts) or "no connection")]
    return lines + [f"PROBLEM of the attack itself: {mistake}" for mistake in mistakes]


def service_lines(server):
    """Memory and life of the server."""
    memory = f"service: max VmRSS {mib(server.resident_max)} (sampled), VmHWM {mib(server.high_water)}"
    if server.cgroup:
        peak, source = server.cgroup.peak()
        memory += f", {source} {mib(peak)} of {mib(GROUP_BYTES)}, oom_kill {server.cgroup.oom_kills()}"
    else:
        memory += f", no cgroup ({server.without_cgroup})"
    memory += f", open files max {server.files_max}, now {server.open_files()}"
    memory += ", alive" if server.is_alive() else f", DEAD (exit code {server.process.returncode})"
    lines = [memory]
    if server.high_water > GROUP_BYTES:
        lines.append(f"PROBLEM: more memory than {mib(GROUP_BYTES)}")
    return lines


def after_lines(after):
    """Delays of the first operations after the attack: None where nothing came. Empty if the server was dead."""
    if not after:
        return []
    parts = [f"{name} {milliseconds(seconds)}" for name, seconds in after.items()]
    slow = [name for name, seconds in after.items() if seconds is None or seconds > SLOW_SECONDS]
    lines = ["after the attack, ms: " + ", ".join(parts)
             + (f"; within {SLOW_SECONDS:.0f} s: " + ("NO" if slow else "yes"))]
    return lines + [f"PROBLEM: {name} was not answered within {SLOW_SECONDS:.0f} s" for name in slow]


def stop_line(code, seconds):
    """How the process ended after SIGTERM; it is killed when that takes too long."""
    return f"{'' if code == 0 else 'PROBLEM: '}stopped with exit code {code} in {seconds:.1f} s"
