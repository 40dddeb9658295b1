"""One CPU with Linux on it, simulated to the nanosecond: what it truly does, and what its
tracepoints print of it. It knows nothing of the theorem or of the reader of traces.

Tracepoints print after masking and before unmasking, some time inside, as those of a kernel do.
"""

import random
from dataclasses import dataclass, field

PERIOD = 200_000
MEASURED, OTHER, SECOND = 101, 102, 103
TERMS = ("blocking", "switching", "idle_in", "idle_out", "idle_direct", "scheduler")


@dataclass
class Truth:
    """What happened: of each term the windows (begin, T-time), executions, wake-ups."""

    windows: dict[str, list[tuple[int, int]]] = field(
        default_factory=lambda: {name: [] for name in TERMS}
    )
    executions: list[tuple[int, int]] = field(default_factory=list)
    latencies: list[tuple[int, int]] = field(default_factory=list)
    """When the thread ran, and how long after it was due."""


@dataclass
class Kernel:
    """A kernel that runs until so many wake-ups.

    Attributes:
        preemptible: It preempts its own code.
        busy: Somebody else always has something to do: no sleep.
        throttles: Now and then the measured thread is not chosen.
        goes_on: Now and then who runs goes on instead of it, until it calls the scheduler again.
        second: Another real-time thread of the same priority runs now and then.
        period: Between the measured thread's wake-ups, in ns.
        device_gap: From the end of the device's interrupt to the next one, at least and at most.
    """

    rng: random.Random
    preemptible: bool = True
    busy: bool = False
    throttles: bool = False
    goes_on: bool = False
    second: bool = False
    period: int = PERIOD
    device_gap: tuple[int, int] = (20_000, 90_000)
    now: int = 1_000_000_000
    lines: list[str] = field(default_factory=list)
    truth: Truth = field(default_factory=Truth)
    masked: bool = False
    count: int = 0
    needed: bool = False
    context: str = "."
    current: int = OTHER
    taken: int = 0  # by interrupts
    due: int = 0
    device: int = 0
    woken: bool = False
    device_woke: bool = False
    wake_ups: int = 0
    in_schedule: bool = False
    user: bool = False
    held: list[list] = field(default_factory=list)  # open arrivals: begin in T-time, state, begin
    depth: int = 0
    held_back: int = -1  # which wake-up was

    def run(self, wake_ups: int) -> str:
        """Run, and return what tracefs' file trace would hold."""
        self.due = self.now + self.period
        self.device = self.now + 30_000
        self.emit(
            "hrtimer_start",
            f"hrtimer=00000000aaaa1234 function=hrtimer_wakeup "
            f"expires={self.due} softexpires={self.due} mode=ABS",
        )
        self.user = True
        while self.wake_ups < wake_ups:
            self.other_thread()
        head = "# tracer: nop\n#\n"
        return head + "\n".join(self.lines) + "\n"

    # Events

    def emit(self, name: str, details: str) -> None:
        comm = {MEASURED: "cyclictest", OTHER: "load", SECOND: "second", 0: "<idle>"}
        flags = ("d" if self.masked else ".") + ("N" if self.needed else ".") + self.context
        flags += str(self.count) if self.count else "."
        who = f"{comm[self.current]}-{self.current}"
        stamp = f"{self.now // 10**9}.{self.now % 10**9:09}"
        self.lines.append(f"{who:>20} [000] {flags}. {stamp}: {name}: {details}")

    def place(self, name: str, caller: str, parent: str = "some_function") -> None:
        self.emit(name, f"caller={caller}+0x10/0x20 parent={parent}+0x4/0x80")

    # Time

    def gap(self, most: int = 40) -> None:
        self.work(self.rng.randint(5, most))

    def work(self, length: int) -> None:
        """Let so much time of the thread pass; interrupts come between where they can."""
        left = length
        while left > 0:
            if not self.masked:
                self.take_pending()
            ahead = min(self.due, self.device)
            step = left
            if not self.masked and self.depth == 0:
                step = min(left, max(ahead - self.now, 1))
            self.now += step
            left -= step
        if not self.masked:
            self.take_pending()

    def take_pending(self) -> None:
        while self.depth == 0 and min(self.due, self.device) <= self.now and not self.masked:
            self.interrupt()

    def thread_time(self) -> int:
        return self.now - self.taken

    # The definition of blocking: an arrival is held to the next point

    def changed(self, point: bool = False) -> None:
        """Follow the arrivals that are held: call after each change of state, and at points."""
        if self.depth or self.current == 0 or self.in_schedule:
            return
        free = self.user or (self.preemptible and not self.masked and self.count == 0)
        for arrival in list(self.held):
            if point or self.user or (free and not arrival[1]):
                self.done(arrival)
            elif not self.masked:
                arrival[1] = True  # it is taken here: from now on it waits for a point
        if not free:
            waits = not self.masked
            if not any(each[1] == waits for each in self.held):
                self.held.append([self.thread_time(), waits, self.now])

    def done(self, arrival: list) -> None:
        self.held.remove(arrival)
        self.tell("blocking", arrival[2], self.thread_time() - arrival[0])

    def tell(self, term: str, begin: int, length: int) -> None:
        self.truth.windows[term].append((begin, length))

    # Masking and counting

    def mask(self, caller: str, parent: str = "some_function") -> None:
        self.masked = True
        self.changed()
        self.gap()
        self.place("irq_disable", caller, parent)
        self.gap()

    def unmask(self, caller: str, parent: str = "some_function") -> None:
        self.gap()
        self.place("irq_enable", caller, parent)
        self.gap()
        self.masked = False
        self.changed()
        self.take_pending()

    def disable(self, caller: str) -> None:
        self.gap()
        self.count += 1
        self.changed()
        if self.count == 1:
            self.place("preempt_disable", caller)
        self.gap()

    def enable(self, caller: str, tests: bool = True) -> None:
        self.gap()
        if self.count == 1:
            self.place("preempt_enable", caller)
        self.gap()
        self.count -= 1
        self.changed()
        if tests and self.preemptible and self.count == 0 and not self.masked:
            self.look()

    def look(self) -> None:
        self.changed(point=True)
        if self.needed:
            self.schedule("preempt_schedule_common", preempted=True)

    # Interrupts

    def interrupt(self) -> None:
        begin, came_masked = self.now, self.masked
        was_user, came_free = self.user, self.count == 0
        self.user, self.masked = False, True
        self.depth += 1
        nested = self.depth > 1
        self.now += self.rng.randint(40, 200)
        self.place(
            "irq_disable", "irqentry_enter" if not was_user else "irqentry_enter_from_user_mode"
        )
        self.now += self.rng.randint(10, 60)
        context, self.context = self.context, "h"
        counts = self.count == 0
        self.count += 1
        if counts:
            self.place("preempt_disable", "irq_enter_rcu")
        self.now += self.rng.randint(10, 60)
        if self.due <= self.now:
            self.timer()
        if self.device <= self.now:
            self.emit("irq_handler_entry", "irq=33 name=eth0")
            self.now += self.rng.randint(200, 4000)
            self.emit("irq_handler_exit", "irq=33 ret=handled")
            self.device = self.now + self.rng.randint(*self.device_gap)
            if self.current == 0:
                self.device_woke = self.needed = True
        self.now += self.rng.randint(10, 60)
        if counts:
            self.place("preempt_enable", "irq_exit_rcu")
        self.count -= 1
        self.context = context
        if not nested and self.rng.random() < 0.3:
            self.softirq()
        if came_free and self.needed and self.preemptible and not was_user and self.current:
            self.now += self.rng.randint(5, 60)
            self.returns(begin)
            self.changed(point=True)
            self.preempt_in_interrupt()
            self.changed()
            self.unmask("irqentry_exit")
            return
        if was_user and self.needed:
            self.returns(begin)
            self.changed()
            self.unmask("exit_to_user_mode_loop")
            self.schedule("schedule")
            self.mask("exit_to_user_mode_loop")
            self.leave("irqentry_exit_to_user_mode")
            return
        self.now += self.rng.randint(5, 60)
        self.place("irq_enable", "irqentry_exit_to_user_mode" if was_user else "irqentry_exit")
        self.now += self.rng.randint(5, 39)
        self.masked, self.user = came_masked, was_user
        self.returns(begin)
        self.changed(point=came_free and self.preemptible)

    def preempt_in_interrupt(self) -> None:
        while True:  # the kernel's own loop looks again, interrupts masked
            self.count += 1
            self.place("preempt_disable", "preempt_schedule_irq")
            self.gap()
            self.unmask("preempt_schedule_irq")
            self.schedule_now(self.thread_time(), preempted=True)
            self.mask("preempt_schedule_irq")
            self.place("preempt_enable", "preempt_schedule_irq")
            self.count -= 1
            self.gap()
            for arrival in [each for each in self.held if each[1]]:
                self.done(arrival)
            if not self.needed:
                break

    def returns(self, begin: int) -> None:
        self.truth.executions.append((begin, self.now - begin))
        self.taken += self.now - begin
        self.depth -= 1

    def timer(self) -> None:
        self.emit("local_timer_entry", "vector=236")
        self.now += self.rng.randint(50, 300)
        self.emit(
            "hrtimer_expire_entry",
            f"hrtimer=00000000aaaa1234 function=hrtimer_wakeup now={self.now - 20}",
        )
        self.now += self.rng.randint(50, 300)
        self.emit("sched_waking", f"comm=cyclictest pid={MEASURED} prio=4 target_cpu=000")
        self.woken, self.needed = True, True
        self.was_due = self.due
        self.due = 1 << 62
        self.now += self.rng.randint(50, 300)
        self.emit("hrtimer_expire_exit", "hrtimer=00000000aaaa1234")
        self.emit("local_timer_exit", "vector=236")

    def softirq(self) -> None:
        self.context, self.count = "s", self.count + 1
        if self.count == 1:
            self.place("preempt_disable", "handle_softirqs")
        self.place("irq_enable", "handle_softirqs")
        self.emit("softirq_entry", "vec=3 [action=NET_RX]")
        self.now += self.rng.randint(300, 5000)
        self.emit("softirq_exit", "vec=3 [action=NET_RX]")
        self.place("irq_disable", "handle_softirqs")
        if self.count == 1:
            self.place("preempt_enable", "handle_softirqs")
        self.context, self.count = ".", self.count - 1

    # The scheduler

    def schedule(self, caller: str, preempted: bool = False) -> None:
        called = self.thread_time()
        self.changed(point=True)
        self.gap()
        self.count += 1
        self.place("preempt_disable", caller)
        self.schedule_now(called, preempted)
        self.gap()
        self.place("preempt_enable", caller)
        self.gap()
        self.count -= 1
        if self.count == 0 and self.preemptible:
            self.look()

    def schedule_now(self, called: int, preempted: bool = False) -> None:
        """Choose the next thread, run it until it blocks, and come back."""
        self.held.clear()
        self.in_schedule = True
        self.gap()
        at_mask, begin = self.thread_time(), self.now
        self.mask("__schedule", "schedule")
        chosen = MEASURED if self.woken else OTHER
        if chosen == MEASURED and self.throttles and self.wake_ups % 20 == 19:
            chosen = 0 if self.current else OTHER
        is_first = self.goes_on and self.wake_ups % 20 == 19 and self.held_back != self.wake_ups
        if is_first and chosen == MEASURED and self.current == OTHER:
            chosen, self.held_back = OTHER, self.wake_ups
        if self.second and chosen == MEASURED and self.wake_ups % 15 == 7 and self.current:
            chosen = SECOND
        self.needed = False
        if chosen == self.current:
            self.unmask("__schedule")
            self.in_schedule = False
            return
        before = self.current
        self.switch(chosen, "R+" if preempted else "R")
        if chosen == MEASURED:
            self.measured(called, at_mask, begin)
        elif chosen == SECOND:
            self.after_switch(called, at_mask, begin)
            self.block_into(before)
            return
        elif chosen == 0:
            self.masked = True
            self.idle(at_mask, begin, before)
            return
        self.block_into(before)

    def after_switch(self, called: int, at_mask: int, begin: int, runs: bool = False) -> None:
        """The next thread comes out of the scheduler."""
        self.gap()
        self.place("irq_enable", "finish_task_switch", "__schedule")
        self.gap()
        self.masked = False
        if not self.preemptible:
            self.finished(called, begin, runs)
        self.take_pending()
        self.gap()
        self.place("preempt_enable", "schedule", "do_nanosleep")
        self.gap()
        self.count -= 1
        if self.preemptible:
            self.finished(called, begin, runs)
            self.tell("switching", begin, self.thread_time() - at_mask)
        self.in_schedule = False
        if not self.preemptible:
            self.held.append([at_mask, True, begin])

    def finished(self, called: int, begin: int, runs: bool) -> None:
        self.tell("scheduler", begin, self.thread_time() - called)
        if runs:
            self.truth.latencies.append((self.now, self.now - self.was_due))
            self.woken = False
            self.wake_ups += 1

    def switch(self, chosen: int, state: str) -> None:
        comm = {MEASURED: "cyclictest", OTHER: "load", SECOND: "second", 0: "swapper/0"}
        prio = {MEASURED: 4, OTHER: 120, SECOND: 4, 0: 120}
        self.emit(
            "sched_switch",
            f"prev_comm={comm[self.current]} prev_pid={self.current} prev_prio="
            f"{prio[self.current]} prev_state={state} ==> next_comm={comm[chosen]} "
            f"next_pid={chosen} next_prio={prio[chosen]}",
        )
        self.current = chosen

    def measured(self, called: int, at_mask: int, begin: int) -> None:
        """The measured thread runs, goes to user mode, comes back and sleeps."""
        self.after_switch(called, at_mask, begin, runs=True)
        self.gap(300)
        self.mask("syscall_exit_to_user_mode")
        self.leave("syscall_exit_to_user_mode")
        self.work(self.rng.randint(200, 5000))
        self.enter()
        self.due = self.was_due + self.period
        while self.due < self.now + 3000:
            self.due += self.period
        self.emit(
            "hrtimer_start",
            f"hrtimer=00000000aaaa1234 function=hrtimer_wakeup "
            f"expires={self.due} softexpires={self.due} mode=ABS",
        )
        self.gap()

    def block_into(self, before: int) -> None:
        """The running thread blocks; the one before goes on."""
        called = self.thread_time()
        self.changed(point=True)
        self.held.clear()
        self.in_schedule = True
        self.gap()
        self.count += 1
        self.place("preempt_disable", "schedule")
        self.gap()
        self.held.clear()  # an interrupt may have preempted it, and come back
        self.in_schedule = True
        at_mask, begin = self.thread_time(), self.now
        self.mask("__schedule", "schedule")
        next_one = OTHER
        self.needed = False
        self.switch(next_one, "S")
        self.after_switch_of(called, at_mask, begin)

    def after_switch_of(self, called: int, at_mask: int, begin: int) -> None:
        """As `after_switch`, for the thread that had called the scheduler before: it counts on."""
        self.gap()
        self.place("irq_enable", "finish_task_switch", "__schedule")
        self.gap()
        self.masked = False
        self.take_pending()
        # whoever called the scheduler enables preemption
        self.in_schedule = False
        self.held.append([at_mask, True, begin])

    # Idle

    def idle(self, at_mask: int, begin: int, before: int) -> None:
        """The idle thread runs until it is needed; interrupts stay counted."""
        since, since_now, slept = at_mask, begin, False
        self.gap()
        self.place("irq_enable", "finish_task_switch", "__schedule")
        self.gap()
        self.masked = False
        self.take_pending()
        while not self.needed and not (self.woken and not self.throttles):
            self.gap(400)
            self.mask("do_idle")
            if self.needed:
                self.unmask("do_idle")
                break
            self.emit("cpu_idle", "state=1 cpu_id=0")
            self.gap(100)
            self.tell("idle_in", since_now, self.thread_time() - since)
            slept = True
            woke_by = min(self.due, self.device)
            asleep = max(woke_by, self.now)
            self.now = asleep
            since, since_now = self.thread_time(), self.now
            self.work(self.rng.randint(100, 1500))
            self.emit("cpu_idle", "state=4294967295 cpu_id=0")
            self.gap()
            self.unmask("cpuidle_enter_state")
        self.gap(200)
        called = self.thread_time()
        self.tell("idle_out" if slept else "idle_direct", since_now, called - since)
        at_mask, begin = self.thread_time(), self.now
        self.mask("__schedule", "schedule_idle")
        self.needed = False
        if self.woken:
            self.switch(MEASURED, "R")
            self.measured(called, at_mask, begin)
            self.block_into(before)
            return
        self.switch(OTHER, "R")
        self.after_switch_of(called, at_mask, begin)

    # The other thread

    def leave(self, caller: str) -> None:
        """Go to user mode; interrupts are masked."""
        self.gap()
        if self.needed:
            self.unmask("exit_to_user_mode_loop")
            self.schedule("schedule")
            self.mask("exit_to_user_mode_loop")
        self.place("irq_enable", caller)
        self.work(self.rng.randint(5, 39))
        self.masked, self.user = False, True
        self.changed()
        self.take_pending()

    def enter(self) -> None:
        self.user = False
        self.masked = True
        self.changed()
        self.work(self.rng.randint(20, 80))
        self.place("irq_disable", "enter_from_user_mode", "do_syscall_64")
        self.gap()
        self.unmask("syscall_enter_from_user_mode", "do_syscall_64")

    def other_thread(self) -> None:
        """In user mode for a while, then a system call with sections, or a nap."""
        self.work(self.rng.randint(1000, 40_000))
        self.enter()
        for _ in range(self.rng.randint(1, 6)):
            self.section()
        if not self.busy and self.rng.random() < 0.3:
            self.nap()
        self.gap()
        self.mask("syscall_exit_to_user_mode")
        self.leave("syscall_exit_to_user_mode")

    def section(self) -> None:
        kind = self.rng.randrange(5)
        length = self.rng.randint(50, 3000)
        if kind == 0:
            self.mask("_raw_spin_lock_irq")
            self.work(length)
            self.unmask("_raw_spin_unlock_irq")
        elif kind == 1:
            self.disable("_raw_spin_lock")
            self.work(length)
            self.enable("_raw_spin_unlock")
        elif kind == 2:
            self.mask("_raw_spin_lock_irqsave")
            self.disable("_raw_spin_lock_irqsave")
            self.work(length)
            self.enable("_raw_spin_unlock_irqrestore")
            self.unmask("_raw_spin_unlock_irqrestore")
        elif kind == 3:  # nobody looks at its end; then the next section begins
            self.disable("__local_bh_enable_ip")
            self.work(length)
            self.enable("__local_bh_enable_ip", tests=False)
            self.gap()
            self.mask("rcu_note")
            self.work(self.rng.randint(50, 1000))
            self.unmask("rcu_note")
        else:
            self.work(length)

    def nap(self) -> None:
        """Block until a device interrupts; the idle thread runs meanwhile."""
        called = self.thread_time()
        self.changed(point=True)
        self.held.clear()
        self.in_schedule = True
        self.gap()
        self.count += 1
        self.place("preempt_disable", "schedule")
        self.gap()
        self.held.clear()  # an interrupt may have preempted it, and come back
        self.in_schedule = True
        at_mask, begin = self.thread_time(), self.now
        self.mask("__schedule", "schedule")
        self.needed = False
        if self.woken:
            self.switch(MEASURED, "S")
            self.measured(called, at_mask, begin)
            self.block_into(OTHER)
        else:
            self.switch(0, "S")
            self.idle(at_mask, begin, OTHER)
        self.gap()
        self.place("preempt_enable", "schedule")
        self.gap()
        self.count -= 1
        self.changed(point=True)
        if self.needed:
            self.schedule("schedule")
